"""Requests to answer, an approver that denies by default, and a policy that can change."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import trio
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach
from tabwarden.authority.approvals import ApprovalBook, approval_digest
from tabwarden.errors import ActionError, Code
from tabwarden.limits import ApprovalLimits
from tabwarden.model import Authorization, Caller
from tabwarden_adapters.approvals import ApprovingAuthorizer, Place, PlaceOf

from tests.support.fakes import ManualClock

TAB = "00000000-0000-4000-8000-000000000001"
OTHER_TAB = "00000000-0000-4000-8000-000000000002"
ONE, TWO = Caller("one", 1), Caller("two", 1)
YEAR_MS = 365 * 86_400_000


def request(ticket_id: str = "t1", **changes: Any) -> ApprovalRequest:
    """A question about `click` in a tab at a.test, open for five minutes."""
    _, arguments = parse_arguments("click", {"selector": "#a"})
    values: dict[str, Any] = {
        "ticket_id": ticket_id,
        "caller": ONE,
        "action": "click",
        "policy_scope": "click",
        "rule": "grant:one.ask",
        "session_id": TAB,
        "origin": "https://a.test",
        "summary": "Click one visible element.",
        "facts": (),
        "digest": approval_digest("click", arguments, TAB, ONE, 1),
        "policy_version": 1,
        "asked_at_ms": 1_000_000,
        "expires_at_ms": 1_300_000,
        "reaches": frozenset(Reach),
    }
    return ApprovalRequest(**(values | changes))


class FakeApprover:
    """An `Approver` that denies, unless it is told otherwise; it can be held, and keeps what it was asked."""

    def __init__(self, answer: Callable[[ApprovalRequest], object] = ApprovalRequest.deny) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []
        self.withdrawn: list[ApprovalRequest] = []
        self.hold = trio.Event()
        self.hold.set()

    async def ask(self, request: ApprovalRequest, /) -> ApprovalAnswer:
        self.asked.append(request)
        try:
            await self.hold.wait()
        except trio.Cancelled:
            self.withdrawn.append(request)
            raise
        return self.answer(request)  # type: ignore[return-value]


class FakePolicy:
    """An `Authorizer` that denies, and asks, by scope; as a policy with a version."""

    def __init__(self, *asks: str, allows: tuple[str, ...] = ()) -> None:
        self.asks = set(asks)
        self.allows = {*asks, *allows}
        self.version = 1
        self.tells = True  # whether its answers know when they are over
        self.decided = 0

    async def __call__(self, action: str, args: Any, scope: str, session_id: Any, **more: Any) -> Any:
        self.decided += 1
        version = self.version
        if scope not in self.allows:
            return Authorization(False, rule="fake.no")
        return Authorization(
            True,
            scopes=frozenset({ACTIONS[action].internal_scope}),
            rule="fake.yes",
            ask="fake.ask" if scope in self.asks else None,
            still_holds=(lambda: self.version == version) if self.tells else None,
        )


class FakeTabs:
    """A `PlaceOf`: tabs by id, the first in front. `navigate` makes what was captured another one."""

    def __init__(self, **origins: str | None) -> None:
        self.origins: dict[str, str | None] = {TAB: "https://a.test", **origins}
        self.documents = dict.fromkeys(self.origins, 0)

    def navigate(self, session_id: str = TAB, origin: str | None = None) -> None:
        self.documents[session_id] += 1
        self.origins[session_id] = origin or self.origins[session_id]

    def __call__(self, caller: Caller, session_id: str | None, /) -> Place | None:
        tab = next(iter(self.origins)) if session_id is None else session_id
        if tab not in self.origins:
            return None
        document = self.documents[tab]
        return Place(self.origins[tab], lambda: self.documents.get(tab) == document)


class Desk:
    """An `ApprovingAuthorizer` with all that it needs, and a short way to ask it."""

    def __init__(
        self, *asks: str, approver: Any = None, policy: FakePolicy | None = None, **options: Any
    ) -> None:
        self.policy = policy or FakePolicy(*asks)
        self.approver = FakeApprover() if approver is None else approver
        self.clock = ManualClock()
        self.book = ApprovalBook(ApprovalLimits(quiet_after_no_ms=1))
        self.tabs: PlaceOf = FakeTabs()
        self.authorize = ApprovingAuthorizer(
            self.policy,
            self.approver,
            book=self.book,
            clock=self.clock,
            policy_version=lambda: self.policy.version,
            place=self._place,
            **options,
        )

    def _place(self, caller: Caller, session_id: str | None, /) -> Place | None:
        return self.tabs(caller, session_id)

    async def __call__(
        self,
        action: str,
        args: dict[str, Any] | None = None,
        caller: Caller = ONE,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Authorization:
        self.clock.boottime += 1  # a no is not remembered longer than that here
        spec, arguments = parse_arguments(action, args or {})
        session_id = (args or {}).get("sessionId")
        return await self.authorize(
            action, arguments, spec.policy_scope, session_id, caller=caller, waiting_for_person=waiting
        )


CLICK = {"selector": "#a", "sessionId": TAB}


def yes(reach: Reach = Reach.ONCE, minutes: int | None = None) -> FakeApprover:
    return FakeApprover(lambda request: request.allow(reach, minutes))


async def ends(desk: Desk, *arguments: Any, **more: Any) -> tuple[Code, str | None]:
    """How a call that is not allowed ends."""
    try:
        answer = await desk(*arguments, **more)
    except ActionError as error:
        return error.code, error.rule
    assert not answer.grants("browser:interact")
    assert answer.allowed is False
    return answer.code, answer.rule
