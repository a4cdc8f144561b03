"""An hour of calls, and what the broker holds every minute of it: `python -m tests.bench.soak_run`.

Prints one line a minute and whether memory, files, threads or tasks grew from the middle third of the run
to the last; exits with 1 when one did, or when a call was not accepted. `--seconds` shortens it; there are
always 60 measurements.
"""

import argparse
import sys
import tempfile
from typing import Final

import trio
from tabwarden_adapters.load import LoadPlan, drive, report_of

from tests.bench.limiter_run import SERVER, descriptors, look, say
from tests.bench.process import child
from tests.bench.vitals import Vitals, growth, shown

MEASUREMENTS: Final = 60
PRINCIPALS: Final = 8
NO_LIMIT: Final = 100_000  # a minute: what is looked for grows with accepted calls


async def soak(options: argparse.Namespace, folder: str) -> bool:
    """The whole run. True when nothing grew and every call was accepted."""
    plan = LoadPlan(agents=options.agents, seconds=options.seconds, rate=options.rate, limit=NO_LIMIT)
    every, taken = options.seconds / MEASUREMENTS, list[Vitals]()
    async with child(SERVER, folder, str(PRINCIPALS), str(NO_LIMIT), str(options.agents + 64)) as server:
        server.ready = await server.answer()

        async def watch() -> None:
            begun = trio.current_time()
            for number in range(1, MEASUREMENTS + 1):
                # The last one comes while all are still connected.
                await trio.sleep_until(begun + 0.99 * every * number)
                taken.append(await look(server))
                say(f"{number * every:7.0f} s  {taken[-1]}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            run = await drive(plan, descriptors(server))
        report = report_of(run)
    grown = growth(taken)
    accepted = report.counts.accepted == report.calls
    say(f"{report.calls} calls, {report.counts.accepted} accepted; codes {dict(report.counts.codes)}")
    say(f"growth: {shown(grown)}")
    return accepted and not grown


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="an hour of load, and what grows")
    parser.add_argument("--agents", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2.0, help="calls a second of each agent")
    parser.add_argument("--seconds", type=float, default=3600.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tabwarden-soak-") as folder:
        good = trio.run(soak, options, folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
