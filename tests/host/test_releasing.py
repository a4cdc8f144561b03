"""What leaves for an agent is told to the person first; what is not told does not leave."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from tabwarden import actions
from tabwarden.actions import parse_arguments
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.dlp import Scrubber
from tabwarden_adapters.host import Agreements, Answer, Releases, SiteMode, StaticPolicy

from tests.browser.agent import ANYBODY, Call
from tests.host.seen import BANK, OTHER, SHOP, TAB, Person, Tab, Tabs
from tests.support.fakes import ManualClock

RESULTS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "read": ({}, actions.PageText("Card 4111 1111 1111 1111"), "Card [card]"),
    "inspect": (
        {},
        actions.Controls([actions.Control("r1", "button", "Go", "#go")]),
        '[{"ref":"r1","role":"button","name":"Go","selector":"#go"}]',
    ),
    "ai": ({"prompt": "why?"}, actions.AiText("because"), "why?\n\nbecause"),
    "screenshot": (
        {},
        actions.Picture("aa", "image/png", 800, 600, 3),
        "[a picture of 800 × 600, 3 places masked]",  # noqa: RUF001
    ),
}


SCRUB = Scrubber(seconds=60)


class Desk:
    def __init__(self, person: Any, scrub: Callable[[str], str | None] = SCRUB) -> None:
        self.person = person
        self.tabs = Tabs(Tab(), Tab(OTHER, f"{BANK}/"))
        self.agreements = Agreements(lambda: 1, self.tabs.exists)
        self.releases = Releases(person, self.tabs, self.agreements, scrub, ManualClock(wall=77))
        self.done: list[Any] = []

    async def call(self, name: str, result: Any, **args: Any) -> Any:
        async def plain(arguments: Any, context: Any) -> Any:
            self.done.append(arguments)
            return result

        _, parsed = parse_arguments(name, args)
        return await self.releases.around({name: plain})[name](parsed, Call(name))


@pytest.fixture
def person() -> Person:
    person = Person()
    person.modes = {SHOP: SiteMode.ASK, BANK: SiteMode.ALLOWED}
    person.logs = True
    return person


@pytest.mark.parametrize("name", RESULTS)
async def test_what_leaves_is_told_without_its_secrets(person: Person, name: str) -> None:
    args, result, told = RESULTS[name]
    desk = Desk(person)
    assert await desk.call(name, result, **args) is result
    (entry,) = person.logged
    assert (entry.type, entry.origin, entry.text) == (name, SHOP, told)
    assert (entry.at_ms, entry.tokens, entry.meta) == (77, -(-len(told) // 4), {"agent": "agent-1"})
    assert desk.done[0].session_id == TAB  # the tab that it is told of is the one that it is of


@pytest.mark.parametrize("name", RESULTS)
async def test_what_is_not_told_does_not_leave(person: Person, name: str) -> None:
    args, result, _ = RESULTS[name]
    person.logs = False
    with pytest.raises(ActionError) as error:
        await Desk(person).call(name, result, **args)
    assert error.value.code is Code.CONTENT_DENIED
    assert error.value.committed is (None if name == "ai" else False)


async def test_what_could_not_be_looked_through_is_not_told_and_does_not_leave(person: Person) -> None:
    with pytest.raises(ActionError) as error:
        await Desk(person, lambda text: None).call("read", RESULTS["read"][1])
    assert error.value.code is Code.CONTENT_DENIED
    assert person.logged == []


async def test_a_site_that_was_switched_off_meanwhile(person: Person) -> None:
    person.modes = {}
    with pytest.raises(ActionError) as error:
        await Desk(person).call("read", RESULTS["read"][1])
    assert error.value.code is Code.POLICY_DENIED
    assert person.logged == []


async def test_a_policy_without_a_log_is_told_nothing() -> None:
    desk = Desk(StaticPolicy({SHOP: SiteMode.ALLOWED}))
    assert await desk.call("read", RESULTS["read"][1])


async def test_no_tab(person: Person) -> None:
    desk = Desk(person)
    desk.tabs.all = []
    with pytest.raises(ActionError) as error:
        await desk.call("read", RESULTS["read"][1])
    assert error.value.code is Code.UNKNOWN_SESSION
    assert desk.done == []


async def test_titles_are_told_of_sites_that_may_be_seen(person: Person) -> None:
    desk = Desk(person)
    listed = [actions.Session(TAB, "Shop", True), actions.Session(OTHER, "Bank", False)]

    async def titles() -> list[str]:
        return [one.title for one in await desk.call("sessions", listed)]

    assert await titles() == ["", "Bank"]
    desk.agreements.agree(ANYBODY, SHOP, Answer.YES, TAB)
    assert await titles() == ["Shop", "Bank"]
    person.modes = {SHOP: SiteMode.OFF}
    assert await titles() == ["", ""]
    desk.tabs.all = []
    person.modes = {SHOP: SiteMode.ALLOWED, BANK: SiteMode.ALLOWED, "null": SiteMode.ALLOWED}
    assert await titles() == ["", ""]
    await trio.lowlevel.checkpoint()


async def test_a_title_is_not_judged_by_the_site_that_came_after_it(person: Person) -> None:
    desk = Desk(person)
    (shop, _) = desk.tabs.all

    async def plain(arguments: Any, context: Any) -> Any:
        # Read from the shop, which is asked about; by the time of its judging the bank is there.
        listed = [actions.Session(TAB, "Shop", True)]
        shop.document, shop.url = shop.document + 1, f"{BANK}/"
        await trio.lowlevel.checkpoint()
        return listed

    _, parsed = parse_arguments("sessions", {})
    (told,) = await desk.releases.around({"sessions": plain})["sessions"](parsed, Call("sessions"))
    assert told.title == ""


@pytest.mark.parametrize("name", RESULTS)
async def test_what_another_document_may_have_said_is_not_told(person: Person, name: str) -> None:
    args, result, _ = RESULTS[name]
    desk = Desk(person)

    async def plain(arguments: Any, context: Any) -> Any:
        desk.tabs.all[0].document += 1
        await trio.lowlevel.checkpoint()
        return result

    _, parsed = parse_arguments(name, args)
    with pytest.raises(ActionError) as error:
        await desk.releases.around({name: plain})[name](parsed, Call(name))
    assert error.value.code is Code.STALE
    assert error.value.committed is (None if name == "ai" else False)
    assert person.logged == []
