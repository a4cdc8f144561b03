"""Counters of a running log, for benchmarks and metrics."""

from dataclasses import dataclass

_CLIP_S = 0.004  # one slow sync among many quick ones must not change how we work; several in a row do
_WEIGHT = 1 / 8  # of the newest value in a running average: follows a change within some ten batches


@dataclass(frozen=True, slots=True)
class AuditStatistics:
    """Since the log was opened. Each batch is one fdatasync; `inline_batches` of them ran on the loop.

    `average_sync_s` is a running one, in which no value counts for more than 4 ms; `total_sync_s` is the sum
    of all, as they were.
    """

    records: int
    batches: int
    inline_batches: int
    last_sync_s: float
    average_sync_s: float
    total_sync_s: float

    @property
    def fdatasyncs(self) -> int:
        return self.batches


@dataclass(slots=True)
class Meter:
    """The running figures that the log steers by."""

    records: int = 0
    batches: int = 0
    inline_batches: int = 0
    syncs: int = 0
    last_sync_s: float = 0.0
    average_sync_s: float = 0.0
    total_sync_s: float = 0.0
    average_waiting: float = 1.0

    def batch(self, waiting: int, *, inline: bool) -> None:
        """A batch begins; so many callers wait for it."""
        self.batches += 1
        self.inline_batches += inline
        if waiting:  # a batch that nobody waits for says nothing of how busy it is
            self.average_waiting += (waiting - self.average_waiting) * _WEIGHT

    def synced(self, seconds: float) -> None:
        """A batch has ended."""
        self.last_sync_s = seconds
        self.total_sync_s += seconds
        clipped = min(seconds, _CLIP_S)
        # The first says all that is known: a slow disk is to hold up the event loop once at the most.
        weight = _WEIGHT if self.syncs else 1.0
        self.syncs += 1
        self.average_sync_s += (clipped - self.average_sync_s) * weight

    def snapshot(self) -> AuditStatistics:
        return AuditStatistics(
            self.records,
            self.batches,
            self.inline_batches,
            self.last_sync_s,
            self.average_sync_s,
            self.total_sync_s,
        )
