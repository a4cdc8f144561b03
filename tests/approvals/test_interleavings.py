"""Calls, answers, policy changes, navigations, ends of rights and clock steps in any order: an action begins
only when a person agreed to it, and everything that they agreed under is still so.

What is expected is worked out from the events alone. `TABWARDEN_APPROVAL_ROUNDS` says how many orders. The
events follow from `TABWARDEN_APPROVAL_SEED`, trio's choice between tasks that could go on does not.
"""

import os
import random
from dataclasses import dataclass, field
from typing import Any

import trio
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.errors import ActionError, ConfigurationError
from tabwarden.limits import ApprovalLimits
from tabwarden.model import Caller
from tabwarden_adapters.approvals import ApprovingAuthorizer, NotPending, PendingApprovals

from tests.approvals.support import ONE, OTHER_TAB, TAB, TWO, YEAR_MS, FakePolicy, FakeTabs
from tests.support.fakes import ManualClock

ROUNDS = int(os.environ.get("TABWARDEN_APPROVAL_ROUNDS", "100"))
SEED = int(os.environ.get("TABWARDEN_APPROVAL_SEED", "1"))
STEPS = 60
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("click", {"selector": "#a", "sessionId": TAB}),
    ("click", {"selector": "#b", "sessionId": TAB}),
    ("click", {"selector": "#a", "sessionId": OTHER_TAB}),
    ("click", {"selector": "#a"}),
    ("scroll", {"sessionId": TAB}),
]


@dataclass
class Agreement:
    """What a person said yes to, as the test remembers it."""

    request: ApprovalRequest
    answer: ApprovalAnswer
    at_ms: int
    ended: bool = False


@dataclass
class Calling:
    caller: Caller
    action: str
    session_id: str | None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    request: ApprovalRequest | None = None
    documents: dict[str, int] = field(default_factory=dict)


