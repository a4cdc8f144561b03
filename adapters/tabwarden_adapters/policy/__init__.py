"""Who may do what, and where."""

from tabwarden_adapters.policy.static import StaticPolicy

__all__ = ["StaticPolicy"]
