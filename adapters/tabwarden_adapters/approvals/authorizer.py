"""The authorizer that asks people: whatever the policy wants to have asked waits here for a person."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec
import trio
from tabwarden.actions import ACTIONS, ActionSpec
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Fact, Reach, Remembered
from tabwarden.authority.approvals import MISMATCH, ApprovalBook, approval_digest
from tabwarden.authority.describing import describe
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden.limits import DEFAULT_LIMITS
from tabwarden.model import Authorization, Caller
from tabwarden.ports import Approver, Authorizer, Clock, PersonWait

from tabwarden_adapters.approvals.board import Ending
from tabwarden_adapters.approvals.place import Place, PlaceOf, origin_of

POLICY_CHANGED: Final = "approval:policy-changed"
PLACE_CHANGED: Final = "approval:place-changed"
NO_SUCH_TAB: Final = "approval:no-such-tab"
_GOES_TO_URL = ("navigate", "tabs:create")  # they take place where they lead
_MARGIN_S = 1.0  # our limit ends before the one around it, so that the outcome says what happened


class ApprovingAuthorizer:
    """Implements `tabwarden.ports.Authorizer` around another one, `inner`, which decides everything else.

    When the inner answer asks, an earlier agreement is looked for, and if there is none, a person is asked
    through `approver`. After the wait the inner authorizer is asked again: only under the same policy, and
    with the tab as it was, does the answer count. Outcomes: what the inner one denies, `user-denied`,
    `approval-timeout`, `no-approver`, `stale`, `rate-limited`.

    The rule in the audit is `approval:once`, `approval:session` or `approval:origin`, a space, and the rule
    that asked. Nothing of what the person sees is in it.
    """

    def __init__(
        self,
        inner: Authorizer,
        approver: Approver | None,
        *,
        book: ApprovalBook,
        clock: Clock,
        policy_version: Callable[[], int],
        place: PlaceOf,
        wait_s: float = DEFAULT_LIMITS.person_wait_s,
    ) -> None:
        """`policy_version` changes with each change of the inner authorizer's policy. `place` captures tabs
        (see `places`); a broker without any gives `lambda caller, session_id: None`. Without an `approver`
        whatever asks is denied. `wait_s` is a person's time to answer, never more than the broker's limit.
        """
        if not wait_s > 0:
            raise ConfigurationError("wait_s must be greater than 0")
        self._inner = inner
        self._approver = approver
        self._book = book
        self._clock = clock
        self._policy_version = policy_version
        self._place = place
        self._wait_s = wait_s
        self._waits: dict[trio.CancelScope, int] = {}

    async def __call__(
        self,
        action: str,
        args: msgspec.Struct,
        scope: str,
        session_id: str | None,
        *,
        caller: Caller,
        waiting_for_person: PersonWait,
    ) -> Authorization:
        """Decide one call, with a person where the policy asks for one."""

        async def inner_answer() -> Authorization:
            return await self._inner(
                action, args, scope, session_id, caller=caller, waiting_for_person=waiting_for_person
            )

        version = self._policy_version()
        first = await inner_answer()
        if not isinstance(first, Authorization) or first.allowed is not True or first.ask is None:
            return first
        spec = ACTIONS[action]
        place = self._captured(spec, caller, session_id)
        origin = _origin(spec, args, place)
        if not self._unchanged(first, version):
            return _stale(POLICY_CHANGED)
        agreed = self._book.find(
            caller,
            scope,
            session_id=session_id,
            origin=origin,
            policy_version=version,
            now_ms=self._clock.boottime_ms(),
        )
        if agreed is not None:
            return self._granted(first, version, place, agreed.reach, agreed)
        if self._approver is None:
            return Authorization(False, code=Code.NO_APPROVER, rule=first.ask)
        request = self._request(spec, args, session_id, caller, first.ask, version, origin, place)
        self._book.open(request, request.asked_at_ms)
        try:
            answer = await self._answer(self._approver, request, waiting_for_person)
            if answer.reach is None:
                self._book.refuse(request, self._clock.boottime_ms())
                return Authorization(False, code=Code.USER_DENIED, rule=request.rule)
            second = await inner_answer()
            if not isinstance(second, Authorization) or second.allowed is not True:
                return second
            # From here on nothing is awaited: what is looked at now is what the answer is given for.
            if second.ask != first.ask or second.scopes != first.scopes:
                return _stale(POLICY_CHANGED)
            if not (self._unchanged(first, version) and self._unchanged(second, version)):
                return _stale(POLICY_CHANGED)
            if not self._unchanged(second, version, place):
                return _stale(PLACE_CHANGED)
            # The arguments are read once more: what a person agreed to is what will be done.
            if approval_digest(action, args, session_id, caller, version) != request.digest:
                raise ActionError(Code.FAILURE, rule=MISMATCH)
            agreed = self._book.redeem(
                request,
                answer,
                remember_as=secrets.token_hex(8),
                now_ms=self._clock.boottime_ms(),
            )
            return self._granted(second, version, place, answer.reach, agreed)
        except ActionError as error:
            if error.code is Code.NO_APPROVER:
                self._book.unasked(request)
            raise
        finally:
            self._book.close(request)

    def policy_changed(self) -> None:
        """Withdraw what was asked under another policy: those calls end with `stale`. Call it after each
        change; an answer under another policy never counts, but the question would stay until then."""
        current = self._policy_version()
        for wait, version in list(self._waits.items()):
            if version != current:
                wait.cancel(reason=Ending.POLICY_CHANGED)

    async def _answer(
        self, approver: Approver, request: ApprovalRequest, waiting_for_person: PersonWait
    ) -> ApprovalAnswer:
        """Raises `ActionError`: `approval-timeout`, `no-approver`, `stale`."""
        answer: object = None
        with waiting_for_person(), trio.CancelScope() as wait:
            self._waits[wait] = request.policy_version
            try:
                with trio.CancelScope(deadline=self._deadline()) as limit:
                    answer = await approver.ask(request)
            finally:
                del self._waits[wait]
        if wait.cancel_called:
            raise ActionError(Code.STALE, rule=POLICY_CHANGED)
        if limit.cancelled_caught:
            raise ActionError(Code.APPROVAL_TIMEOUT, rule=request.rule)
        if not isinstance(answer, ApprovalAnswer):
            raise TypeError("an approver answers with an ApprovalAnswer")
        return answer

    def _deadline(self) -> float:
        now, around = trio.current_time(), trio.current_effective_deadline()
        return min(now + self._wait_s, around - min(_MARGIN_S, max(0.0, (around - now) / 10)))

    def _captured(self, spec: ActionSpec, caller: Caller, session_id: str | None) -> Place | None:
        if not spec.needs_session:
            return None
        place = self._place(caller, session_id)
        if place is None:
            raise ActionError(Code.UNKNOWN_SESSION, rule=NO_SUCH_TAB)
        return place

    def _request(
        self,
        spec: ActionSpec,
        args: msgspec.Struct,
        session_id: str | None,
        caller: Caller,
        rule: str,
        version: int,
        origin: str | None,
        place: Place | None,
    ) -> ApprovalRequest:
        facts = describe(args, self._book.limits.text_characters)
        if place is not None and place.origin is not None and spec.name in _GOES_TO_URL:
            facts = (Fact("the tab is now at", place.origin, by_agent=False), *facts)
        reaches = {Reach.ONCE}
        if session_id is not None:
            reaches.add(Reach.SESSION)
        if origin is not None:
            reaches.add(Reach.ORIGIN)
        now = self._clock.boottime_ms()
        return ApprovalRequest(
            ticket_id=secrets.token_hex(8),
            caller=caller,
            action=spec.name,
            policy_scope=spec.policy_scope,
            rule=rule,
            session_id=session_id,
            origin=origin,
            summary=spec.summary,
            facts=facts,
            digest=approval_digest(spec.name, args, session_id, caller, version),
            policy_version=version,
            asked_at_ms=now,
            expires_at_ms=now + round(self._wait_s * 1000),
            reaches=frozenset(reaches),
        )

    def _unchanged(self, answer: Authorization, version: int, place: Place | None = None) -> bool:
        return (
            self._policy_version() == version
            and (answer.still_holds is None or answer.still_holds() is True)
            and (place is None or place.current() is True)
        )

    def _granted(
        self,
        answer: Authorization,
        version: int,
        place: Place | None,
        reach: Reach,
        agreed: Remembered | None,
    ) -> Authorization:
        def still_holds() -> bool:
            return self._unchanged(answer, version, place) and (
                agreed is None or self._book.holds(agreed, version, self._clock.boottime_ms())
            )

        return replace(answer, rule=f"approval:{reach.value} {answer.ask}", ask=None, still_holds=still_holds)


def _origin(spec: ActionSpec, args: msgspec.Struct, place: Place | None) -> str | None:
    if spec.name in _GOES_TO_URL:
        url = getattr(args, "url", None)
        return origin_of(url) if isinstance(url, str) else None
    return None if place is None else place.origin


def _stale(rule: str) -> Authorization:
    return Authorization(False, code=Code.STALE, rule=rule)
