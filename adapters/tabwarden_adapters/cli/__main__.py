"""`python -m tabwarden_adapters.cli` is the command `tabwarden`."""

from tabwarden_adapters.cli.app import main

main()
