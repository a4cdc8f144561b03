"""The spans that are read out of a raw request, for whoever keeps, shows or exports them."""

from collections.abc import Mapping, Sequence
from typing import Final

from tabwarden.model import Phase, TraceOutcome

from tabwarden_observability.attributes import (
    ANNOTATIONS,
    CAUSE,
    CAUSE_OF,
    CODE,
    OUTCOME,
    UNLISTED,
    Cause,
    SpanNames,
    Value,
)
from tabwarden_observability.endings import Ending
from tabwarden_observability.records import CHILD_NUMBERS, RawChild, RawRequest

REQUEST_NUMBER: Final = 0  # stands for the request itself, where spans are numbered

Told = tuple[TraceOutcome, str | None, Cause | None]
"""How a span ended: outcome, code, cause."""

_WELL: Final[Told] = (TraceOutcome.OK, None, None)


class SpanRow:
    """A phase, or a child that an adapter timed, as it was recorded.

    `number` makes its id (`trace_ids`); `outer` is the number of the one around it, or `REQUEST_NUMBER`.
    `end` is 0 when it still ran at the end of the request. `settled` says what that makes of it.
    """

    __slots__ = ("end", "ending", "name", "number", "outer", "start")

    def __init__(
        self, name: str, number: int, outer: int, start: int, end: int = 0, ending: Ending | None = None
    ) -> None:
        self.name = name
        self.number = number
        self.outer = outer
        self.start = start
        self.end = end
        self.ending = ending

    @property
    def is_phase(self) -> bool:
        """False for a child."""
        return self.number < CHILD_NUMBERS


def rows(raw: RawRequest, names: SpanNames) -> list[SpanRow]:
    """Those below the request itself, in the order in which they began."""
    found: list[SpanRow] = []
    running: list[SpanRow] = []
    children = _Children(raw.children, names) if raw.children else None
    pairs = iter(raw.log)
    number = 0
    for entry, time in zip(pairs, pairs, strict=False):
        if children is not None:
            children.place(2 * number, running, found)
        number += 1
        if not isinstance(time, int):
            break
        if entry is None or isinstance(entry, Ending):
            if running:
                row = running.pop()
                row.end, row.ending = time, entry
            continue
        name = _PHASES[entry] if isinstance(entry, Phase) else UNLISTED
        row = SpanRow(name, number, running[-1].number if running else REQUEST_NUMBER, time)
        found.append(row)
        running.append(row)
    if children is not None:
        children.place(len(raw.log) + 1, running, found)
    return found


def settled(row: SpanRow, raw: RawRequest) -> tuple[int, int, Told]:
    """Its start and end by `perf_counter_ns`, and how it ended, now that the end of its request is known."""
    # What still ran when the request ended is cut there, and ended as the request did. The bounds also hold
    # for a child timed in a worker thread, which may end just as the request does.
    start, end = row.start, row.end
    if not 0 < end <= raw.end:
        end = raw.end
    if not raw.start <= start <= end:
        start = min(max(start, raw.start), end)
    ending, outcome = row.ending, raw.outcome
    if not row.end:
        return start, end, (outcome, None, CAUSE_OF.get(outcome))
    if ending is None:
        return start, end, _WELL
    if ending.outcome is not None:
        return start, end, (ending.outcome, ending.code, CAUSE_OF.get(ending.outcome))
    if outcome in CAUSE_OF:
        return start, end, (outcome, None, CAUSE_OF[outcome])
    return start, end, (TraceOutcome.FAILED, None, Cause.CANCELLED)


def request_attributes(raw: RawRequest, names: SpanNames) -> dict[str, Value]:
    """What is told of the request itself, by exported names."""
    outcome = raw.outcome
    attributes = _annotations(raw.notes)
    attributes[OUTCOME] = outcome.value
    if raw.code is not None:
        attributes[CODE] = raw.code
    cause = CAUSE_OF.get(outcome)
    if cause is None and CAUSE not in attributes and outcome is TraceOutcome.FAILED:
        at_the_top = (settled(row, raw)[2] for row in rows(raw, names) if row.outer == REQUEST_NUMBER)
        cause = Cause.CANCELLED if any(told[2] is Cause.CANCELLED for told in at_the_top) else None
    if cause is not None:
        attributes[CAUSE] = cause.value
    return attributes


_PHASES: Final = {phase: phase.value for phase in Phase}


class _Children:
    """Puts the children of one request where they began."""

    def __init__(self, children: Sequence[RawChild], names: SpanNames) -> None:
        self._left = iter(children)
        self._next = next(self._left, None)
        self._names = names
        self._placed: set[int] = set()

    def place(self, until: int, running: Sequence[SpanRow], found: list[SpanRow]) -> None:
        """Add those that began before the log was longer than `until`, while `running` were the phases."""
        while (child := self._next) is not None and child.at <= until:
            outer = running[-1].number if running else REQUEST_NUMBER
            if child.outer is not None and child.outer.number in self._placed:
                outer = CHILD_NUMBERS + child.outer.number
            self._placed.add(child.number)
            name = self._names.clean(child.name)
            number = CHILD_NUMBERS + child.number
            found.append(SpanRow(name, number, outer, child.start, child.end, child.ending))
            self._next = next(self._left, None)


def _annotations(notes: Sequence[Mapping[str, object]]) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    for note in notes:
        for keyword, value in note.items():
            if value is not None and (attribute := ANNOTATIONS.get(keyword)) is not None:
                passed = attribute.passed(value)
                if passed is not None:
                    attributes[attribute.name] = passed
    return attributes
