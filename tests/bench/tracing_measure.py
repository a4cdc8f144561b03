"""What traces cost a broker that exports them over OTLP to a live receiver, against one that makes none."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

import trio

from tests.bench.measure import Cell, Running, running
from tests.bench.process import Child, child
from tests.bench.results import Row
from tests.bench.stacks import SUBJECT, Stack

# Spans are sent once a second: what a window's calls cost must fall into it, or into another as long.
ROUNDS, WARM_S, CELL_S = 4, 1.2, 2.0
QUICK_ROUNDS, QUICK_CELL_S = 1, 1.0
DRAINED_S = 1.5  # by then all spans of a paced window were sent, and counted with it
FLAT_OUT, PACED_CLIENTS, PACE = 64, 8, 300.0  # clients, clients, calls a second
PACED_ROUNDS, PACED_S = 3, 4.0
QUICK_PACED_S = 1.0
OFF, ON = "untraced", "traced"


@dataclass(slots=True)
class TracingFindings:
    """`one`: one client's calls of one server and of the other by turns, so that what is compared ran in the
    same milliseconds. `flat`: many clients, in closed loops. `paced`: the share of one core that the
    server took at a steady pace, each round. `lost` and `sent` are spans at that pace."""

    one: dict[str, Cell] = field(default_factory=lambda: {OFF: Cell(), ON: Cell()})
    flat: dict[str, Cell] = field(default_factory=lambda: {OFF: Cell(), ON: Cell()})
    paced: dict[str, list[float]] = field(default_factory=lambda: {OFF: [], ON: []})
    lost: int = 0
    sent: int = 0


def stacks(receiver: str) -> tuple[Stack, Stack]:
    """The subject without traces and with them."""
    endpoint = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://{receiver}/v1/traces", "NO_PROXY": "127.0.0.1"}
    return replace(SUBJECT, name=OFF, env={"BENCH_TRACING": "off"}), replace(SUBJECT, name=ON, env=endpoint)


async def measure_tracing(folder: Path, quick: bool) -> TracingFindings:
    """Everything, by turns."""
    found = TracingFindings()
    await trio.Path(folder).mkdir()
    async with child("tests.bench.otlp_receiver") as receiver:
        pair = stacks((await receiver.answer())["address"])
        async with AsyncExitStack() as open_ones:
            up = [await open_ones.enter_async_context(running(stack, folder / stack.name)) for stack in pair]
            seconds = QUICK_CELL_S if quick else CELL_S
            for number in range(QUICK_ROUNDS if quick else ROUNDS):
                ordered = up if number % 2 == 0 else up[::-1]
                first, second = ordered
                pair_of_cells = (found.one[first.stack.name], found.one[second.stack.name])
                await first.by_turns(second, pair_of_cells, WARM_S, 2 * seconds)
                for one in ordered:
                    await one.measure(found.flat[one.stack.name], FLAT_OUT, WARM_S, seconds)
        await _paced(found, folder, pair, receiver, quick)
    return found


async def _paced(
    found: TracingFindings, folder: Path, pair: tuple[Stack, Stack], receiver: Child, quick: bool
) -> None:
    """On fresh servers, so that every span that is missing went missing at this pace."""
    before = (await receiver.ask())["spans"]
    async with AsyncExitStack() as open_ones:
        up = [
            await open_ones.enter_async_context(running(stack, folder / f"{stack.name}-paced"))
            for stack in pair
        ]
        for number in range(1 if quick else PACED_ROUNDS):
            for one in up if number % 2 == 0 else reversed(up):
                seconds = QUICK_PACED_S if quick else PACED_S
                found.paced[one.stack.name].append(await _share_at_pace(one, seconds))
        last = await up[1].server.ask()
    found.sent = last["calls"] * last["spans_a_call"]
    # The server has ended, and has sent all that it will.
    found.lost = found.sent - ((await receiver.ask())["spans"] - before)


async def _share_at_pace(one: Running, seconds: float) -> float:
    before, begun = await one.server.ask(), trio.current_time()
    await one.load.ask(do="pace", clients=PACED_CLIENTS, rate=PACE, seconds=seconds)
    paced = trio.current_time() - begun
    await trio.sleep(DRAINED_S)
    after = await one.server.ask()
    return float(after["cpu_us"] - before["cpu_us"]) / 1e6 / paced


def tracing_goals(found: TracingFindings) -> list[Row]:
    """The promises."""
    rate = {name: cell.rate for name, cell in found.flat.items()}
    p50 = {name: cell.quantile(0.5) for name, cell in found.one.items()}
    share = {name: mean(shares) for name, shares in found.paced.items()}
    return [
        Row("tracing-rate-lost", 100 * (1 - rate[ON] / rate[OFF]), "% of calls/s", "<= 10"),
        Row("tracing-cpu-at-300", 100 * (share[ON] - share[OFF]), "% of a core", "<= 2"),
        Row("tracing-p50-added", (p50[ON] - p50[OFF]) * 1e6, "us", "<= 20"),
        Row("tracing-spans-lost-at-300", found.lost, "spans", "<= 0"),
    ]


def tracing_figures(found: TracingFindings) -> list[Row]:
    """What is only told. The processor time of a call is less disturbed by others than its rate."""

    def both(
        name: str, unit: str, cells: dict[str, Cell], figure: Callable[[Cell], float | None]
    ) -> list[Row]:
        return [Row(f"{name}-{key}", figure(cell), unit) for key, cell in cells.items()]

    return [
        *both("tracing-flat-rate", "calls/s", found.flat, lambda cell: cell.rate),
        *both("tracing-flat-cpu", "us/call", found.flat, lambda cell: cell.per_call("cpu_us")),
        *both("tracing-flat-dropped", "spans/call", found.flat, lambda cell: cell.per_call("dropped")),
        *both("tracing-one-p50", "ms", found.one, lambda cell: cell.quantile(0.5) * 1e3),
        *both("tracing-one-cpu", "us/call", found.one, lambda cell: cell.per_call("cpu_us")),
        *(Row(f"tracing-share-at-300-{key}", mean(each), "cores") for key, each in found.paced.items()),
        Row("tracing-spans-at-300", found.sent, "spans"),
    ]


def tracing_line(found: TracingFindings) -> str:
    """All of it, for people."""
    p50 = {name: cell.quantile(0.5) * 1e3 for name, cell in found.one.items()}
    cpu = {name: cell.per_call("cpu_us") or 0.0 for name, cell in found.flat.items()}
    share = {name: mean(shares) for name, shares in found.paced.items()}
    return (
        f"traces over OTLP, without and with: {found.flat[OFF].rate:.0f} and {found.flat[ON].rate:.0f} "
        f"calls/s, {cpu[OFF]:.0f} and {cpu[ON]:.0f} us of CPU a call; at {PACE:.0f} calls/s "
        f"{share[OFF]:.1%} and {share[ON]:.1%} of a core, {found.lost} of {found.sent} spans lost; "
        f"one client's p50 {p50[OFF]:.3f} and {p50[ON]:.3f} ms"
    )
