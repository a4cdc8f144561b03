"""What a traced request leaves behind: the raw log of the path, and the tree that is read from it later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tabwarden.model import Phase, TraceOutcome

from tabwarden_observability.attributes import (
    ACTION,
    ANNOTATIONS,
    CAUSE,
    CAUSE_OF,
    CODE,
    OUTCOME,
    SPAN_ATTRIBUTES,
    UNLISTED,
    Cause,
    SpanNames,
    Value,
    clean,
)
from tabwarden_observability.endings import Ending
from tabwarden_observability.trace_ids import span_id_below

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


@dataclass(slots=True)
class _Node:
    name: str
    number: int
    start: int
    end: int = 0
    ending: Ending | None = None
    is_phase: bool = True
    children: list["_Node"] = field(default_factory=list)


def finished(raw: RawRequest, names: SpanNames) -> FinishedRequest:
    """Read the tree out of a raw request. The same raw request always gives an equal result."""
    outcome = raw.outcome
    attributes = _annotations(raw.notes)
    top = _tree(raw, names)
    phases = tuple(_frozen(node, raw, outcome) for node in top)
    cause = CAUSE_OF.get(outcome)
    if cause is None and CAUSE in attributes:
        cause = Cause(str(attributes[CAUSE]))
    if cause is None and outcome is TraceOutcome.FAILED:
        cut_short = any(span.cause is Cause.CANCELLED for span in phases)
        cause = Cause.CANCELLED if cut_short else None
    attributes[OUTCOME] = outcome.value
    if raw.code is not None:
        attributes[CODE] = raw.code
    if cause is not None:
        attributes[CAUSE] = cause.value
    return FinishedRequest(
        trace_id=raw.trace_id,
        span_id=raw.span_id,
        parent_span_id=raw.parent_span_id,
        sampled=raw.sampled,
        start_wall_ns=raw.wall_ns,
        duration_ns=raw.end - raw.start,
        outcome=outcome,
        code=raw.code,
        cause=cause,
        attributes=attributes,
        phases=phases,
        skipped_children=raw.skipped,
    )


def _annotations(notes: Sequence[Mapping[str, object]]) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    for note in notes:
        named = {ANNOTATIONS[name].name: value for name, value in note.items() if name in ANNOTATIONS}
        attributes |= clean(named, SPAN_ATTRIBUTES)
    return attributes


def _tree(raw: RawRequest, names: SpanNames) -> list[_Node]:
    top: list[_Node] = []
    open_phases: list[_Node] = []
    placed: dict[int, _Node] = {}
    waiting = iter(raw.children)
    child = next(waiting, None)
    pairs = iter(raw.log)
    for position, (entry, time) in enumerate(zip(pairs, pairs, strict=False)):
        while child is not None and child.at <= 2 * position:
            _place(child, open_phases, top, placed, names)
            child = next(waiting, None)
        if not isinstance(time, int):
            break
        if entry is None or isinstance(entry, Ending):
            if open_phases:
                node = open_phases.pop()
                node.end, node.ending = time, entry
            continue
        name = entry.value if isinstance(entry, Phase) else UNLISTED
        node = _Node(name, position + 1, time)
        (open_phases[-1].children if open_phases else top).append(node)
        open_phases.append(node)
    while child is not None:
        _place(child, open_phases, top, placed, names)
        child = next(waiting, None)
    return top


def _place(
    child: RawChild, open_phases: list[_Node], top: list[_Node], placed: dict[int, _Node], names: SpanNames
) -> None:
    node = _Node(
        names.clean(child.name), CHILD_NUMBERS + child.number, child.start, child.end, child.ending, False
    )
    placed[child.number] = node
    outer = None if child.outer is None else placed.get(child.outer.number)
    if outer is not None:
        outer.children.append(node)
    elif open_phases:
        open_phases[-1].children.append(node)
    else:
        top.append(node)


def _frozen(node: _Node, raw: RawRequest, request: TraceOutcome) -> FinishedSpan:
    # What still ran when the request ended is cut there, and ended as the request did. The bounds also hold
    # for a child timed in a worker thread, which may end just as the request does.
    still_open = not node.end
    end = raw.end if still_open else min(node.end, raw.end)
    start = min(max(node.start, raw.start), end)
    outcome, code, cause = _ended(node.ending, request, still_open=still_open)
    return FinishedSpan(
        name=node.name,
        span_id=span_id_below(raw.span_id, node.number),
        offset_ns=start - raw.start,
        duration_ns=max(end - start, 0),
        outcome=outcome,
        code=code,
        cause=cause,
        is_phase=node.is_phase,
        children=tuple(_frozen(child, raw, request) for child in node.children),
    )


def _ended(
    ending: Ending | None, request: TraceOutcome, *, still_open: bool
) -> tuple[TraceOutcome, str | None, Cause | None]:
    if still_open:
        return request, None, CAUSE_OF.get(request)
    if ending is None:
        return TraceOutcome.OK, None, None
    if ending.outcome is not None:
        return ending.outcome, ending.code, CAUSE_OF.get(ending.outcome)
    if request in CAUSE_OF:
        return request, None, CAUSE_OF[request]
    return TraceOutcome.FAILED, None, Cause.CANCELLED
