"""What a traced request leaves behind: the raw log of the path, and what is read from it later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tabwarden.model import Phase, TraceOutcome

from tabwarden_observability.attributes import ACTION, Cause, Value
from tabwarden_observability.endings import Ending

LogEntry = Phase | Ending | int | None
"""The log is flat and in pairs: `phase, start` when one begins, `ending or None, end` when one ends."""

CHILD_NUMBERS = 1 << 32  # span numbers of children start here, those of phases are positions in the log


class RawChild(Protocol):
    """A child span as the path leaves it. Times by `perf_counter_ns`; `end` 0 while it runs."""

    name: str
    number: int  # 0, 1, ... in the order of beginning
    at: int  # the length of the phase log when it began
    outer: "RawChild | None"
    start: int
    end: int
    ending: Ending | None


class RawRequest(NamedTuple):
    """One finished request as the path leaves it. Times in nanoseconds: `wall_ns` since the Unix epoch at
    `start`; `start` and `end` by `perf_counter_ns`. `notes` are the keywords of each `annotate`, still
    unchecked, so they are kept out of `repr`. `skipped`: children over the bound, not recorded."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    sampled: bool
    wall_ns: int
    start: int
    end: int
    outcome: TraceOutcome
    code: str | None
    notes: Sequence[Mapping[str, object]]
    log: Sequence[LogEntry]
    children: Sequence[RawChild]
    skipped: int

    def __repr__(self) -> str:
        return f"RawRequest(trace_id={self.trace_id!r})"

    @property
    def span_count(self) -> int:
        """How many spans it makes: itself, its phases (two pairs in the log each) and its children."""
        return 1 + (len(self.log) + 3) // 4 + len(self.children)


@dataclass(frozen=True, slots=True)
class FinishedSpan:
    """One phase, or a child that an adapter timed. `offset_ns` counts from the start of the request."""

    name: str
    span_id: str
    offset_ns: int
    duration_ns: int
    outcome: TraceOutcome
    code: str | None
    cause: Cause | None
    is_phase: bool
    children: tuple["FinishedSpan", ...]


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """One traced request. Ids are lower-case hexadecimal; `start_wall_ns` counts from the Unix epoch.

    `attributes` has exported names and nothing that is not on the allow-list. `skipped_children` were
    over the bound for one request.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    sampled: bool
    start_wall_ns: int
    duration_ns: int
    outcome: TraceOutcome
    code: str | None
    cause: Cause | None
    attributes: Mapping[str, Value]
    phases: tuple[FinishedSpan, ...]
    skipped_children: int

    @property
    def action(self) -> str | None:
        """The action's name in the table, once it was known."""
        action = self.attributes.get(ACTION)
        return action if isinstance(action, str) else None
