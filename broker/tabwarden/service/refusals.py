"""Counting what was refused before any seal opened: by reason in memory, and one audit record a window."""

from collections import Counter

from tabwarden.errors import AuditUnavailable, Refusal
from tabwarden.model import RefusalSummary
from tabwarden.ports import AuditSink, Clock


class RefusalCounter:
    """A flood of refusals costs one increment each and one audit record a window."""

    def __init__(self, audit: AuditSink, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self.total: Counter[Refusal] = Counter()
        self._window: Counter[Refusal] = Counter()
        self._window_start_ms = clock.wall_ms()

    def count(self, reason: Refusal) -> None:
        """Count one refusal."""
        self.total[reason] += 1
        self._window[reason] += 1

    def summarize(self) -> None:
        """End the window: write its record if anything was refused. Loses none if the audit is down."""
        now = self._clock.wall_ms()
        if self._window:
            try:
                self._audit.note(
                    RefusalSummary(
                        window_start_ms=self._window_start_ms,
                        window_end_ms=now,
                        counts=dict(self._window),
                    )
                )
            except AuditUnavailable:
                return
            self._window.clear()
        self._window_start_ms = now
