"""`python -m tests.bench [--quick]`: run every measurement, print the table, write `build/bench.json`.

Rounds alternate over the stacks, forward and back, so that a noisy moment falls on all of them alike; every
goal is a ratio or a count within this one run. Exits with 1 when a goal does not hold.
"""

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.bench.audit_measure import AuditFindings, audit_figures, audit_goals, audit_line, measure_audit
from tests.bench.browser_measure import BrowserFindings, browser_figures, browser_goals, measure_browser
from tests.bench.browser_table import show_browser
from tests.bench.ending_measure import EndingFindings, ending_goals, ending_line, measure_ending
from tests.bench.inspection import Inspections, inspection_figures, inspection_goals, measure_inspection
from tests.bench.load import decode_samples
from tests.bench.measure import (
    IDLE_FEW,
    IDLE_MANY,
    IDLE_MANY_TLS,
    PRINCIPALS,
    Cell,
    Findings,
    Running,
    running,
    with_principals,
)
from tests.bench.peers_measure import PeerFindings, measure_peers, peers_figures, peers_goals, peers_line
from tests.bench.process import Child, child
from tests.bench.results import Row, figures, goals
from tests.bench.rights_measure import (
    RightsFindings,
    measure_rights,
    rights_figures,
    rights_goals,
    show_rights,
)
from tests.bench.stacks import BEARER_QUART, MTLS_KEPT, SUBJECT, Stack, stacks
from tests.bench.table import show
from tests.bench.tracing_measure import (
    TracingFindings,
    measure_tracing,
    tracing_figures,
    tracing_goals,
    tracing_line,
)

CLIENTS = (1, 8, 64)
ROUNDS, WARM_S, CELL_S = 3, 0.4, 0.8
QUICK_ROUNDS, QUICK_CELL_S = 1, 0.4
WHOLE_S = 400.0  # twice what it takes: it stops by itself, whatever hangs
OUTPUT = Path("build")


async def add_floor(found: Findings, process: Child, seconds: float) -> None:
    """One round of the crypto floor."""
    got = await process.ask(seconds=seconds)
    found.floor.samples.extend(decode_samples(got["samples"]))
    found.floor.seconds += seconds
    found.broker_crypto_s.append(got["broker"])


async def load_rounds(
    found: Findings, measured: Sequence[Stack], folder: Path, rounds: int, seconds: float
) -> None:
    """The floor, every stack at every number of clients, and what was negotiated."""
    found.cells = {(stack.name, clients): Cell() for stack in measured for clients in CLIENTS}
    async with AsyncExitStack() as open_ones:
        floor = await open_ones.enter_async_context(child("tests.bench.floor"))
        up: list[Running] = [
            await open_ones.enter_async_context(running(stack, folder / stack.name)) for stack in measured
        ]
        for one in up:
            if one.stack.facts:
                found.facts[one.stack.name] = await one.facts()
        for number in range(rounds):
            for clients in CLIENTS:
                await add_floor(found, floor, seconds)
                for one in up if number % 2 == 0 else reversed(up):
                    await one.measure(found.cells[one.stack.name, clients], clients, WARM_S, seconds)


async def idle_connections(found: Findings, measured: Sequence[Stack], folder: Path) -> None:
    """Memory of idle connections, on fresh servers, so that no freed memory hides the growth."""
    for stack in measured:
        if stack in (SUBJECT, BEARER_QUART, MTLS_KEPT):
            async with running(stack, folder / f"{stack.name}-idle") as one:
                many = IDLE_MANY_TLS if stack is MTLS_KEPT else IDLE_MANY
                found.idle_bytes[stack.name] = await one.idle_bytes(many)


async def principal_bytes(folder: Path) -> float:
    """Memory of the server for one issued principal that has made a call, without its connection."""
    few, many = IDLE_FEW, IDLE_FEW + PRINCIPALS
    await trio.Path(folder).mkdir()
    async with running(with_principals(few), folder / "few") as one:
        idle_few = one.server.resident_bytes()
        connection = await one.idle_bytes(IDLE_MANY)
    async with running(with_principals(many), folder / "many") as one:
        issued = (one.server.resident_bytes() - idle_few) / PRINCIPALS
        return issued + await one.idle_bytes(IDLE_MANY) - connection


async def forged_requests(found: Findings, measured: Sequence[Stack], folder: Path) -> None:
    """The flood of forged requests on the subject, on a fresh server."""
    if SUBJECT in measured:
        async with running(SUBJECT, folder / "forged") as one:
            found.forged = await one.forged()


@dataclass(frozen=True, slots=True)
class Everything:
    """All that one run found."""

    calls: Findings
    audit: AuditFindings
    rights: RightsFindings
    tracing: TracingFindings
    ending: EndingFindings
    browser: BrowserFindings
    peers: PeerFindings
    inspections: Inspections

    def goals(self) -> list[Row]:
        """What is judged."""
        return [
            *goals(self.calls),
            *audit_goals(self.audit),
            *rights_goals(self.rights),
            *tracing_goals(self.tracing),
            *ending_goals(self.ending),
            *browser_goals(self.browser),
            *peers_goals(self.peers),
            *inspection_goals(self.inspections),
        ]

    def figures(self) -> list[Row]:
        """What is only told."""
        return [
            *figures(self.calls),
            *audit_figures(self.audit),
            *rights_figures(self.rights),
            *tracing_figures(self.tracing),
            *browser_figures(self.browser, self.calls.floor.quantile(0.5)),
            *peers_figures(self.peers),
            *inspection_figures(self.inspections),
        ]


async def bench(measured: Sequence[Stack], folder: Path, quick: bool) -> Everything:
    """Every measurement, within a time."""
    found = Findings()
    rounds, seconds = (QUICK_ROUNDS, QUICK_CELL_S) if quick else (ROUNDS, CELL_S)
    with trio.fail_after(WHOLE_S):
        await load_rounds(found, measured, folder, rounds, seconds)
        await idle_connections(found, measured, folder)
        await forged_requests(found, measured, folder)
        found.principal_bytes = await principal_bytes(folder / "principals")
        return Everything(
            calls=found,
            audit=await measure_audit(folder / "audit", quick),
            rights=await measure_rights(folder / "rights", quick),
            tracing=await measure_tracing(folder / "tracing", quick),
            ending=await measure_ending(folder / "ending", quick),
            browser=await measure_browser(folder / "browser", quick),
            peers=await measure_peers(folder / "peers", quick),
            inspections=await measure_inspection(quick),
        )


def main() -> int:
    """Parse the command line, run, and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure Tabwarden.")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it runs")
    quick = parser.parse_args().quick
    measured = stacks()
    OUTPUT.mkdir(exist_ok=True)
    # The processes inherit it: a connection is a descriptor at each end.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(2 * IDLE_MANY, 4096) if most < 0 else min(most, 4096), most)
    )
    # Not in the system's temporary folder, which may be memory: a sync must cost what it costs.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=OUTPUT) as folder:
        found = trio.run(bench, measured, Path(folder).resolve(), quick)
    judged = found.goals()
    rows = [row.as_json() for row in (*judged, *found.figures())]
    (OUTPUT / "bench.json").write_text(json.dumps(rows, indent=1) + "\n")
    show_browser(found.browser)
    print(audit_line(found.audit))  # noqa: T201
    print(tracing_line(found.tracing))  # noqa: T201
    print(ending_line(found.ending))  # noqa: T201
    print(peers_line(found.peers))  # noqa: T201
    show_rights(found.rights)
    show(measured, found.calls, judged)
    return 0 if all(row.holds for row in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
