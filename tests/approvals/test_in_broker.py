"""A whole broker that asks: what an agent is told, what the audit says, and what ends a question."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from tabwarden import Code, Grant
from tabwarden.approval import ApprovalRequest, Reach
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.clock import SystemClock
from tabwarden.limits import Limits
from tabwarden.model import AuditOutcome
from tabwarden_adapters.approvals import (
    AgreementEnds,
    ApprovingAuthorizer,
    Ending,
    NotPending,
    PendingApprovals,
)

from tests.approvals.support import TAB, FakePolicy, FakeTabs
from tests.attacks.serving import Broker, serve, until
from tests.attacks.toolkit import Peer, Wire, connect, envelope
from tests.support.fakes import ManualClock, MemoryAudit

WITHDRAWN = set(Ending) - {Ending.ANSWERED, Ending.UNKNOWN, Ending.TIMED_OUT}
CLICK = {"selector": "#secret-selector", "sessionId": TAB}


class Scene:
    """A broker with a board, a policy that asks for `click`, and an agent `one`."""

    def __init__(self) -> None:
        self.policy = FakePolicy("click", allows=("sessions",))
        self.tabs = FakeTabs()
        self.book = ApprovalBook()
        self.clock = SystemClock()
        self.board = PendingApprovals(self.book, self.clock, lambda: self.policy.version)
        self.authorize = ApprovingAuthorizer(
            self.policy,
            self.board,
            book=self.book,
            clock=self.clock,
            policy_version=lambda: self.policy.version,
            place=self.tabs,
        )
        self.audit = MemoryAudit()
        self.clicked: list[Any] = []
        self.replies: list[tuple[int, Any]] = []
        self.broker: Broker
        self.one: Peer

    async def click(self, arguments: Any, context: object) -> dict[str, bool]:
        self.clicked.append(arguments)
        return {"completed": True}

    async def call(self, **changes: Any) -> None:
        """Call and keep the reply."""
        self.replies.append(await self.one.call(self.broker, envelope("click", args=CLICK | changes)))

    async def asked(self, count: int = 1) -> tuple[ApprovalRequest, ...]:
        """Wait until so many questions are open."""
        await until(lambda: len(self.board.pending()) == count)
        return self.board.pending()

    def not_pending(self, one: ApprovalRequest) -> Ending:
        with pytest.raises(NotPending) as caught:
            self.board.answer(one.ticket_id, one.allow())
        return caught.value.ending

    @property
    def ended(self) -> list[tuple[AuditOutcome, Code | None, str | None]]:
        return [(event.outcome, event.code, event.rule) for event in self.audit.terminal()]

    @asynccontextmanager
    async def running(self, *, attended: bool = True, **options: Any) -> AsyncIterator[Broker]:
        async with serve(
            authorize=self.authorize,
            actions={"click": self.click},
            audit=AgreementEnds(self.audit, self.book),  # type: ignore[arg-type]
            identity_mode="individual",
            limits=options.pop("limits", None) or Limits(batch_size=8, refusal_window_s=3600),
            **options,
        ) as self.broker:
            self.broker.audit = self.audit
            await self.broker.control.reconcile_principals([Grant("one", 1)])
            self.one = Peer(await self.broker.control.issue_principal("one", 1), self.broker.runtime.clock)
            if attended:
                with self.board.attending():
                    yield self.broker
            else:
                yield self.broker


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_yes_once(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        assert scene.clicked == []
        assert (one.caller.principal_id, one.action, one.rule) == ("one", "click", "fake.ask")
        scene.board.answer(one.ticket_id, one.allow())
        await until(lambda: scene.replies)
        assert scene.replies == [(200, {"completed": True})]
        assert scene.ended == [("completed", None, "approval:once fake.ask")]
        assert scene.not_pending(one) is Ending.ANSWERED
        nursery.start_soon(scene.call)
        await scene.asked()
        nursery.cancel_scope.cancel()
    assert len(scene.clicked) == 1


async def test_no(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        scene.board.answer(one.ticket_id, one.deny())
        await until(lambda: scene.replies)
        assert scene.replies == [(403, {"code": "user-denied", "effect": "not_started"})]
        assert scene.ended == [("denied", Code.USER_DENIED, "fake.ask")]
        assert scene.clicked == []


async def test_nobody_answers_in_time(scene: Scene) -> None:
    limits = Limits(batch_size=8, refusal_window_s=3600, action_deadline_s=30, person_wait_s=0.2)
    async with scene.running(limits=limits):
        await scene.call()
        assert scene.replies == [(403, {"code": "approval-timeout", "effect": "not_started"})]
        assert scene.ended == [("denied", Code.APPROVAL_TIMEOUT, "fake.ask")]
        assert scene.board.pending() == ()


async def test_nobody_there(scene: Scene) -> None:
    async with scene.running(attended=False):
        for _ in range(8):  # more than may be asked in a minute: nobody was asked
            await scene.call()
        assert scene.replies == [(403, {"code": "no-approver", "effect": "not_started"})] * 8
        assert scene.ended == [("denied", Code.NO_APPROVER, "fake.ask")] * 8
        assert scene.book._asked == {}


async def test_a_policy_that_asks_without_anybody_who_does() -> None:
    policy, clicked = FakePolicy("click"), []

    async def click(arguments: object, context: object) -> object:
        clicked.append(arguments)
        return {"completed": True}

    async with serve(authorize=policy, actions={"click": click}) as broker:
        peer = Peer(broker.descriptor, broker.runtime.clock)
        status, body = await peer.call(broker, envelope("click", args=CLICK))
        assert (status, body["code"]) == (403, "no-approver")
        assert [event.rule for event in broker.audit.terminal()] == ["fake.ask"]
    assert clicked == []


async def test_denied_by_policy_nobody_is_asked(scene: Scene) -> None:
    async with scene.running():
        status, body = await scene.one.call(
            scene.broker, envelope("navigate", args={"url": "https://a.test"})
        )
        assert (status, body["code"]) == (403, "policy-denied")
        assert scene.board.revision == 0


async def withdrawn(scene: Scene, end: Callable[[Wire], Any], code: Code) -> None:
    """A question that is open while `end` happens is gone afterwards, and no answer opens anything."""
    async with scene.running():
        action = scene.one.m3(await scene.one.challenge(scene.broker), envelope("click", args=CLICK))
        async with connect(scene.one.host) as wire:
            await wire.send(action.request.raw(scene.one.host))
            [one] = await scene.asked()
            ending = end(wire)
            if hasattr(ending, "__await__"):
                await ending
            await until(lambda: not scene.board.pending())
            assert scene.not_pending(one) in WITHDRAWN
            await until(lambda: scene.ended)
        assert [(outcome, why) for outcome, why, _ in scene.ended][-1] == ("failed", code)
        assert scene.clicked == []
        assert not scene.book._open


async def test_the_agent_hangs_up(scene: Scene) -> None:
    await withdrawn(scene, lambda wire: wire.close(), Code.DISCONNECTED)


async def test_the_agent_is_revoked(scene: Scene) -> None:
    await withdrawn(scene, lambda wire: scene.broker.control.revoke_principal("one"), Code.REVOKED)


async def test_everything_is_revoked(scene: Scene) -> None:
    await withdrawn(scene, lambda wire: scene.broker.control.revoke(), Code.REVOKED)


async def test_the_grant_is_withdrawn(scene: Scene) -> None:
    await withdrawn(scene, lambda wire: scene.broker.control.reconcile_principals([]), Code.REVOKED)


async def test_the_broker_closes(scene: Scene) -> None:
    await withdrawn(scene, lambda wire: scene.broker.control.close(), Code.SHUTTING_DOWN)


async def test_the_broker_is_told_of_another_policy(scene: Scene) -> None:
    await withdrawn(scene, lambda wire: scene.broker.control.policy_changed(), Code.STALE)


async def test_the_policy_changes(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        scene.policy.version = 2
        scene.authorize.policy_changed()
        await until(lambda: scene.replies)
        assert scene.replies == [(409, {"code": "stale", "effect": "not_started"})]
        assert scene.not_pending(one) is Ending.POLICY_CHANGED
        assert scene.ended == [("failed", Code.STALE, "approval:policy-changed")]
        assert scene.clicked == []


async def test_a_policy_change_that_nobody_told_of_is_seen_all_the_same(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        scene.policy.version = 2
        scene.board.answer(one.ticket_id, one.allow(Reach.SESSION))
        await until(lambda: scene.replies)
        assert scene.replies == [(409, {"code": "stale", "effect": "not_started"})]
        assert scene.clicked == []
        assert scene.board.remembered() == ()


@pytest.mark.parametrize("what", ["policy", "page", "agreement"])
async def test_what_changes_while_the_record_goes_to_disk_is_stale(scene: Scene, what: str) -> None:
    def change() -> None:
        if what == "policy":
            scene.policy.version = 2
        elif what == "page":
            scene.tabs.navigate()
        else:
            [kept] = scene.board.remembered()
            scene.board.forget(kept.id)

    async with scene.running(), trio.open_nursery() as nursery:
        scene.audit.durable_hook = change
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        scene.board.answer(one.ticket_id, one.allow(Reach.SESSION))
        await until(lambda: scene.replies)
        assert scene.replies == [(409, {"code": "stale", "effect": "not_started"})]
        assert scene.clicked == []
        assert [event.outcome for event in scene.audit.agent_events] == ["authorized", "failed"]
        assert scene.audit.agent_events[-1].committed is False


async def test_an_agreement_for_a_tab_and_its_end(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        scene.board.answer(one.ticket_id, one.allow(Reach.SESSION))
        await until(lambda: scene.replies)
        await scene.call(selector="#other")
        assert [status for status, _ in scene.replies] == [200, 200]
        assert [rule for _, _, rule in scene.ended] == ["approval:session fake.ask"] * 2
        [kept] = scene.board.remembered()
        assert scene.board.forget(kept.id)
        nursery.start_soon(scene.call)
        [again] = await scene.asked()
        scene.board.answer(again.ticket_id, again.deny())
        await until(lambda: len(scene.replies) == 3)
        assert scene.replies[-1][1]["code"] == "user-denied"


@pytest.mark.parametrize("how", ["revoked", "issued again", "withdrawn and back"])
async def test_agreements_end_with_the_credential(scene: Scene, how: str) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        scene.board.answer(one.ticket_id, one.allow(Reach.SESSION))
        await until(lambda: scene.replies)
        assert len(scene.board.remembered()) == 1
        control = scene.broker.control
        if how == "revoked":
            await control.revoke_principal("one")
            assert scene.board.remembered() == ()
        elif how == "withdrawn and back":
            await control.reconcile_principals([])
            assert scene.board.remembered() == ()
            await control.reconcile_principals([Grant("one", 1)])
        scene.one = Peer(await control.issue_principal("one", 1), scene.broker.runtime.clock)
        assert scene.board.remembered() == ()
        nursery.start_soon(scene.call)
        await scene.asked()
        nursery.cancel_scope.cancel()


async def test_two_questions_at_once(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: scene.call(selector="#a"))
        [first] = await scene.asked()
        nursery.start_soon(lambda: scene.call(selector="#b"))
        first, second = await scene.asked(2)
        assert first.digest != second.digest
        scene.board.answer(second.ticket_id, second.allow())
        await until(lambda: scene.replies)
        assert [one.selector for one in scene.clicked] == ["#b"]
        scene.board.answer(first.ticket_id, first.deny())
        await until(lambda: len(scene.replies) == 2)
        assert [status for status, _ in scene.replies] == [200, 403]


async def test_the_wall_clock_steps_while_a_person_thinks(scene: Scene) -> None:
    clock = ManualClock()
    year = 365 * 86_400_000
    scene.clock = clock  # type: ignore[assignment]
    scene.board._clock = scene.authorize._clock = clock
    async with scene.running(clock=clock), trio.open_nursery() as nursery:
        for number, step in enumerate((10 * year, -20 * year), 1):
            nursery.start_soon(scene.call)
            [one] = await scene.asked()
            clock.wall += step
            assert scene.board.pending() == (one,)
            scene.board.answer(one.ticket_id, one.allow())
            await until(lambda number=number: len(scene.replies) == number)
    assert [status for status, _ in scene.replies] == [200, 200]


async def test_nothing_that_the_person_sees_is_in_the_audit_or_told_to_the_host(scene: Scene) -> None:
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(scene.call)
        [one] = await scene.asked()
        assert "#secret-selector" in one.facts[0].text
        scene.board.answer(one.ticket_id, one.allow())
        await until(lambda: scene.replies)
    for event in scene.audit.events:
        assert "secret-selector" not in repr(event)
        assert one.digest.hex() not in repr(event)
