"""Reading and inspecting real pages through the broker, beside the same work over CDP alone.

Each round makes a block of each kind, one after another, so that a noisy moment falls on all of them alike.
"""

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import trio
from tabwarden import AgentClient
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.browser import find_chromium

from tests.bench.load import percentile
from tests.bench.process import Child, child
from tests.bench.results import Row
from tests.bench.subject_client import descriptor

WARM = 3
OVERHEAD_MS = 2


@dataclass(frozen=True, slots=True)
class Subject:
    """One action on one page of `browser_pages`; a block is so many calls in a row, as agents make them."""

    id: str
    action: str
    path: str
    rounds: int
    quick: int
    block: int = 1


SMALL = Subject("browser-small", "read", "/small", rounds=40, quick=5, block=10)
SUBJECTS = (
    SMALL,
    Subject("browser-read-1mb", "read", "/megabyte", rounds=25, quick=5),
    Subject("browser-inspect-500", "inspect", "/controls", rounds=25, quick=5),
)


def _samples() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class Times:
    """Seconds of one subject: a bare evaluate, the script (in the page; as a CDP call), the call."""

    evaluate: "array[float]" = field(default_factory=_samples)
    page: "array[float]" = field(default_factory=_samples)
    script: "array[float]" = field(default_factory=_samples)
    call: "array[float]" = field(default_factory=_samples)


@dataclass(slots=True)
class BrowserFindings:
    """What was found, by a subject's id; `missing` says why there is nothing."""

    times: dict[str, Times] = field(default_factory=dict)
    product: str = ""
    missing: str = ""


def chromium_missing() -> str:
    """Why there is nothing to measure; empty when there is."""
    try:
        find_chromium()
    except ConfigurationError as error:
        return str(error)
    return ""


async def measure_browser(folder: Path, quick: bool) -> BrowserFindings:
    """Every subject in turn."""
    found = BrowserFindings(missing=chromium_missing())
    if found.missing:
        return found
    await trio.Path(folder).mkdir()
    async with child("tests.bench.browser_server", str(folder)) as server:
        ready = await server.answer()
        found.product = ready["product"]
        async with AgentClient(descriptor(ready, 0), deadline_s=30.0) as client:
            for subject in SUBJECTS:
                await client.call("navigate", {"url": ready["site"] + subject.path})
                await server.ask(do="take")
                times = found.times[subject.id] = Times()
                for _ in range(WARM):
                    await _round(subject, server, client, Times())
                for _ in range(subject.quick if quick else subject.rounds):
                    await _round(subject, server, client, times)
    return found


async def _round(subject: Subject, server: Child, client: AgentClient, times: Times) -> None:
    for kind, samples in (("evaluate", times.evaluate), ("page", times.page), ("script", times.script)):
        values = [] if kind == "evaluate" else [subject.action]
        samples.extend((await server.ask(**{"do": kind, "with": values, "times": subject.block}))["seconds"])
    for _ in range(subject.block):
        begun = trio.current_time()
        await client.call(subject.action)
        times.call.append(trio.current_time() - begun)


def p50(samples: "array[float]") -> float:
    """The median."""
    return percentile(sorted(samples), 0.5)


def browser_figures(found: BrowserFindings, floor_s: float) -> list[Row]:
    """Every measured figure, without goals. `floor_s` is what one call's cryptography costs in this run."""
    rows = []
    for name, times in found.times.items():
        evaluate = p50(times.evaluate)
        rows.append(Row(f"{name}-evaluate", evaluate * 1e3, "ms"))
        for kind, samples in (("page", times.page), ("cdp", times.script), ("total", times.call)):
            rows.append(Row(f"{name}-{kind}", p50(samples) * 1e3, "ms"))
            rows.append(Row(f"{name}-{kind}-to-evaluate", p50(samples) / evaluate, "x evaluate"))
        rows.append(Row(f"{name}-overhead", overhead(times) * 1e3, "ms"))
        rows.append(Row(f"{name}-overhead-to-floor", overhead(times) / floor_s, "x floor"))
    return rows


def browser_goals(found: BrowserFindings) -> list[Row]:
    """What the broker adds to the same work over CDP. No rows where there is no Chromium."""
    small = found.times.get(SMALL.id)
    if small is None:
        return []
    return [Row("browser-overhead", overhead(small) * 1e3, "ms", f"<= {OVERHEAD_MS}")]


def overhead(times: Times) -> float:
    """The median of what each call took longer than the script that was run for it in the same round."""
    return p50(array("d", (call - script for call, script in zip(times.call, times.script, strict=True))))
