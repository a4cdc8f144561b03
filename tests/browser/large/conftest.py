"""What a large page costs us: bytes that arrive, and memory that stays. Sizes only: no clocks."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tabwarden_adapters.browser import Chromium, reading
from tabwarden_adapters.browser.cdp import Transport

from tests.browser.agent import Agent
from tests.browser.site import Site

MB = 1_000_000


class Meter:
    """Implements `Transport` around another: counts what arrives."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.arrived = 0

    async def receive(self) -> bytes | None:
        message = await self._inner.receive()
        self.arrived += len(message or b"")
        return message

    async def send(self, message: bytes) -> None:
        await self._inner.send(message)

    async def aclose(self) -> None:
        await self._inner.aclose()

    @contextmanager
    def at_most(self, count: int) -> Iterator[None]:
        """No more than so many bytes arrive while the block runs."""
        before = self.arrived
        yield
        assert self.arrived - before <= count


class Memory:
    """What Python holds and held, while the block runs."""

    kept = 0
    peak = 0


@contextmanager
def measured() -> Iterator[Memory]:
    """Bytes that the block leaves behind, and the most that it needed."""
    memory = Memory()
    gc.collect()
    tracemalloc.start()
    try:
        yield memory
        memory.peak = tracemalloc.get_traced_memory()[1]
        gc.collect()
        memory.kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is right must not depend on how busy the machine is that runs the tests."""
    monkeypatch.setattr(reading, "BUDGET_MS", 60_000)


@pytest.fixture
def meter(chromium: Chromium, agent: Agent) -> Meter:
    connection = chromium.connection
    connection._transport = meter = Meter(connection._transport)
    return meter


class Other:
    """Another session, of another site and so of another process, that must not notice anything."""

    def __init__(self, agent: Agent, session_id: str) -> None:
        self._agent = agent
        self.session_id = session_id

    async def reads(self) -> None:
        assert (await self._agent.call("read", sessionId=self.session_id))["text"] == "other"


@pytest.fixture
async def other(agent: Agent, site: Site) -> Other:
    """In the background; in front is a tab of its own for the test."""
    site.pages["/other"] = "<title>Other</title><p>other</p>"
    session_id = agent.host.get_context(None).session_id
    await agent.call("navigate", url=site.url("/other"))
    await agent.call("tabs:create")
    return Other(agent, session_id)
