"""The second look at what engines log."""

import threading
from typing import Any

import pytest
import trio
from tabwarden_adapters.cli.host_scrubber import CHARACTERS, HostScrubber, NotLooked
from tabwarden_adapters.host import HostLimits, SeenLog
from tabwarden_adapters.host.values import LogBody

CARD = "4111 1111 1111 1111"


class Nothing:
    """A `Catalogue` that knows no credentials."""

    def places(self, text: bytes, seconds: float) -> list[tuple[int, int]]:
        return []


class Panic(BaseException):
    """What native code raises."""


class Broken:
    """A `Catalogue` that cannot look."""

    def places(self, text: bytes, seconds: float) -> list[tuple[int, int]]:
        raise Panic


async def logged(scrubber: HostScrubber, text: str) -> Any:
    log = SeenLog(scrubber, HostLimits())
    entry = await log.take(
        LogBody(type="prompt", origin="https://a.test", text=text, tokens=1, at=1), "https://a.test", 1
    )
    return entry.text, entry.clean, log.counts.withheld


async def test_until_the_detectors_are_loaded_texts_are_withheld() -> None:
    scrubber = HostScrubber()
    go, begun = threading.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def make() -> Nothing:
        token.run_sync_soon(begun.set)
        go.wait(30)
        return Nothing()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(scrubber.load, make)
        await begun.wait()
        assert await logged(scrubber, "harmless") == (None, None, 1)  # and the loop went on meanwhile
        go.set()
    assert await logged(scrubber, "harmless") == ("harmless", True, 0)
    assert await logged(scrubber, f"my card is {CARD}.") == ("my card is [card].", False, 0)


async def test_detectors_that_cannot_be_loaded_leave_everything_withheld() -> None:
    def make() -> Nothing:
        raise Panic

    scrubber = HostScrubber()
    assert await scrubber.load(make) is False
    assert await logged(scrubber, "harmless") == (None, None, 1)


async def test_what_cannot_be_looked_through_is_withheld_and_not_taken_for_unclean() -> None:
    scrubber = HostScrubber()
    assert await scrubber.load(Broken) is True
    assert await logged(scrubber, "harmless") == (None, None, 1)
    assert await logged(scrubber, "[withheld]") == ("[withheld]", True, 0)


async def test_a_text_that_is_too_long_is_withheld() -> None:
    scrubber = HostScrubber()
    await scrubber.load(Nothing)
    with pytest.raises(NotLooked):
        await scrubber("x" * (CHARACTERS + 1))
