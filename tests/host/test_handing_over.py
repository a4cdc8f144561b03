"""The action `handoff`: while the person has the tab, and after each way in which that can end."""

import pytest
import trio
from tabwarden.actions import Handoff
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.host import HandsOver, HostLink, StaticPolicy

from tests.browser.agent import Call
from tests.host.seen import SHOP, TAB, Person, Tab, Tabs


class Waiting(Call):
    """A call that waits for people, and counts how often."""

    waits = 0

    def waiting_for_person(self) -> trio.CancelScope:
        self.waits += 1
        return trio.CancelScope()


@pytest.fixture
def person() -> Person:
    person = Person()
    person.does_it = True
    return person


def hands_over(person: object, *tabs: Tab, link: HostLink | None = None) -> HandsOver:
    return HandsOver(person, link or HostLink(), Tabs(*tabs))


async def ends(adapter: HandsOver, call: Waiting) -> Code:
    with pytest.raises(ActionError) as error:
        await adapter(Handoff(reason="x"), call)
    return error.value.code


async def test_the_tab_is_the_persons_alone_meanwhile(person: Person) -> None:
    tab, call = Tab(), Waiting("handoff")
    hidden: list[int] = []
    person.meanwhile = lambda: hidden.append(tab.hidden)
    done = await hands_over(person, tab)(Handoff(reason='say "done" \u202e'), call)
    assert done.completed is True
    assert hidden == [1]
    assert (tab.hidden, tab.document) == (0, 1)
    assert person.asked == [("handoff", SHOP)]
    assert person.words == ['Agent agent-1 asks you to do this yourself. It wrote: "say \\"done\\" \\u202e"']
    assert call.effects == ["begin", "done"]
    assert call.waits == 1


async def test_a_person_who_does_not_do_it(person: Person) -> None:
    person.does_it = False
    assert await ends(hands_over(person, Tab()), Waiting("handoff")) is Code.USER_DENIED


async def test_an_engine_without_a_host_hands_nothing_over() -> None:
    assert await ends(hands_over(StaticPolicy(), Tab()), Waiting("handoff")) is Code.NOT_AVAILABLE


async def test_nothing_to_hand_over(person: Person) -> None:
    assert await ends(hands_over(person), Waiting("handoff")) is Code.UNKNOWN_SESSION
    assert await ends(hands_over(person, Tab(TAB, "about:blank")), Waiting("handoff")) is Code.TARGET_DENIED
    assert person.asked == []


async def test_what_ends_the_call_ends_the_handoff(person: Person) -> None:
    tab, call = Tab(), Waiting("handoff")
    person.meanwhile = lambda: setattr(call, "ended", Code.REVOKED)
    assert await ends(hands_over(person, tab), call) is Code.REVOKED
    link = HostLink()
    person.meanwhile = link.end
    assert await ends(hands_over(person, tab, link=link), Waiting("handoff")) is Code.POLICY_DENIED
    assert tab.hidden == 0


async def test_cancelled_the_question_goes_before_the_tab_comes_back(person: Person) -> None:
    tab = Tab()
    order: list[int] = []

    async def withdrawn_slowly() -> None:
        try:
            await trio.sleep_forever()
        finally:
            order.append(tab.hidden)

    person.meanwhile = withdrawn_slowly
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hands_over(person, tab), Handoff(reason="x"), Waiting("handoff"))
        await trio.testing.wait_all_tasks_blocked()
        assert tab.hidden == 1
        nursery.cancel_scope.cancel()
    assert order == [1]
    assert (tab.hidden, tab.document) == (0, 1)
