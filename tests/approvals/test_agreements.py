"""Agreements that reach further than one call, and what one agent may ask of a person."""

import trio
import trio.testing
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.errors import Code
from tabwarden.model import Caller

from tests.approvals.support import (
    CLICK,
    ONE,
    TWO,
    YEAR_MS,
    Desk,
    FakeApprover,
    FakeTabs,
    ends,
    yes,
)


async def test_an_agreement_for_a_tab() -> None:
    desk = Desk("click", "type", approver=yes(Reach.SESSION))
    assert (await desk("click", CLICK)).rule == "approval:session fake.ask"
    desk.approver.answer = ApprovalRequest.deny
    other = await desk("click", CLICK | {"selector": "#other"})
    assert other.rule == "approval:session fake.ask"
    assert len(desk.approver.asked) == 1
    for action, args, caller in (
        ("click", {"selector": "#a"}, ONE),  # the tab in front, which happens to be the same
        ("type", CLICK | {"text": "x"}, ONE),
        ("click", CLICK, TWO),
        ("click", CLICK, Caller("one", 2)),
    ):
        assert (await ends(desk, action, args, caller))[0] is Code.USER_DENIED
    assert len(desk.approver.asked) == 5


async def test_an_agreement_for_an_origin_until_its_minutes_are_over() -> None:
    desk = Desk("click", approver=yes(Reach.ORIGIN, 10))
    tabs = desk.tabs = FakeTabs()
    assert (await desk("click", CLICK)).rule == "approval:origin fake.ask"
    desk.approver.answer = ApprovalRequest.deny
    [kept] = desk.book.remembered(1, desk.clock.boottime)
    assert kept.expires_at_ms == desk.clock.boottime + 600_000
    desk.clock.boottime = kept.expires_at_ms - 10
    for wall in (10 * YEAR_MS, -20 * YEAR_MS):
        desk.clock.wall += wall
        assert (await desk("click", {"selector": "#b"})).rule == "approval:origin fake.ask"
    tabs.navigate(origin="https://b.test")
    assert (await ends(desk, "click", CLICK))[0] is Code.USER_DENIED
    tabs.navigate(origin="https://a.test")
    assert (await desk("click", CLICK)).allowed
    desk.clock.boottime = kept.expires_at_ms - 1  # the call itself moves it on
    assert (await ends(desk, "click", CLICK))[0] is Code.USER_DENIED


async def test_an_agreement_to_go_to_an_origin() -> None:
    desk = Desk("navigate", "tabs:create", approver=yes(Reach.ORIGIN, 5))
    assert (await desk("navigate", {"url": "https://b.test/1"})).allowed
    desk.approver.answer = ApprovalRequest.deny
    assert (await desk("navigate", {"url": "https://b.test./2"})).allowed
    for url in ("http://b.test/", "https://b.test:444/", "https://a.test/", "https://b.test@c.test/"):
        assert (await ends(desk, "navigate", {"url": url}))[0] is Code.USER_DENIED
    assert (await ends(desk, "tabs:create", {"url": "https://b.test/"}))[0] is Code.USER_DENIED
    assert desk.approver.asked[-1].origin == "https://b.test"
    desk = Desk("tabs:create")
    await ends(desk, "tabs:create")
    assert desk.approver.asked[-1].reaches == {Reach.ONCE}


async def test_the_wall_clock_decides_nothing() -> None:
    desk = Desk("click", approver=yes(Reach.SESSION))
    for step in (10 * YEAR_MS, -10 * YEAR_MS, -10 * YEAR_MS):

        def answer(request: ApprovalRequest, step: int = step) -> ApprovalAnswer:
            desk.clock.wall += step
            return request.allow(Reach.SESSION)

        desk.approver.answer = answer
        assert (await desk("click", CLICK)).allowed


async def test_a_fourth_question_of_one_agent_is_not_put(autojump_clock: object) -> None:
    approver = FakeApprover()
    approver.hold = trio.Event()
    desk = Desk("click", approver=approver)
    ended: list[object] = []

    async def call() -> None:
        ended.append(await ends(desk, "click", CLICK))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        assert await ends(desk, "click", CLICK) == (Code.RATE_LIMITED, "approval:too-many")
        nursery.start_soon(ends, desk, "click", CLICK, TWO)
        await trio.testing.wait_all_tasks_blocked()
        assert len(approver.asked) == 4
        nursery.cancel_scope.cancel()
    assert len(approver.withdrawn) == 4
    desk.clock.boottime += 60_000
    approver.hold.set()
    assert (await ends(desk, "click", CLICK))[0] is Code.USER_DENIED


async def test_an_agent_that_tries_again_after_a_no_annoys_nobody() -> None:
    desk = Desk("click")
    desk.book = desk.authorize._book = ApprovalBook()
    assert await ends(desk, "click", CLICK) == (Code.USER_DENIED, "fake.ask")
    for _ in range(20):
        assert await ends(desk, "click", CLICK) == (Code.USER_DENIED, "approval:just-refused")
    assert len(desk.approver.asked) == 1
    for number in range(5):
        await ends(desk, "click", CLICK | {"selector": f"#a{number}"})
    assert await ends(desk, "click", CLICK | {"selector": "#b"}) == (Code.RATE_LIMITED, "approval:too-many")
    assert len(desk.approver.asked) == 6
    desk.clock.boottime += 60_000
    assert await ends(desk, "click", CLICK) == (Code.USER_DENIED, "fake.ask")


async def test_a_principal_that_ended_while_the_answer_was_on_its_way() -> None:
    desk = Desk("click")

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        desk.book.end_principal("one")
        return request.allow(Reach.SESSION)

    desk.approver.answer = answer
    assert (await ends(desk, "click", CLICK))[0] is Code.FAILURE
    assert desk.book.remembered(1, desk.clock.boottime) == ()
