"""The same calls along the run, for plots: what ended when, how long it took, how full the windows were."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tabwarden_adapters.load.figures import quantile
from tabwarden_adapters.load.outcomes import Kind
from tabwarden_adapters.load.samples import Calls
from tabwarden_adapters.load.verdict import WINDOW_NS

STEPS: Final = 120  # as many as a plot can show


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of the run, which ends at `until_s`. `ended` counts calls by `Kind`; `p50_ms` and `p99_ms`
    are of accepted calls, from sending, None when there were none."""

    until_s: float
    ended: tuple[int, ...]
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Fill:
    """How many calls of a principal were accepted, and both sent and answered, in the minute up to `at_s`:
    the least and the most of all principals. A right limiter never seems too full, however slow answers are.
    """

    at_s: float
    least: int
    most: int


def steps(samples: Calls, lasted_ns: int, count: int = STEPS) -> list[Step]:
    """`count` pieces of the same length."""
    width = max(-(-lasted_ns // count), 1)
    ended = [[0] * len(Kind) for _ in range(count)]
    durations: list[list[int]] = [[] for _ in range(count)]
    for sample in samples:
        place = min(sample.ended // width, count - 1)
        ended[place][sample.kind] += 1
        if sample.kind is Kind.ACCEPTED:
            durations[place].append(sample.ended - sample.begun)
    made = []
    for number, values in enumerate(durations):
        values.sort()
        p50, p99 = (quantile(values, share) / 1e6 if values else None for share in (0.5, 0.99))
        made.append(Step((number + 1) * width / 1e9, tuple(ended[number]), p50, p99))
    return made


def fills(samples: Calls, principals: Sequence[str], lasted_ns: int, count: int = STEPS) -> list[Fill]:
    """At the end of each of `count` pieces. `principals` names each agent's."""
    accepted: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in principals}
    for sample in samples:
        if sample.kind is Kind.ACCEPTED and sample.asked is not None:
            sent, answered = accepted[principals[sample.agent]]
            sent.append(sample.asked)
            answered.append(sample.ended)
    for sent, answered in accepted.values():
        sent.sort()
        answered.sort()
    made = []
    for number in range(1, count + 1):
        at = lasted_ns * number // count
        counts = [
            max(bisect_right(answered, at) - bisect_right(sent, at - WINDOW_NS), 0)
            for sent, answered in accepted.values()
        ]
        made.append(Fill(at / 1e9, min(counts), max(counts)))
    return made


def curve(durations_ns: list[int]) -> list[tuple[float, float]]:
    """(share, milliseconds) of a percentile curve, by nines: from the median to the longest."""
    if not durations_ns:
        return []
    ordered = sorted(durations_ns)
    shares = [0.0, 0.25, 0.5]
    while (1 - shares[-1]) * len(ordered) > 1 and len(shares) < 40:
        shares.append(1 - (1 - shares[-1]) / 2)
    return [(share, quantile(ordered, share) / 1e6) for share in [*shares, 1.0]]
