"""Many grants and revocations: what was found, and the goals that it is held to."""

from dataclasses import dataclass, field
from pathlib import Path

import trio
from rich.console import Console

from tests.bench.load import percentile
from tests.bench.process import child
from tests.bench.results import Row

GRANT_ROUNDS, REVOCATIONS = 5, 200
QUICK_GRANT_ROUNDS, QUICK_REVOCATIONS = 2, 8


@dataclass(slots=True)
class RightsFindings:
    """Seconds, by what was measured; see `rights_run`."""

    grants: dict[str, list[float]] = field(default_factory=dict)
    revocation: dict[str, list[float]] = field(default_factory=dict)


async def measure_rights(folder: Path, quick: bool) -> RightsFindings:
    """Both, in one process, one after the other."""
    await trio.Path(folder).mkdir(mode=0o700)
    async with child("tests.bench.rights_run", str(folder)) as process:
        rounds = (QUICK_GRANT_ROUNDS, QUICK_REVOCATIONS) if quick else (GRANT_ROUNDS, REVOCATIONS)
        return RightsFindings(
            grants=await process.ask(do="grants", rounds=rounds[0]),
            revocation=await process.ask(do="revocation", rounds=rounds[1]),
        )


def rights_figures(found: RightsFindings) -> list[Row]:
    """Every measured figure, without goals."""
    return [
        Row(f"{group}-{name}-{shown}", _quantile(samples, share) * 1e3, "ms")
        for group, cells in (("grants", found.grants), ("revocation", found.revocation))
        for name, samples in cells.items()
        for shown, share in (("p50", 0.5), ("p99", 0.99))
    ]


def rights_goals(found: RightsFindings) -> list[Row]:
    """Publishing is judged by its processor time, which others on the machine change little."""
    grants, revocation = found.grants, found.revocation
    one, bare = revocation["one"], revocation["bare"]
    decisions = _p50(grants["many"]) / _p50(grants["few"])
    p99 = _quantile(one, 0.99) / _quantile(bare, 0.99)
    return [
        Row("grants-10000-publish", _p50(grants["publish-cpu"]), "s CPU", "<= 1"),
        Row("grants-10000-decision-to-10", decisions, "x 10 grants", "<= 1.3"),
        Row("revocation-p50-to-bare", _p50(one) / _p50(bare), "x bare", "<= 4"),
        Row("revocation-p99", _quantile(one, 0.99) * 1e3, "ms", "<= 5"),
        # Of each its slow rounds: on a busy machine, what the scheduler did to them.
        Row("revocation-p99-to-bare", p99, "x bare", "<= 8"),
    ]


def show_rights(found: RightsFindings) -> None:
    """Print what was found."""
    console = Console(soft_wrap=False, width=None if Console().is_terminal else 120)
    grants, revocation = found.grants, found.revocation
    console.print(
        f"10,000 grants: publish {_p50(grants['publish']):.2f} s "
        f"({_p50(grants['publish-cpu']):.2f} s CPU), of that reconcile "
        f"{_p50(grants['reconcile']) * 1e3:.0f} ms; a decision {_p50(grants['many']) * 1e6:.0f} us "
        f"(with 10 grants {_p50(grants['few']) * 1e6:.0f} us)"
    )
    shown = ", ".join(
        f"{what} {_p50(revocation[name]) * 1e3:.2f} / {_quantile(revocation[name], 0.99) * 1e3:.2f}"
        for name, what in (("one", "one agent's"), ("each", "64 agents'"), ("bare", "tasks alone"))
    )
    console.print(f"revocation to last effect, 64 calls in flight, p50 / p99 in ms: {shown}")


def _quantile(samples: list[float], share: float) -> float:
    return percentile(sorted(samples), share)


def _p50(samples: list[float]) -> float:
    return _quantile(samples, 0.5)
