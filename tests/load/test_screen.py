"""What a person at a terminal sees of a load."""

import io

import pytest
import trio
import trio.testing
from rich.console import Console
from tabwarden_adapters.cli.load_screen import on_screen, render, summary
from tabwarden_adapters.load import Kind, LoadPlan, Tally, report_of

from tests.load.support import run_of, sample


def console() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=True, width=120, color_system=None), written


async def test_progress_shows_the_counts(mock_clock: trio.testing.MockClock) -> None:
    screen, written = console()
    tally = Tally()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(on_screen, screen, LoadPlan(agents=1, seconds=10), tally)
        await trio.testing.wait_all_tasks_blocked()
        assert "starting" in written.getvalue()
        tally.counts.update({Kind.ACCEPTED: 41, Kind.LIMITED: 7})
        tally.elapsed_ns = 5 * 10**9
        mock_clock.jump(1)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert "accepted 41  limited 7" in written.getvalue()


@pytest.mark.parametrize(
    ("limit", "verdict"), [(30, "more than its limit within one window"), (60, "was not tried")]
)
def test_the_tables(limit: int, verdict: str) -> None:
    calls = [sample(second / 4, agent=second % 2) for second in range(100)]
    calls.append(sample(30, kind=Kind.REFUSED, code="policy-denied"))
    run = run_of(calls, principals=("alice", "bob"), limit=limit, seconds=40)
    report = report_of(run, {"audit": [1_500_000]})
    screen, written = console()
    render(report, screen)
    shown = written.getvalue()
    for said in (verdict, "101 calls in 40.0 s", "policy-denied 1", "alice", "bob", "waiting", "1.500"):
        assert said in shown, said
    told = summary(report)
    assert (told["calls"], told["accepted"], told["refused"], told["p50_ms"]) == (101, 100, 1, 10.0)


def test_what_a_principal_is_called_cannot_be_markup() -> None:
    screen, written = console()
    render(report_of(run_of([sample(0)], principals=("[bold]x[/bold]",))), screen)
    assert "[bold]x[/bold]" in written.getvalue()


def test_of_nothing() -> None:
    report = report_of(run_of([]))
    screen, written = console()
    render(report, screen)
    assert "0 calls" in written.getvalue()
    assert "Nothing was accepted" in written.getvalue()
    told = summary(report)
    assert (told["p50_ms"], told["jain"], told["limiter"]) == (None, None, "untried")
