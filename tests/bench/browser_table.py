"""The browser's figures for people."""

from rich.console import Console
from rich.table import Table

from tests.bench.browser_measure import SUBJECTS, BrowserFindings, overhead, p50


def show_browser(found: BrowserFindings) -> None:
    """Print what was found of the browser, or why nothing was."""
    console = Console(soft_wrap=False, width=None if Console().is_terminal else 120)
    if found.missing:
        console.print(f"The browser was not measured: {found.missing}")
        return
    table = Table(
        title=f"Through the broker, {found.product} (p50 in ms; in brackets: times a bare CDP evaluate)",
        caption="Over CDP: the same script and result without a broker. Overhead: the median difference.",
    )
    table.add_column("call")
    for heading in ("calls", "evaluate", "in the page", "over CDP", "total", "overhead"):
        table.add_column(heading, justify="right")
    for subject in SUBJECTS:
        times = found.times[subject.id]
        evaluate = p50(times.evaluate)
        parts = (p50(samples) for samples in (times.page, times.script, times.call))
        table.add_row(
            f"{subject.action} {subject.path}",
            str(len(times.call)),
            f"{evaluate * 1e3:.3f}",
            *(f"{part * 1e3:.2f} ({part / evaluate:.0f}x)" for part in parts),
            f"{overhead(times) * 1e3:.2f}",
        )
    console.print(table)
