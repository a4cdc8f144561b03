"""Each way in which a call that asks can end, and what an answer counts for afterwards."""

from contextlib import contextmanager
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Fact, Reach
from tabwarden.errors import Code, ConfigurationError
from tabwarden.model import Authorization, Caller
from tabwarden_adapters.approvals import ApprovingAuthorizer

from tests.approvals.support import (
    CLICK,
    ONE,
    OTHER_TAB,
    TAB,
    Desk,
    FakeApprover,
    FakePolicy,
    FakeTabs,
    ends,
    yes,
)


async def test_what_is_denied_or_does_not_ask_is_the_policys_alone() -> None:
    desk = Desk("click", policy=FakePolicy("click", allows=("read",)))
    assert await ends(desk, "type", {"selector": "#a", "text": "x"}) == (Code.POLICY_DENIED, "fake.no")
    answer = await desk("read")
    assert answer.grants("browser:read")
    assert answer.rule == "fake.yes"
    assert desk.approver.asked == []


async def test_an_approver_denies_by_default() -> None:
    desk = Desk("click")
    assert await ends(desk, "click", CLICK) == (Code.USER_DENIED, "fake.ask")
    assert len(desk.approver.asked) == 1


async def test_a_yes_is_for_this_call_only() -> None:
    desk = Desk("click", approver=yes())
    for number in (1, 2):
        answer = await desk("click", CLICK)
        assert answer.grants("browser:interact")
        assert answer.rule == "approval:once fake.ask"
        assert answer.still_holds is not None
        assert answer.still_holds()
        assert len(desk.approver.asked) == number
    assert desk.book.remembered(1, 0) == ()


async def test_without_anybody_to_ask_nothing_is_allowed() -> None:
    policy = FakePolicy("click")
    alone = ApprovingAuthorizer(
        policy, None, book=Desk().book, clock=Desk().clock, policy_version=lambda: 1, place=FakeTabs()
    )
    desk = Desk(policy=policy)
    desk.authorize = alone
    assert await ends(desk, "click", CLICK) == (Code.NO_APPROVER, "fake.ask")
    bare = await policy("click", None, "click", None)
    assert bare.allowed
    assert not bare.grants("browser:interact")


async def test_nobody_answers_in_time(autojump_clock: object) -> None:
    approver = FakeApprover()
    approver.hold = trio.Event()
    desk = Desk("click", approver=approver)
    start = trio.current_time()
    assert await ends(desk, "click", CLICK) == (Code.APPROVAL_TIMEOUT, "fake.ask")
    assert trio.current_time() - start == 300
    assert approver.withdrawn == approver.asked


async def test_its_limit_ends_before_the_brokers_own(autojump_clock: object) -> None:
    approver = FakeApprover()
    approver.hold = trio.Event()
    desk = Desk("click", approver=approver)

    @contextmanager
    def waiting() -> Any:
        with trio.fail_after(60):
            yield

    assert await ends(desk, "click", CLICK, waiting=waiting) == (Code.APPROVAL_TIMEOUT, "fake.ask")


async def test_a_person_is_asked_inside_the_wait_and_nowhere_else() -> None:
    inside: list[bool] = []

    @contextmanager
    def waiting() -> Any:
        inside.append(True)
        yield
        inside.append(False)

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        assert inside == [True]
        return request.allow()

    desk = Desk("click", approver=FakeApprover(answer))
    assert (await desk("click", CLICK, waiting=waiting)).allowed
    assert inside == [True, False]