class World(PendingApprovals):
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.policy = FakePolicy("click", "scroll")
        self.tabs = FakeTabs(**{OTHER_TAB: "https://b.test"})
        self.clock = ManualClock()
        self.book = ApprovalBook(
            ApprovalLimits(asks_per_minute=1000, pending_per_principal=20, pending=40, quiet_after_no_ms=1)
        )
        super().__init__(self.book, self.clock, lambda: self.policy.version)
        self.authorize = ApprovingAuthorizer(
            self.policy,
            self,
            book=self.book,
            clock=self.clock,
            policy_version=lambda: self.policy.version,
            place=self.tabs,
        )
        self.calls: list[Calling] = []
        self.agreements: list[Agreement] = []
        self.of_task: dict[object, Calling] = {}
        self.arrived: set[str] = set()
        self.begun = self.refused = 0

    async def ask(self, request: ApprovalRequest, /) -> ApprovalAnswer:
        calling = self.of_task[trio.lowlevel.current_task()]
        calling.request, calling.documents = request, dict(self.tabs.documents)
        answer = await super().ask(request)
        # From here to the decision nothing waits; the minutes count from now.
        self.arrived.add(request.ticket_id)
        for one in self.agreements:
            if one.request is request:
                one.at_ms = self.clock.boottime
        return answer

    async def pause(self) -> None:
        for _ in range(self.random.randrange(4)):
            await trio.lowlevel.checkpoint()

    async def call(self, calling: Calling, args: dict[str, Any]) -> None:
        """As a broker does it: authorize, look whether the call is over, record, look once more, begin."""
        self.of_task[trio.lowlevel.current_task()] = calling
        self.calls.append(calling)
        spec, arguments = parse_arguments(calling.action, args)
        with calling.scope:
            try:
                answer = await self.authorize(
                    calling.action,
                    arguments,
                    spec.policy_scope,
                    calling.session_id,
                    caller=calling.caller,
                    waiting_for_person=trio.CancelScope,
                )
            except ActionError:
                answer = None
            if answer is None or not answer.grants(ACTIONS[calling.action].internal_scope):
                self.refused += 1
                return
            await self.pause()
            if calling.scope.cancel_called or (answer.still_holds and answer.still_holds() is not True):
                self.refused += 1
                return
            assert self.may_begin(calling), calling
            self.begun += 1

    def may_begin(self, calling: Calling) -> bool:
        tab = calling.session_id or TAB
        return any(self._covers(one, calling, tab) for one in self.agreements if not one.ended)

    def _covers(self, one: Agreement, calling: Calling, tab: str) -> bool:
        asked = one.request
        if (asked.caller, asked.policy_scope) != (calling.caller, calling.action):
            return False
        if asked.policy_version != self.policy.version:
            return False
        if asked is calling.request:
            return calling.documents[tab] == self.tabs.documents[tab]
        if one.answer.reach is Reach.SESSION:
            lasts = 480
            if calling.session_id is None or calling.session_id != asked.session_id:
                return False
        elif one.answer.reach is Reach.ORIGIN:
            lasts = one.answer.minutes or 0
            if asked.origin != self.tabs.origins[tab]:
                return False
        else:
            return False
        return self.clock.boottime < one.at_ms + lasts * 60_000

    # ---- what happens -------------------------------------------------------------------------------

    def answers(self) -> None:
        waiting = self.pending()
        if not waiting:
            return
        request = self.random.choice(waiting)
        kind = self.random.randrange(6)
        try:
            if kind == 0:
                answer = request.deny()
            elif kind == 1:
                answer = self.random.choice(waiting).allow()  # perhaps meant for another one
            elif kind == 2:
                answer = request.allow(Reach.ORIGIN, self.random.randrange(1, 20))
            elif kind == 3:
                answer = request.allow(Reach.SESSION)
            else:
                answer = request.allow()
            self.answer(request.ticket_id, answer)
        except (ConfigurationError, NotPending):
            return
        if answer.reach is not None:
            self.agreements.append(Agreement(request, answer, self.clock.boottime))

    def changes_policy(self) -> None:
        self.policy.version += 1
        if self.random.random() < 0.5:
            self.authorize.policy_changed()

    def navigates(self) -> None:
        tab = self.random.choice([TAB, OTHER_TAB])
        self.tabs.navigate(tab, self.random.choice(["https://a.test", "https://b.test", "https://c.test"]))

    def ends_a_principal(self) -> None:
        """As `control.revoke_principal` does, with an `AgreementEnds` around the audit."""
        caller = self.random.choice([ONE, TWO])
        for calling in self.calls:
            if calling.caller == caller:
                calling.scope.cancel()
        self.book.end_principal(caller.principal_id)
        for one in self.agreements:
            one.ended = one.ended or one.request.caller == caller

    def takes_back(self) -> None:
        kept = self.remembered()
        if not kept:
            return
        chosen = self.random.choice(kept)
        assert self.forget(chosen.id)
        # Which of several equal ones it was does not matter to what is expected: all of them are gone then.
        for other in self.remembered():
            if (other.caller, other.policy_scope) == (chosen.caller, chosen.policy_scope):
                self.forget(other.id)
        for one in self.agreements:
            same = (one.request.caller, one.request.policy_scope) == (chosen.caller, chosen.policy_scope)
            kept_then = one.answer.reach is not Reach.ONCE and one.request.ticket_id in self.arrived
            one.ended = one.ended or (same and kept_then)

    def passes_time(self) -> None:
        self.clock.boottime += self.random.choice([1, 1000, 100_000, 600_000])
        self.clock.wall += self.random.choice([-10 * YEAR_MS, 0, 10 * YEAR_MS])

    def hangs_up(self) -> None:
        if self.calls:
            self.random.choice(self.calls).scope.cancel()

    async def live(self) -> None:
        events = [
            *[self.answers] * 8,
            self.changes_policy,
            self.navigates,
            self.ends_a_principal,
            self.takes_back,
            *[self.passes_time] * 2,
            self.hangs_up,
        ]
        with self.attending():
            async with trio.open_nursery() as nursery:
                for _ in range(STEPS):
                    if self.random.random() < 0.4:
                        action, args = self.random.choice(CALLS)
                        calling = Calling(self.random.choice([ONE, TWO]), action, args.get("sessionId"))
                        nursery.start_soon(self.call, calling, args)
                    else:
                        self.random.choice(events)()
                    await self.pause()
                nursery.cancel_scope.cancel()
        assert not self.book._open
        assert not self.authorize._waits
        assert self.pending() == ()


async def test_in_any_order_nothing_begins_that_nobody_agreed_to() -> None:
    begun = refused = 0
    for number in range(ROUNDS):
        world = World(SEED * 1_000_003 + number)
        try:
            await world.live()
        except BaseException as error:
            error.add_note(f"TABWARDEN_APPROVAL_SEED={SEED}, round {number}")
            raise
        begun += world.begun
        refused += world.refused
    # The orders are worth something: both happen, and often.
    assert begun >= ROUNDS
    assert refused >= ROUNDS
    print(f"{ROUNDS} orders: {begun} actions begun, {refused} refused")  # noqa: T201
