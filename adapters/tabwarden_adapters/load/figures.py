"""Percentiles and fairness: what many numbers come down to."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

SHARES: Final = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds, by nearest rank."""

    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Fairness:
    """`slowest_share`: what the one with the least got, as a share of what each would have got if all had
    got the same; 1 is fair. `jain`: (sum x)^2 / (n * sum x^2), from 1/n (one has it all) to 1 (Jain, Chiu and
    Hawe 1984, DEC-TR-301). Both are None when nobody got anything."""

    slowest: str
    slowest_share: float | None
    jain: float | None


def quantile(ordered: Sequence[int], share: float) -> int:
    """The nearest-rank quantile of ascending values, of which there is one at least."""
    return ordered[min(max(math.ceil(share * len(ordered)) - 1, 0), len(ordered) - 1)]


def percentiles(durations_ns: Iterable[int]) -> Percentiles | None:
    """None when there are none."""
    ordered = sorted(durations_ns)
    if not ordered:
        return None
    p50, p90, p99 = (quantile(ordered, share) / 1e6 for share in SHARES)
    return Percentiles(len(ordered), p50, p90, p99, ordered[-1] / 1e6)


def fairness(got: dict[str, float]) -> Fairness:
    """Between all of `got`, which is not empty: a name, and how much it got for each one it stands for."""
    slowest = min(got, key=lambda name: (got[name], name))
    total, squares = sum(got.values()), sum(value * value for value in got.values())
    if not total:
        return Fairness(slowest, None, None)
    return Fairness(slowest, got[slowest] * len(got) / total, total * total / (len(got) * squares))