async def test_what_a_person_is_asked() -> None:
    desk = Desk("type", "navigate", "sessions")
    await desk("type", {"selector": "#a", "text": "x\n", "sessionId": TAB})
    [one] = desk.approver.asked
    assert (one.caller, one.action, one.policy_scope, one.rule) == (ONE, "type", "type", "fake.ask")
    assert (one.session_id, one.origin, one.policy_version) == (TAB, "https://a.test", 1)
    assert one.summary == "Set the text of one field; never submits."
    assert one.facts == (
        Fact("element", '"#a"', by_agent=True),
        Fact("text to type", r'"x\n"', by_agent=True),
    )
    assert one.reaches == set(Reach)
    assert one.expires_at_ms - one.asked_at_ms == 300_000
    await desk("type", {"selector": "#a", "text": "x"})
    assert desk.approver.asked[-1].reaches == {Reach.ONCE, Reach.ORIGIN}
    await desk("navigate", {"url": "https://User.test:443/x", "sessionId": TAB})
    one = desk.approver.asked[-1]
    assert one.origin == "https://user.test"
    assert one.facts[0] == Fact("the tab is now at", "https://a.test", by_agent=False)
    await desk("sessions", caller=Caller(None, None))
    one = desk.approver.asked[-1]
    assert (one.origin, one.session_id, one.reaches) == (None, None, {Reach.ONCE})


async def test_a_tab_that_is_not_there_is_not_asked_about() -> None:
    desk = Desk("click", approver=yes())
    code, _ = await ends(desk, "click", {"selector": "#a", "sessionId": OTHER_TAB})
    assert code is Code.UNKNOWN_SESSION
    assert desk.approver.asked == []


async def test_a_policy_that_changed_while_a_person_thought() -> None:
    desk = Desk("click")

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        desk.policy.version = 2
        return request.allow(Reach.SESSION)

    desk.approver.answer = answer
    assert await ends(desk, "click", CLICK) == (Code.STALE, "approval:policy-changed")
    assert desk.book.remembered(1, 0) == desk.book.remembered(2, 0) == ()


async def test_the_version_is_enough_for_a_policy_whose_answers_do_not_know_when_they_are_over() -> None:
    desk = Desk("click", approver=yes())
    desk.policy.tells = False
    answer = await desk("click", CLICK)
    assert answer.still_holds is not None
    assert answer.still_holds()
    desk.policy.version = 2
    assert not answer.still_holds()

    def change(request: ApprovalRequest) -> ApprovalAnswer:
        desk.policy.version = 3
        return request.allow()

    desk.approver.answer = change
    assert await ends(desk, "click", CLICK) == (Code.STALE, "approval:policy-changed")


async def test_a_policy_that_denies_meanwhile_has_the_word() -> None:
    desk = Desk("click")

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        desk.policy.version = 2
        desk.policy.allows.clear()
        return request.allow()

    desk.approver.answer = answer
    assert await ends(desk, "click", CLICK) == (Code.POLICY_DENIED, "fake.no")


async def test_a_policy_that_asks_otherwise_under_the_same_version() -> None:
    desk = Desk("click")

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        desk.policy.asks.clear()
        return request.allow()

    desk.approver.answer = answer
    assert await ends(desk, "click", CLICK) == (Code.STALE, "approval:policy-changed")


async def test_a_policy_change_that_is_told_withdraws_the_question(autojump_clock: object) -> None:
    approver = yes()
    approver.hold = trio.Event()
    desk = Desk("click", approver=approver)
    ended: list[object] = []

    async def call() -> None:
        ended.append(await ends(desk, "click", CLICK))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        desk.authorize.policy_changed()  # the same one: nothing happens
        await trio.testing.wait_all_tasks_blocked()
        assert not approver.withdrawn
        desk.policy.version = 2
        desk.authorize.policy_changed()
    assert ended == [(Code.STALE, "approval:policy-changed")]
    assert approver.withdrawn == approver.asked


@pytest.mark.parametrize("action", ["click", "navigate"])
async def test_a_page_that_went_elsewhere_while_a_person_thought(action: str) -> None:
    args = CLICK if action == "click" else {"url": "https://b.test/", "sessionId": TAB}
    desk = Desk(action)
    tabs = desk.tabs = FakeTabs()

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        tabs.navigate()
        return request.allow(Reach.SESSION)

    desk.approver.answer = answer
    assert await ends(desk, action, args) == (Code.STALE, "approval:place-changed")
    assert desk.book.remembered(1, desk.clock.boottime) == ()


