"""Listing tabs and telling a page's title, beside what an agent author would use instead, on one Chromium.

    python -m tests.bench.peers_measure

Each round makes a block of each, so that a noisy moment falls on all of them alike. The peers check no
rights, sign nothing and keep no record.
"""

import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trio
from tabwarden import AgentClient

from tests.bench.browser_measure import chromium_missing, p50
from tests.bench.peer_clients import Chromedriver, PlaywrightMcp, peers_missing
from tests.bench.process import child
from tests.bench.results import Row
from tests.bench.subject_client import descriptor

ROUNDS, QUICK_ROUNDS, BLOCK = 20, 3, 10
PAGE = "/small"


def _samples() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class PeerFindings:
    """Seconds of each call; `missing` says why there are none."""

    sessions: "array[float]" = field(default_factory=_samples)
    read: "array[float]" = field(default_factory=_samples)
    playwright: "array[float]" = field(default_factory=_samples)
    chromedriver: "array[float]" = field(default_factory=_samples)
    missing: str = ""


async def measure_peers(folder: Path, quick: bool) -> PeerFindings:
    """Two tabs of one Chromium: the agent's, in its own context, and the peers'."""
    found = PeerFindings(missing=chromium_missing() or peers_missing())
    if found.missing:
        return found
    await trio.Path(folder).mkdir()
    async with child("tests.bench.browser_server", str(folder), "--debugging-port") as server:
        ready = await server.answer()
        async with AgentClient(descriptor(ready, 0), deadline_s=30.0) as client:
            await client.call("navigate", {"url": ready["site"] + PAGE})
            with (
                PlaywrightMcp(ready["debugging_port"]) as mcp,
                Chromedriver(ready["debugging_port"]) as driver,
            ):
                driver.show(ready["site"] + PAGE)
                (title,) = {tab["title"] for tab in await client.call("sessions")}
                # All of them tell of the same page.
                assert driver.title() == title
                assert title in mcp.tabs()
                for number in range(-1, QUICK_ROUNDS if quick else ROUNDS):  # the first warms up
                    await _calls(client, "sessions", found.sessions)
                    _asked(mcp.tabs, found.playwright)
                    await _calls(client, "read", found.read)
                    _asked(driver.title, found.chromedriver)
                    if number < 0:
                        found = PeerFindings()
    return found


async def _calls(client: AgentClient, action: str, samples: "array[float]") -> None:
    for _ in range(BLOCK):
        begun = time.perf_counter()
        await client.call(action)
        samples.append(time.perf_counter() - begun)


def _asked(ask: Callable[[], str], samples: "array[float]") -> None:
    """It blocks: nothing else runs in this process."""
    for _ in range(BLOCK):
        begun = time.perf_counter()
        ask()
        samples.append(time.perf_counter() - begun)


def peers_goals(found: PeerFindings) -> list[Row]:
    """How many times as quick. No rows where there is nothing to compare with."""
    if found.missing:
        return []
    title = min(p50(found.sessions), p50(found.read))
    return [
        Row("peers-tabs", p50(found.playwright) / p50(found.sessions), "x @playwright/mcp", ">= 3"),
        Row("peers-title", p50(found.chromedriver) / title, "x chromedriver", ">= 1.5"),
    ]


def peers_figures(found: PeerFindings) -> list[Row]:
    """Every measured figure, without goals."""
    if found.missing:
        return []
    return [
        Row("peers-sessions", p50(found.sessions) * 1e3, "ms"),
        Row("peers-read", p50(found.read) * 1e3, "ms"),
        Row("peers-playwright-tabs", p50(found.playwright) * 1e3, "ms"),
        Row("peers-chromedriver-title", p50(found.chromedriver) * 1e3, "ms"),
    ]


def peers_line(found: PeerFindings) -> str:
    """For people."""
    if found.missing:
        return f"peers: not measured: {found.missing}"
    return (
        f"peers, p50: sessions {p50(found.sessions) * 1e3:.2f} ms and read {p50(found.read) * 1e3:.2f} ms; "
        f"@playwright/mcp's list of tabs {p50(found.playwright) * 1e3:.2f} ms; "
        f"chromedriver's title {p50(found.chromedriver) * 1e3:.2f} ms"
    )


def main() -> int:
    """These alone."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        found = trio.run(measure_peers, Path(folder) / "peers", "--quick" in sys.argv)
    print(peers_line(found))  # noqa: T201
    for row in peers_goals(found):
        print(f"  {row.id}: {row.value:.2f} {row.unit} (goal {row.goal})")  # noqa: T201
    return 1 if found.missing or not all(row.holds for row in peers_goals(found)) else 0


if __name__ == "__main__":
    sys.exit(main())
