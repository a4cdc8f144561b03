"""The figures for people."""

from collections.abc import Sequence
from statistics import mean

from rich.console import Console
from rich.table import Table

from tests.bench.measure import Cell, Findings
from tests.bench.results import Row
from tests.bench.stacks import Stack


def show(stacks: Sequence[Stack], found: Findings, goals: Sequence[Row]) -> None:
    """Print everything that one run found."""
    # Piped output has no width of its own; a narrow guess would cut the figures.
    console = Console(soft_wrap=False, width=None if Console().is_terminal else 120)
    console.print(_calls(stacks, found))
    for name, size in found.idle_bytes.items():
        console.print(f"idle connection, {name}: {size / 1024:.1f} KiB")
    if (forged := found.forged) is not None:
        console.print(
            f"forged requests: {forged.refused} of {forged.sent} refused, {forged.rate:.0f} a second"
        )
    for name, said in found.facts.items():
        console.print(f"{name}: {', '.join(f'{key} {value}' for key, value in said.items())}")
    console.print(_goals(goals))


def _calls(stacks: Sequence[Stack], found: Findings) -> Table:
    table = Table(
        title="No-op call (times in ms; CPU is the share of one core)",
        caption="Tabwarden and the naive build make a durable record of each call; other peers make none.",
    )
    table.add_column("stack")
    for heading in (
        "clients",
        "p50",
        "p99",
        "calls/s",
        "p50/floor",
        "sign/call",
        "sync/call",
        "CPU s",
        "CPU c",
    ):
        table.add_column(heading, justify="right")
    floor = found.floor
    p50 = floor.quantile(0.5)
    table.add_row(
        "crypto floor", "-", f"{p50 * 1e3:.3f}", f"{floor.quantile(0.99) * 1e3:.3f}", f"{1 / p50:.0f}", "1.00"
    )
    for stack in stacks:
        table.add_section()
        for (name, clients), cell in found.cells.items():
            if name == stack.name:
                table.add_row(stack.title, str(clients), *_columns(cell, p50))
    return table


def _columns(cell: Cell, floor: float) -> tuple[str, ...]:
    p50 = cell.quantile(0.5)
    per_call = (cell.per_call("signatures"), cell.per_call("syncs"))
    return (
        f"{p50 * 1e3:.3f}",
        f"{cell.quantile(0.99) * 1e3:.3f}",
        f"{cell.rate:.0f}",
        f"{p50 / floor:.2f}",
        *("-" if count is None else f"{count:.3f}" for count in per_call),
        f"{mean(cell.server_cpu):.0%}",
        f"{mean(cell.client_cpu):.0%}",
    )


def _goals(rows: Sequence[Row]) -> Table:
    table = Table(title="Goals")
    for heading in ("goal", "value", "unit", "bound", "holds"):
        table.add_column(heading, justify="left" if heading in ("goal", "unit") else "right")
    for row in rows:
        value = "not measured" if row.value is None else f"{row.value:.3f}"
        table.add_row(row.id, value, row.unit, row.goal, "[green]yes" if row.holds else "[red]no")
    return table
