"""One stack's two processes, and what the runner measures with them."""

from array import array
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import trio

from tests.bench.load import decode_samples, percentile
from tests.bench.process import Child, child
from tests.bench.stacks import SUBJECT, Stack

# The slope between them leaves out what any first connection costs. The interpreter takes memory by the
# megabyte, so with few connections the slope depends on where the last one fell.
IDLE_FEW, IDLE_MANY = 100, 2_100
IDLE_MANY_TLS = 600  # some 200 KiB each: there a megabyte does not matter
PRINCIPALS = IDLE_MANY - IDLE_FEW  # one for each of those connections
FORGED_WARM, FORGED = 2_000, 20_000
SETTLE_S = 0.5  # lets work that a measurement set off come to its end


@dataclass(slots=True)
class Cell:
    """All rounds of one stack at one number of clients. Times in seconds; counts are the server's own."""

    samples: "array[float]" = field(default_factory=lambda: array("d"))
    seconds: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    server_cpu: list[float] = field(default_factory=list)
    client_cpu: list[float] = field(default_factory=list)
    each: list[int] = field(default_factory=list)  # completed calls of each client

    def quantile(self, share: float) -> float:
        """A percentile of the time of a call."""
        return percentile(sorted(self.samples), share)

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.samples) / self.seconds

    @property
    def slowest_share(self) -> float:
        """What the client with the fewest calls got of its fair share of them."""
        return min(self.each) * len(self.each) / sum(self.each)

    def count(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        """Add what the server's counters went up by."""
        for name, value in after.items():
            self.counters[name] = self.counters.get(name, 0) + value - before[name]

    def per_call(self, counter: str) -> float | None:
        """A counter for each completed call; None when the server does not keep it."""
        calls = self.counters.get("calls", 0)
        return self.counters[counter] / calls if calls and counter in self.counters else None


@dataclass(frozen=True, slots=True)
class Running:
    """A stack that is up: its server, its load process, and the server's ready line."""

    stack: Stack
    server: Child
    load: Child

    async def measure(self, cell: Cell, clients: int, warm: float, seconds: float) -> None:
        """Add one round to `cell`."""
        before, cpu = await self.server.ask(), self.server.cpu_seconds()
        begun = trio.current_time()
        got = await self.load.ask(do="load", clients=clients, warm=warm, seconds=seconds)
        busy = (self.server.cpu_seconds() - cpu) / (trio.current_time() - begun)
        after = await self.server.ask()
        cell.samples.extend(decode_samples(got["samples"]))
        cell.seconds += got["seconds"]
        cell.server_cpu.append(busy)
        cell.client_cpu.append(got["cpu"])
        cell.count(before, after)
        cell.each = [sum(pair) for pair in zip_longest(cell.each, got["each"], fillvalue=0)]

    async def by_turns(self, other: "Running", cells: tuple[Cell, Cell], warm: float, seconds: float) -> None:
        """Add calls of one client of this stack to the first cell, and to the second those of one client of
        `other`, made in between."""
        up = (self, other)
        before = [await one.server.ask() for one in up]
        got = await self.load.ask(do="turns", other=other.server.ready, warm=warm, seconds=seconds)
        for cell, one, samples, counted in zip(cells, up, got["samples"], before, strict=True):
            cell.samples.extend(decode_samples(samples))
            cell.seconds += seconds
            cell.count(counted, await one.server.ask())

    async def facts(self) -> dict[str, Any]:
        """What the stack says of itself."""
        return await self.load.ask(do="facts", facts=self.stack.facts) if self.stack.facts else {}

    async def idle_bytes(self, many: int = IDLE_MANY) -> float:
        """Resident memory of the server for each of `many` idle connections that have made one call."""
        await self.load.ask(do="hold", connections=IDLE_FEW)
        await trio.sleep(SETTLE_S)
        few = self.server.resident_bytes()
        await self.load.ask(do="hold", connections=many - IDLE_FEW)
        await trio.sleep(SETTLE_S)
        return (self.server.resident_bytes() - few) / (many - IDLE_FEW)

    async def forged(self) -> "Forged":
        """What a flood of requests without the token costs the server."""
        await self.load.ask(do="load", clients=8, warm=0.0, seconds=0.5)
        await self.load.ask(do="forge", forge=self.stack.forge, count=FORGED_WARM)
        await trio.sleep(SETTLE_S)
        before, memory = await self.server.ask(), self.server.resident_bytes()
        got = await self.load.ask(do="forge", forge=self.stack.forge, count=FORGED)
        await trio.sleep(SETTLE_S)
        after = await self.server.ask()
        return Forged(
            sent=FORGED,
            refused=got["refused"],
            signatures=after["signatures"] - before["signatures"],
            growth_bytes=self.server.resident_bytes() - memory,
            rate=FORGED / got["seconds"],
        )


@dataclass(frozen=True, slots=True)
class Forged:
    """The outcome of the flood."""

    sent: int
    refused: int
    signatures: int
    growth_bytes: int
    rate: float


@dataclass(slots=True)
class Findings:
    """All that one run found; `cells` by a stack's name and the number of clients."""

    floor: Cell = field(default_factory=Cell)
    cells: dict[tuple[str, int], Cell] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    idle_bytes: dict[str, float] = field(default_factory=dict)
    forged: Forged | None = None
    broker_crypto_s: list[float] = field(default_factory=list)  # of one call, by the floor; one a round
    principal_bytes: float | None = None


def with_principals(count: int) -> Stack:
    """The subject with so many principals."""
    return replace(SUBJECT, env={"BENCH_PRINCIPALS": str(count)})


@asynccontextmanager
async def running(stack: Stack, folder: Path) -> AsyncIterator[Running]:
    """Start a stack's processes, with a folder of its own; end them on leaving."""
    await trio.Path(folder).mkdir()
    async with child(stack.server, str(folder), env=stack.env) as server:
        server.ready = await server.answer()
        async with child("tests.bench.load", env=stack.env) as load:
            await load.ask(client=stack.client, ready=server.ready)
            yield Running(stack, server, load)
