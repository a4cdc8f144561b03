"""The table `[audit_files]`: when a file of the audit log is full, and how long files are kept.

    segment_mib = 64       # a new file at this size
    segment_hours = 24     # or at this age; by size only when left out
    keep_days = 400        # files whose last record is older go; each limit alone is enough
    keep_mib = 4096        # so do the oldest beyond this size in all
    keep_segments = 100    # or beyond this number

Without a `keep_…` nothing ever goes. See docs/audit.md.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from tabwarden_adapters.audit import LogRules, Retention

_MIB = 1024 * 1024
_HOUR_MS = 3_600_000


class AuditFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings as they are written."""

    segment_mib: Annotated[int, Meta(ge=1, le=1024)] = 64
    segment_hours: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    keep_days: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    keep_mib: Annotated[int, Meta(ge=1)] | None = None
    keep_segments: Annotated[int, Meta(ge=1)] | None = None

    def rules(self) -> LogRules:
        """The same for the log."""
        return LogRules(
            segment_bytes=self.segment_mib * _MIB,
            segment_ms=_ms(self.segment_hours, _HOUR_MS),
            retention=Retention(
                age_ms=_ms(self.keep_days, 24 * _HOUR_MS),
                total_bytes=None if self.keep_mib is None else self.keep_mib * _MIB,
                segments=self.keep_segments,
            ),
        )


def _ms(value: float | None, unit_ms: int) -> int | None:
    return None if value is None else max(1, int(value * unit_ms))
