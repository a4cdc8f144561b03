"""How a log is kept: every number, with its reason."""

from dataclasses import dataclass

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.audit.retention import KEEP_ALL, Retention

SEGMENT_BYTES = 64 * 1024 * 1024  # some 100,000 records: a file that tools still open with ease
COMMIT_DELAY_S = 0.05  # how long an outcome may wait for company: far below what a person notices
CHECKPOINT_RECORDS = 10_000  # so many records wait at the most, however busy it is: a few a second
CHECKPOINT_S = 60.0  # or so long: what somebody who cuts the end of a log could hide


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """`segment_ms` is the age at which a segment is ended by the next record (None: by size only).

    Checkpoints are made after so many records or so long, whichever comes first, at each segment's end and at
    closing. Raises `ConfigurationError`.
    """

    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int | None = None
    commit_delay_s: float = COMMIT_DELAY_S
    checkpoint_records: int = CHECKPOINT_RECORDS
    checkpoint_s: float = CHECKPOINT_S
    retention: Retention = KEEP_ALL

    def __post_init__(self) -> None:
        for name in ("segment_bytes", "segment_ms", "checkpoint_records", "checkpoint_s"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigurationError(f"audit {name} must be greater than 0")