async def test_what_happens_between_the_decision_and_the_action() -> None:
    desk = Desk("click", approver=yes(Reach.SESSION))
    tabs = desk.tabs = FakeTabs()
    answer = await desk("click", CLICK)
    assert answer.still_holds is not None
    assert answer.still_holds()
    tabs.navigate()
    assert not answer.still_holds()
    answer = await desk("click", CLICK)
    assert answer.still_holds is not None
    [kept] = desk.book.remembered(1, desk.clock.boottime)
    assert answer.still_holds()
    desk.book.forget(kept.id)
    assert not answer.still_holds()
    answer = await desk("click", CLICK)
    assert answer.still_holds is not None
    assert answer.still_holds()
    desk.policy.version = 2
    assert not answer.still_holds()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda request: ApprovalAnswer(bytes(48), Reach.ONCE),
        lambda request: ApprovalAnswer(request.digest[::-1], Reach.SESSION),
        lambda request: ApprovalAnswer(request.digest, Reach.SESSION),
    ],
)
async def test_an_answer_to_something_else_is_none(wrong: Any) -> None:
    desk = Desk("click", approver=FakeApprover(wrong))
    assert await ends(desk, "click", {"selector": "#a"}) == (Code.FAILURE, "approval:other-request")
    assert desk.book.remembered(1, desk.clock.boottime) == ()


async def test_an_answer_for_other_arguments_does_not_open_these() -> None:
    desk = Desk("click", approver=yes())
    await desk("click", CLICK)
    [first] = desk.approver.asked
    desk.approver.answer = lambda request: first.allow()
    assert (await ends(desk, "click", CLICK | {"selector": "#b"}))[0] is Code.FAILURE
    # The same arguments have the same digest: what makes the answer single is the ticket.
    assert desk.approver.asked[-1].ticket_id != first.ticket_id


@pytest.mark.parametrize("wrong", [True, None, "y", Reach.ONCE, Authorization(True)])
async def test_an_approver_that_answers_nonsense_is_our_fault_and_no_yes(wrong: object) -> None:
    desk = Desk("click", approver=FakeApprover(lambda request: wrong))
    with pytest.raises(TypeError):
        await desk("click", CLICK)
    desk.approver.answer = ApprovalRequest.deny
    assert (await ends(desk, "click", CLICK))[0] is Code.USER_DENIED  # nothing was left open


async def test_two_at_once_have_an_answer_each(autojump_clock: object) -> None:
    approver = FakeApprover(lambda one: one.allow() if "#a" in one.facts[0].text else one.deny())
    approver.hold = trio.Event()
    desk = Desk("click", approver=approver)
    ended: dict[str, object] = {}

    async def call(selector: str) -> None:
        ended[selector] = (await desk("click", CLICK | {"selector": selector})).allowed

    async with trio.open_nursery() as nursery:
        for selector in ("#a", "#b"):
            nursery.start_soon(call, selector)
        await trio.testing.wait_all_tasks_blocked()
        assert len(approver.asked) == 2
        approver.hold.set()
    assert ended == {"#a": True, "#b": False}


async def test_cancelled_at_any_await_nothing_stays_open(autojump_clock: object) -> None:
    """The inner authorizer before and after, and the person: each held once and cancelled there."""

    class Held(FakePolicy):
        hold_at = 0

        async def __call__(self, *arguments: Any, **more: Any) -> Any:
            answer = await super().__call__(*arguments, **more)
            if self.decided == self.hold_at:
                await trio.sleep_forever()
            return answer

    for held_at in (1, 2, None):
        policy = Held("click")
        policy.hold_at = held_at or 0
        approver = yes(Reach.SESSION)
        if held_at is None:
            approver.hold = trio.Event()
        desk = Desk(policy=policy, approver=approver)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk, "click", CLICK)
            await trio.testing.wait_all_tasks_blocked()
            assert desk.book._open or held_at == 1
            nursery.cancel_scope.cancel()
        assert not desk.book._open
        assert desk.book.remembered(1, desk.clock.boottime) == ()
        assert not desk.authorize._waits


def test_a_wait_that_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match="wait_s"):
        Desk("click", wait_s=0)
