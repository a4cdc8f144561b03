"""The table `[audit_export]`: how records are named where they go.

    ecs_namespace = "tabwarden"    # what our own fields stand below in ECS and OpenTelemetry

See docs/audit-shipping.md.
"""

import msgspec

from tabwarden_adapters.audit import NAMESPACE, checked_namespace


class AuditExport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings as they are written."""

    ecs_namespace: str = NAMESPACE

    @property
    def namespace(self) -> str:
        """Raises `ConfigurationError` when it is none."""
        return checked_namespace(self.ecs_namespace)
