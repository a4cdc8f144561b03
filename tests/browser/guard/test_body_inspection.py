"""The bounds of looking at bodies, without a browser: lanes, time, cancellation, inspectors that fail."""

from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.errors import ActionError, Code, ContentClass
from tabwarden.model import Caller
from tabwarden_adapters.browser.body_inspection import (
    HELD_S,
    LANE_BYTES,
    LANE_REQUESTS,
    BodyInspection,
    BodyLane,
    body_inspection,
    body_lane,
)
from tabwarden_adapters.browser.grant_rules import GrantRules
from tabwarden_adapters.browser.request_bodies import MAX_BODY_BYTES

from tests.browser.guard.agents import Rules
from tests.browser.guard.sending import Looker
from tests.browser.guard.test_request_bodies import request

ONE, TWO = Caller("one", 1), Caller("two", 1)
UNFINISHED = ContentClass.INCOMPLETE


@pytest.fixture
def looker():
    return Looker("fine")


@pytest.fixture
async def inspection(nursery, looker):
    return await body_inspection(nursery, looker)


class Ends:
    """What was told, in order."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._more = trio.lowlevel.ParkingLot()

    def then(self, name: str):
        def tell(content):
            self.told.append((name, content))
            self._more.unpark_all()

        return tell

    async def wait(self, times: int) -> list[Any]:
        while len(self.told) < times:
            await self._more.park()
        return self.told


async def look(inspection, body: bytes, ends: Ends, name: str = "x") -> None:
    BodyLane(inspection, ONE).look(request(body), ends.then(name))


async def test_what_is_told(inspection, looker):
    ends = Ends()
    lane = body_lane(inspection, ONE)
    for number, body in enumerate((b"fine", b"secret", b"\xff", b"fine" * 2000)):
        lane.look(request(body), ends.then(str(number)))
    assert dict(await ends.wait(4)) == {
        "0": None,
        "1": ContentClass.CORPORATE,
        "2": UNFINISHED,
        "3": ContentClass.CORPORATE,
    }
    assert looker.callers == {ONE}
    assert not lane.wants(request())
    assert lane.wants(request(b"x"))
    looker.wanted = False
    assert not lane.wants(request(b"x"))


@pytest.mark.parametrize("instead", [RuntimeError("text"), 1, True, b"bytes"])
async def test_an_inspector_that_fails_denies(nursery, instead):
    class Failing(Looker):
        def looks_at(self, direction):
            if isinstance(instead, Exception):
                raise instead
            return instead

        async def inspect(self, text, *, direction, caller=None):
            if isinstance(instead, Exception):
                raise instead
            return instead

    inspection = await body_inspection(nursery, Failing())
    assert inspection.wanted()
    ends = Ends()
    await look(inspection, b"fine", ends)
    assert await ends.wait(1) == [("x", UNFINISHED)]


@pytest.mark.parametrize(
    "error",
    [
        ActionError(Code.CONTENT_DENIED, rule="dlp.x"),
        ActionError(Code.FAILURE, content_class=ContentClass.CARD),
    ],
)
async def test_a_denial_without_a_class_is_incomplete(nursery, error):
    class Denying(Looker):
        async def inspect(self, text, *, direction, caller=None):
            raise error

    ends = Ends()
    await look(await body_inspection(nursery, Denying()), b"fine", ends)
    assert await ends.wait(1) == [("x", UNFINISHED)]


async def test_an_inspector_that_knows_no_directions_gets_no_bodies(nursery):
    class Plain:
        async def inspect(self, text, *, direction, caller=None):
            raise AssertionError

    assert await body_inspection(nursery, Plain()) is None
    assert await body_inspection(nursery, None) is None
    assert body_lane(None, ONE) is None


async def test_one_that_takes_too_long(inspection, looker, autojump_clock):
    looker.held = trio.Event()
    ends = Ends()
    began = trio.current_time()
    await look(inspection, b"fine", ends)
    await look(inspection, b"fine", ends, "behind")
    assert sorted(await ends.wait(2)) == [("behind", UNFINISHED), ("x", UNFINISHED)]
    assert trio.current_time() - began == pytest.approx(HELD_S)
    looker.held.set()
    await look(inspection, b"fine", ends, "later")
    assert (await ends.wait(3))[2] == ("later", None)


async def test_a_page_that_sends_many_waits_for_itself(inspection, looker):
    looker.held = trio.Event()
    ends = Ends()
    busy, other = BodyLane(inspection, ONE), BodyLane(inspection, TWO)
    for number in range(LANE_REQUESTS + 2):
        busy.look(request(b"fine"), ends.then(f"busy-{number}"))
    assert ends.told == [(f"busy-{number}", UNFINISHED) for number in (LANE_REQUESTS, LANE_REQUESTS + 1)]
    await looker.wait_asked()
    other.look(request(b"fine"), ends.then("other"))
    await trio.testing.wait_all_tasks_blocked()
    looker.held.set()
    told = [name for name, content in await ends.wait(LANE_REQUESTS + 3) if content is None]
    assert told.index("other") == 1  # behind the one that was looked at, not behind all of them
    assert len(told) == LANE_REQUESTS + 1
    busy.look(request(b"fine"), ends.then("again"))
    assert (await ends.wait(LANE_REQUESTS + 4))[-1] == ("again", None)


async def test_bytes_at_once(inspection, looker):
    looker.held = trio.Event()
    ends = Ends()
    lane = BodyLane(inspection, ONE)
    large = request(b"x" * (MAX_BODY_BYTES - 8))
    for number in range(LANE_BYTES // MAX_BODY_BYTES + 1):
        lane.look(large, ends.then(str(number)))
    assert ends.told == [(str(LANE_BYTES // MAX_BODY_BYTES), UNFINISHED)]
    lane.look(request(b"x" * (MAX_BODY_BYTES + 8)), ends.then("too long"))
    assert ends.told[1:] == [("too long", UNFINISHED)]
    looker.held.set()
    await ends.wait(LANE_BYTES // MAX_BODY_BYTES + 2)
    lane.look(large, ends.then("again"))
    assert (await ends.wait(5))[-1] == ("again", ContentClass.CORPORATE)


async def test_before_its_beginning_and_after_its_end_everything_is_refused(looker):
    ends = Ends()
    looker.held = trio.Event()
    inspection = BodyInspection(looker)
    await look(inspection, b"fine", ends, "before")
    async with trio.open_nursery() as inner:
        await inner.start(inspection.run)
        await look(inspection, b"fine", ends, "held")
        await look(inspection, b"fine", ends, "waiting")
        await looker.wait_asked()
        inner.cancel_scope.cancel()
    assert sorted(ends.told) == [("before", UNFINISHED), ("held", UNFINISHED), ("waiting", UNFINISHED)]
    await look(inspection, b"fine", ends, "after")
    assert ends.told[-1] == ("after", UNFINISHED)


async def test_one_that_cannot_be_told_ends_no_others(inspection):
    ends = Ends()
    BodyLane(inspection, ONE).look(request(b"fine"), lambda content: 1 / 0)
    await look(inspection, b"fine", ends)
    assert await ends.wait(1) == [("x", None)]


def test_a_grant_that_has_ended_is_allowed_nothing_whatever_policy_says():
    rules = Rules()
    rules.pages["one"] = {"a.test:80"}
    grant = GrantRules(rules, ONE)

    def allowed():
        page = "http://a.test:80/"
        return [
            grant.page(page),
            grant.resource(page),
            grant.allowed("a.test", 80),
            grant.named("a.test", 80),
        ]

    assert allowed() == [True] * 4
    grant.end()
    assert allowed() == [False] * 4
