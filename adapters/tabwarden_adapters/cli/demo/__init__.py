"""`tabwarden demo`: one session from pairing to revocation, on a real browser and pages of its own."""

from tabwarden_adapters.cli.demo.run import run_demo

__all__ = ["run_demo"]
