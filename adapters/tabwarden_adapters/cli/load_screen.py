"""What a person sees of a load: its progress while it runs, and what came of it."""

from collections.abc import Mapping
from typing import Any

import trio
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tabwarden_adapters.load import VERDICT, Kind, LoadPlan, Percentiles, Report, Tally

_REFRESH_S = 0.25
_SHOWN = 10  # principals in the table: the rest is in the files


async def on_screen(console: Console, plan: LoadPlan, tally: Tally) -> None:
    """A bar of the time and the counts, until cancelled."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    # Without its own refreshing, for which it would have a thread.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=plan.seconds)
        while True:
            counts = "  ".join(f"{kind.title} {tally.counts[kind]}" for kind in Kind if tally.counts[kind])
            done_s, said = tally.elapsed_ns / 1e9, counts or "starting"
            progress.update(task, completed=done_s, description=said, refresh=True)
            await trio.sleep(_REFRESH_S)


def summary(report: Report) -> dict[str, Any]:
    """The main figures, as plain JSON values."""
    accepted = report.latency.get(Kind.ACCEPTED.title)
    sending = None if accepted is None else accepted.from_sending
    return {
        "limiter": report.limiter.value,
        "calls": report.calls,
        **{kind.title: getattr(report.counts, kind.title) for kind in Kind},
        "not_sent": report.not_sent,
        "seconds": round(report.lasted_s, 3),
        "throughput": round(report.throughput, 3),
        "p50_ms": None if sending is None else round(sending.p50_ms, 3),
        "p99_ms": None if sending is None else round(sending.p99_ms, 3),
        "jain": report.fairness_principals.jain,
        "slowest_share": report.fairness_principals.slowest_share,
        "ended_by": report.ended_by,
    }


def render(report: Report, console: Console) -> None:
    """Tables for a terminal."""
    wrong = any(one.limiter.wrong for one in report.principals)
    console.print(Text(VERDICT[report.limiter], style="bold red" if wrong else "bold"))
    if not report.counts.accepted:
        console.print(Text("Nothing was accepted.", style="bold red"))
    counts = Table(title=Text(f"{report.calls} calls in {report.lasted_s:.1f} s"))
    for kind in Kind:
        counts.add_column(kind.title, justify="right")
    counts.add_column("not sent", justify="right")
    ended = [str(getattr(report.counts, kind.title)) for kind in Kind]
    counts.add_row(*ended, str(report.not_sent))
    console.print(counts)
    others = {code: count for code, count in report.counts.codes.items() if code != "ok"}
    if others:
        console.print(", ".join(f"{code} {count}" for code, count in others.items()), style="dim")
    latencies: dict[str, Percentiles | None] = {}
    for name, latency in report.latency.items():
        latencies[f"{name}, from sending"] = latency.from_sending
        latencies[f"{name}, from the intended start"] = latency.from_intended
    console.print(_percentiles("latency", latencies))
    console.print(_percentiles("phases of accepted calls", report.phases))
    if report.broker_phases:
        console.print(_percentiles(f"in the broker, {report.broker_requests} requests", report.broker_phases))
    console.print(_principals(report))


def _percentiles(title: str, rows: Mapping[str, Percentiles | None]) -> Table:
    table = Table(title=Text(title))
    table.add_column("")
    for heading in ("count", "p50 ms", "p90 ms", "p99 ms", "longest ms"):
        table.add_column(heading, justify="right")
    for name, one in rows.items():
        if one is not None:
            times = (one.p50_ms, one.p90_ms, one.p99_ms, one.max_ms)
            table.add_row(Text(name), str(one.count), *(f"{value:.3f}" for value in times))
    return table


def _principals(report: Report) -> Table:
    fair = report.fairness_principals
    said = "" if fair.jain is None else f", Jain's index {fair.jain:.4f}"
    table = Table(title=Text(f"{len(report.principals)} principals{said}"))
    table.add_column("principal")
    for heading in ("agents", "accepted", "limited", "other", "fullest window", "limiter"):
        table.add_column(heading, justify="right")
    worst = sorted(
        report.principals, key=lambda one: (not one.limiter.wrong, one.accepted / one.agents, one.id)
    )
    for one in worst[:_SHOWN]:
        figures = (one.agents, one.accepted, one.limited, one.other, one.limiter.most)
        table.add_row(Text(one.id), *(str(value) for value in figures), one.limiter.judgement.value)
    return table
