"""What is read out of finished requests to be shown, whatever shows it: a terminal or a page."""

from collections.abc import Iterator, Sequence
from typing import Final

from tabwarden.model import TraceOutcome

from tabwarden_observability.records import FinishedRequest, FinishedSpan

WHOLE_REQUEST: Final = "whole request"
_MS: Final = 1_000_000


def walk(spans: Sequence[FinishedSpan], depth: int = 0) -> Iterator[tuple[FinishedSpan, int]]:
    """Every span with its depth (0, 1, ...), each before its children."""
    for span in spans:
        yield span, depth
        yield from walk(span.children, depth + 1)


def phase_durations(requests: Sequence[FinishedRequest]) -> dict[str, list[int]]:
    """Nanoseconds of every phase, in ascending order, by its name; the last entry is `WHOLE_REQUEST`."""
    durations: dict[str, list[int]] = {}
    for request in requests:
        for span, _ in walk(request.phases):
            if span.is_phase:
                durations.setdefault(span.name, []).append(span.duration_ns)
    if requests:
        durations[WHOLE_REQUEST] = [request.duration_ns for request in requests]
    for values in durations.values():
        values.sort()
    return durations


def quantile(ordered: Sequence[int], share: float) -> int:
    """The value below which `share` of `ordered` (ascending, not empty) lie."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def ending(outcome: TraceOutcome, code: str | None) -> str:
    """How a request or a span ended, in words."""
    return outcome.value if code is None or code == outcome.value else f"{outcome.value}: {code}"


def ms(nanoseconds: int) -> str:
    """Milliseconds with three decimals."""
    return f"{nanoseconds / _MS:.3f}"
