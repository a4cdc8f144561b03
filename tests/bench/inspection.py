"""What looking through ten thousand characters costs, once the catalogue is loaded."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio
from tabwarden_adapters.dlp import InspectionLimits, compile_rules, start_inspector

from tests.bench.results import Row
from tests.dlp.samples import WORDS, clean_lines
from tests.dlp.support import rule

CHARACTERS = 10_000
ROUNDS, QUICK_ROUNDS, WARM = 400, 40, 20
LOAD_S = 60.0
# As many rules as a company may have.
RULES = [
    rule("words", *(f"codename {number}" for number in range(50)), id="names"),
    rule("pattern", r"EMP-\d{6}"),
]


@dataclass(slots=True)
class Inspections:
    """Seconds: of loading, and of each inspection of text like a page's, without and with corporate rules,
    and of nothing but hashes, numbers and encoded pictures."""

    load_s: float = 0.0
    page: list[float] = field(default_factory=list)
    ruled: list[float] = field(default_factory=list)
    dense: list[float] = field(default_factory=list)


def page_text() -> str:
    """Sentences, and among each four of them something that looks like more."""
    chosen = random.Random(7)
    lines = [
        line
        for other in clean_lines(seed=7, count=400)
        for line in (*(" ".join(chosen.choices(WORDS, k=12)) for _ in range(4)), other)
    ]
    return "\n".join(lines)[:CHARACTERS]


async def measure_inspection(quick: bool) -> Inspections:
    """Load the catalogue and look through clean texts."""
    found = Inspections()
    dense = "\n".join(clean_lines(seed=8, count=400))[:CHARACTERS]
    async with trio.open_nursery() as nursery:
        limits = InspectionLimits(wait_for_catalogue_s=LOAD_S)
        inspector = start_inspector(nursery, limits=limits)
        begun = time.perf_counter()
        if not await inspector.settled():
            raise RuntimeError("the catalogue could not be loaded")
        found.load_s = time.perf_counter() - begun
        for samples, text, rules in (
            (found.page, page_text(), []),
            (found.ruled, page_text(), RULES),
            (found.dense, dense, []),
        ):
            inspector.use(compile_rules(rules))
            for number in range(WARM + (QUICK_ROUNDS if quick else ROUNDS)):
                begun = time.perf_counter()
                await inspector.examine(text, direction="from-page")
                if number >= WARM:
                    samples.append(time.perf_counter() - begun)
        nursery.cancel_scope.cancel()
    return found


def inspection_goals(found: Inspections) -> list[Row]:
    """The promise."""
    return [Row("inspect-10k-p50", _quantile(found.page, 0.5), "ms", "<= 1")]


def inspection_figures(found: Inspections) -> list[Row]:
    """What is only told."""
    return [
        Row("inspect-10k-p99", _quantile(found.page, 0.99), "ms"),
        Row("inspect-10k-rules-p50", _quantile(found.ruled, 0.5), "ms"),
        Row("inspect-10k-dense-p50", _quantile(found.dense, 0.5), "ms"),
        Row("inspect-load", found.load_s, "s"),
    ]


def _quantile(samples: Sequence[float], part: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1e3
