"""The limiter under 200 agents at twice its limit for five minutes: `python -m tests.bench.limiter_run`.

The broker runs in a process of its own. Its limiter is judged twice: from what the agents saw, as
`tabwarden load` does, and from the exact moments in which it decided, which only its own process knows.
Prints both, and what the broker holds at the start, in the middle and at the end; exits with 1 when the
limiter let through too many or too few, or when something grew in a run that is long enough to tell.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import trio
from tabwarden.model import ConnectionDescriptor
from tabwarden_adapters.load import (
    VERDICT,
    Judgement,
    LoadPlan,
    Report,
    calls_csv,
    drive,
    load_page,
    put,
    report_json,
    report_of,
)

from tests.bench.limited_server import VERDICT_FILE
from tests.bench.process import Child, child
from tests.bench.subject_client import descriptor
from tests.bench.vitals import Vitals, growth, shown, vitals

LIMIT: Final = 60
TIMES: Final = 2.0
MEASUREMENTS: Final = 18
LONG_ENOUGH_S: Final = 180.0  # its first third is longer than the limiter remembers
SERVER: Final = "tests.bench.limited_server"


async def look(server: Child) -> Vitals:
    """What the broker holds now."""
    return vitals(server.ready["pid"], (await server.ask())["tasks"])


def descriptors(server: Child) -> list[ConnectionDescriptor]:
    """The credentials of all its principals."""
    return [descriptor(server.ready, number) for number in range(len(server.ready["tokens"]))]


async def measure(options: argparse.Namespace, folder: Path) -> bool:
    """The whole run. True when all is well."""
    numbers = (str(options.principals), str(LIMIT), str(options.agents + 64))
    async with child(SERVER, str(folder), *numbers) as server:
        server.ready = await server.answer()
        plan = LoadPlan(
            agents=options.agents,
            seconds=options.seconds,
            rate=TIMES * LIMIT / 60 * options.principals / options.agents,
            limit=LIMIT,
        )
        say(f"{'idle':8} {await look(server)}")
        taken: list[Vitals] = []

        async def watch() -> None:
            begun = trio.current_time()
            for number in range(1, MEASUREMENTS + 1):
                # The last one comes while all are still connected.
                await trio.sleep_until(begun + 0.98 * options.seconds * number / MEASUREMENTS)
                taken.append(await look(server))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            run = await drive(plan, descriptors(server))
        for when, at in (("start", 0), ("middle", MEASUREMENTS // 2), ("end", -1)):
            say(f"{when:8} {taken[at]}")
        say(f"{'after':8} {await look(server)}")
    report = report_of(run)
    good = tell(report, json.loads((folder / VERDICT_FILE).read_bytes()))
    if options.out is not None:
        put(options.out / "limiter.html", load_page(report, run.samples, run.principals).encode())
        put(options.out / "limiter.json", report_json(report))
        put(options.out / "limiter.csv", calls_csv(run.samples, run.principals))
    grown = growth(taken)
    say(f"growth   {shown(grown)}")
    return good and (not grown or options.seconds < LONG_ENOUGH_S)


def tell(report: Report, own: dict[str, Any]) -> bool:
    """Print what both judges say; whether both say that all is well."""
    counts = report.counts
    planned = round((report.rate or 0) * report.agents * report.seconds)
    say(
        f"{report.agents} agents, {len(report.principals)} principals, {report.lasted_s:.0f} s: "
        f"{report.calls} of {planned} calls, {counts.accepted} accepted, {counts.limited} limited, "
        f"{counts.refused + counts.failed + counts.transport} other, {report.not_sent} not sent in time"
    )
    others = {code: count for code, count in counts.codes.items() if code != "ok"}
    say(f"codes    {others}")
    fewest = [one.limiter.fewest for one in report.principals if one.limiter.fewest is not None]
    judged = sum(one.limiter.turned_away for one in report.principals)
    say(
        f"agents   {VERDICT[report.limiter]} Most in one window: "
        f"{max(one.limiter.most for one in report.principals)}; fewest in one that ended with a call turned "
        f"away: {min(fewest, default=None)}, of {judged}"
    )
    say(
        f"broker   Wrong with {own['wrong']} principals. Most in one window: {own['most']}; "
        f"fewest in one that ended with a call turned away: {own['fewest']}, of {own['judged']}"
    )
    # A run in which the limiter was not tried, for want of calls, shows nothing.
    return report.limiter is Judgement.RIGHT and own["judged"] > 0 and not own["wrong"]


def say(line: str) -> None:
    """Print at once: somebody waits for minutes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="the limiter at twice its limit")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--principals", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--out", type=Path, help="a folder for the report's files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tabwarden-limiter-") as folder:
        good = trio.run(measure, options, Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
