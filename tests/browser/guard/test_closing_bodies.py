"""What stands behind all tabs: whose a request is, what goes by at once, and what must not be let go."""

from types import SimpleNamespace

import pytest
import trio
import trio.testing
from tabwarden.errors import ContentClass
from tabwarden_adapters.browser.cdp import Connection
from tabwarden_adapters.browser.cdp.transport import Oversized
from tabwarden_adapters.browser.closing_bodies import FRAMES, PASSED, ClosingBodies

from tests.browser.scripted import ScriptedTransport


class Guard:
    """Implements `Sender`: allows nothing until told, and keeps what it is asked."""

    def __init__(self) -> None:
        self.released = False
        self.allowed = False
        self.looks: list = []
        self.noted: list = []

    def look(self, request, then):
        self.looks.append(then)

    def allows(self, event):
        return self.allowed

    def note(self, event, content):
        self.noted.append(content)


class Browser:
    """Chromium's side, and `wanted` what policy wants."""

    def __init__(self, transport: ScriptedTransport) -> None:
        self.transport = transport
        self.wanted = True

    def pauses(self, request_id: str, body: str | None = "YQ==", frame: str = "F") -> None:
        request = {
            "url": "https://a.test/",
            "method": "POST",
            "headers": {},
            "initialPriority": "High",
            "referrerPolicy": "origin",
        }
        if body is not None:
            request |= {"hasPostData": True, "postDataEntries": [{"bytes": body}]}
        event = {"requestId": request_id, "request": request, "frameId": frame, "resourceType": "Ping"}
        self.transport.say(method="Fetch.requestPaused", params=event)

    async def answers(self, *expected: str) -> None:
        for one in expected:
            heard = await self.transport.heard()
            assert f"{heard['method'].removeprefix('Fetch.')} {heard['params'].get('requestId', '')}" == one


@pytest.fixture
async def browser():
    return Browser(ScriptedTransport())


@pytest.fixture
async def closing(nursery, browser):
    connection = Connection(browser.transport)
    await nursery.start(connection.run)
    closing = ClosingBodies(connection.root, lambda: browser.wanted)
    closing.follow()
    await browser.answers("enable ")
    return closing


def event(body: str = "YQ==", frame: str = "F"):
    entries = [SimpleNamespace(bytes=body)]
    request = SimpleNamespace(url="https://a.test/", method="POST", post_data_entries=entries)
    return SimpleNamespace(frame_id=frame, request=request)


async def test_what_goes_by_at_once(closing, browser):
    guard = Guard()
    closing.claim("F", guard)
    browser.pauses("persons", frame="other")
    browser.pauses("nothing", body=None)
    await browser.answers("continueRequest persons", "continueRequest nothing")
    closing.passed(event())
    browser.pauses("looked-at")
    await browser.answers("continueRequest looked-at")
    guard.released = True
    browser.pauses("persons-again")
    await browser.answers("continueRequest persons-again")
    lost = Oversized(
        b'{"method":"Fetch.requestPaused","params":{"requestId":"large","request":{"url":"https:'
    )
    browser.transport.say_raw(lost)
    await browser.answers("continueRequest large")
    assert guard.looks == []


async def test_what_no_guard_has_let_go_is_looked_at(closing, browser):
    guard = Guard()
    closing.claim("F", guard)
    closing.passed(event(body="Yg=="))  # another body
    closing.passed(event(frame="other"))
    for number in range(3):
        browser.pauses(f"one-{number}")
    await trio.testing.wait_all_tasks_blocked()
    first, second, third = guard.looks
    first(ContentClass.CARD)
    second(None)  # the grant has ended meanwhile
    guard.allowed = True
    third(None)
    await browser.answers("failRequest one-0", "failRequest one-1", "continueRequest one-2")
    assert guard.noted == [ContentClass.CARD, None]
    # Once only.
    closing.passed(event())
    for name in ("by", "held"):
        browser.pauses(name)
    await browser.answers("continueRequest by")
    await trio.testing.wait_all_tasks_blocked()
    assert len(guard.looks) == 4


async def test_the_end_of_looking_lets_nothing_go_that_is_held(closing, browser):
    guard = Guard()
    guard.allowed = True
    closing.claim("F", guard)
    browser.pauses("held")
    await trio.testing.wait_all_tasks_blocked()
    browser.wanted = False
    closing.follow()
    await browser.answers("failRequest held", "disable ")
    guard.looks[0](None)
    closing.passed(event())
    browser.wanted = True
    closing.follow()
    await browser.answers("enable ")
    browser.pauses("later")
    await trio.testing.wait_all_tasks_blocked()
    assert len(guard.looks) == 2


async def test_what_passed_under_another_policy_is_looked_at_again(closing, browser):
    guard = Guard()
    closing.claim("F", guard)
    closing.passed(event())
    closing.follow()
    browser.pauses("held")
    await trio.testing.wait_all_tasks_blocked()
    assert len(guard.looks) == 1


async def test_no_more_is_kept_than_there_is_room_for(closing, browser):
    guard = Guard()
    closing.claim("F", guard)
    for number in range(FRAMES):
        closing.claim(f"F-{number}", guard)
    browser.pauses("forgotten")
    await browser.answers("continueRequest forgotten")
    closing.claim("F", guard)
    closing.passed(event())
    for number in range(PASSED):
        closing.passed(event(frame=str(number)))
    browser.pauses("held")
    await trio.testing.wait_all_tasks_blocked()
    assert len(guard.looks) == 1
