"""Recent requests for a terminal: where each spent its time, phase by phase (rich)."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from tabwarden.model import TraceOutcome

from tabwarden_observability.readings import ending, ms, phase_durations, quantile, walk
from tabwarden_observability.records import FinishedRequest

_BAR: Final = 32  # characters; a line fits in 80 columns
_STYLES: Final = {
    TraceOutcome.OK: "green",
    TraceOutcome.DENIED: "yellow",
    TraceOutcome.FAILED: "red",
    TraceOutcome.DEADLINE: "red",
}


def waterfall(requests: Sequence[FinishedRequest]) -> RenderableType:
    """One table for each request: every phase and child with start and duration in ms, and a bar."""
    return Group(*(_request_table(request) for request in requests))


def phase_summary(requests: Sequence[FinishedRequest]) -> Table:
    """One row for each phase over all `requests`: how many, and median, 95th percentile and longest in ms."""
    table = Table(title=Text(f"{len(requests)} requests"))
    table.add_column("phase")
    for heading in ("count", "median ms", "p95 ms", "longest ms"):
        table.add_column(heading, justify="right")
    for name, values in phase_durations(requests).items():
        shown = (quantile(values, 0.5), quantile(values, 0.95), values[-1])
        table.add_row(Text(name), str(len(values)), *(ms(value) for value in shown))
    return table


def _request_table(request: FinishedRequest) -> Table:
    title = Text.assemble(
        (request.action or "request", "bold"),
        "  ",
        (ending(request.outcome, request.code), _STYLES.get(request.outcome, "magenta")),
        f"  {ms(request.duration_ns)} ms  trace {request.trace_id}",
    )
    table = Table(title=title, title_justify="left")
    table.add_column("phase")
    table.add_column("start ms", justify="right")
    table.add_column("ms", justify="right")
    table.add_column("", min_width=_BAR)
    table.add_column("ended")
    for span, depth in walk(request.phases):
        style = _STYLES.get(span.outcome, "magenta")
        table.add_row(
            Text("  " * depth + span.name),
            ms(span.offset_ns),
            ms(span.duration_ns),
            Text(_bar(span.offset_ns, span.duration_ns, request.duration_ns), style=style),
            Text(ending(span.outcome, span.code), style=style),
        )
    return table


def _bar(offset: int, duration: int, whole: int) -> str:
    if whole <= 0:
        return ""
    start = min(offset * _BAR // whole, _BAR - 1)
    return " " * start + "█" * max(min(duration * _BAR // whole, _BAR - start), 1)
