"""Rows of figures and the goals they are held to."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean

from tests.bench.measure import Cell, Findings, Forged
from tests.bench.stacks import MTLS_NEW, NAIVE, SUBJECT

ONE, MANY = 1, 64
FORGED_GROWTH_KIB = 256  # 13 bytes a request: anything kept of one would be more


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `goal` reads `<= 2` or `>= 6`; without one, `holds` is None. No value fails any goal."""

    id: str
    value: float | None
    unit: str
    goal: str | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met."""
        if self.goal is None:
            return None
        if self.value is None:
            return False
        sign, _, bound = self.goal.partition(" ")
        return self.value <= float(bound) if sign == "<=" else self.value >= float(bound)

    def as_json(self) -> dict[str, object]:
        """For `bench.json`."""
        value = None if self.value is None else round(self.value, 4)
        return {"id": self.id, "value": value, "unit": self.unit, "goal": self.goal, "holds": self.holds}


def figures(found: Findings) -> list[Row]:
    """Every measured figure, without goals."""
    floor = found.floor
    rows = [
        Row("floor-p50", floor.quantile(0.5) * 1e3, "ms"),
        Row("floor-p99", floor.quantile(0.99) * 1e3, "ms"),
        Row("broker-crypto-amortised", mean(found.broker_crypto_s) * 1e6, "us CPU/call"),
    ]
    for (stack, clients), cell in found.cells.items():
        name = f"{stack}-{clients}"
        rows += [
            Row(f"{name}-p50", cell.quantile(0.5) * 1e3, "ms"),
            Row(f"{name}-p99", cell.quantile(0.99) * 1e3, "ms"),
            Row(f"{name}-rate", cell.rate, "calls/s"),
        ]
        for counter, unit in (("signatures", "signatures"), ("syncs", "syncs"), ("cpu_us", "us CPU")):
            if (per_call := cell.per_call(counter)) is not None:
                rows.append(Row(f"{name}-{counter}", per_call, f"{unit}/call"))
    return rows


def goals(found: Findings) -> list[Row]:
    """The promises, each judged by ratios within this one run."""

    def of(stack: str, clients: int, figure: Callable[[Cell], float | None]) -> float | None:
        cell = found.cells.get((stack, clients))
        return None if cell is None else figure(cell)

    def subject(clients: int, figure: Callable[[Cell], float | None]) -> float | None:
        return of(SUBJECT.name, clients, figure)

    def ratio(above: float | None, below: float | None) -> float | None:
        return None if above is None or not below else above / below

    floor_s, idle_bytes = found.floor.quantile(0.5), found.idle_bytes.get(SUBJECT.name)
    one_p50, many_p50 = subject(ONE, _p50), subject(MANY, _p50)
    naive_rate, tls_p50 = of(NAIVE.name, MANY, _rate), of(MTLS_NEW.name, ONE, _p50)
    signatures = subject(MANY, lambda cell: cell.per_call("signatures"))
    syncs = subject(MANY, lambda cell: cell.per_call("syncs"))
    cpu_us = subject(MANY, lambda cell: cell.per_call("cpu_us"))
    crypto_us = mean(found.broker_crypto_s) * 1e6 if found.broker_crypto_s else None
    return [
        Row("one-client-p50-to-floor", ratio(one_p50, floor_s), "x floor", "<= 0.75"),
        Row("one-client-p99-to-floor", ratio(subject(ONE, _p99), floor_s), "x floor", "<= 1.7"),
        Row("64-clients-rate-to-naive", ratio(subject(MANY, _rate), naive_rate), "x naive", ">= 6"),
        Row("64-clients-p99-to-p50", ratio(subject(MANY, _p99), many_p50), "x p50", "<= 2"),
        Row("64-clients-slowest-share", subject(MANY, _slowest_share), "of a fair share", ">= 0.8"),
        Row("64-clients-cpu-to-crypto", ratio(cpu_us, crypto_us), "x amortised crypto", "<= 2.5"),
        Row("new-mtls-p50-to-ours", ratio(tls_p50, one_p50), "x ours", ">= 4.5"),
        Row("signatures-per-call", signatures, "signatures/call", "<= 0.02"),
        Row("fdatasyncs-per-call", syncs, "syncs/call", "<= 0.35"),
        Row("idle-connection", ratio(idle_bytes, 1024), "KiB", "<= 8"),
        Row("principal", ratio(found.principal_bytes, 1024), "KiB", "<= 16"),
        *_flood(found.forged),
    ]


def _flood(forged: Forged | None) -> list[Row]:
    missed = signatures = growth = None
    if forged is not None:
        missed, signatures = forged.sent - forged.refused, forged.signatures
        growth = forged.growth_bytes / 1024
    return [
        Row("forged-not-refused", missed, "requests", "<= 0"),
        Row("forged-signatures", signatures, "signatures", "<= 0"),
        Row("forged-growth", growth, "KiB", f"<= {FORGED_GROWTH_KIB}"),
    ]


def _p50(cell: Cell) -> float:
    return cell.quantile(0.5)


def _p99(cell: Cell) -> float:
    return cell.quantile(0.99)


def _slowest_share(cell: Cell) -> float:
    return cell.slowest_share


def _rate(cell: Cell) -> float:
    return cell.rate
