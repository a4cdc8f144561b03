"""The command `tabwarden`: the composition root, the only place that imports everything."""

from tabwarden_adapters.cli.app import main

__all__ = ["main"]
