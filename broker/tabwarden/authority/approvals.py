"""Questions to a person that are open, and agreements that reach further than one call.

Values only. Every time is given as milliseconds of the clock that never steps, so setting the wall clock
changes nothing. All is bounded in number: a flood of questions neither fills memory nor wears a person out.

An agreement holds for exactly the agent (id and generation), policy scope, policy version and tab or origin
that it was given for, never longer than `MAX_APPROVAL_MINUTES`.
"""

from collections import OrderedDict, deque

import msgspec

from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach, Remembered
from tabwarden.errors import ActionError, Code
from tabwarden.limits import MAX_APPROVAL_MINUTES, ApprovalLimits
from tabwarden.model import Caller
from tabwarden.protocol.codec import label, pae, u64
from tabwarden.protocol.primitives import equal, sha384

TOO_MANY = "approval:too-many"
MISMATCH = "approval:other-request"
JUST_REFUSED = "approval:just-refused"
_MINUTE_MS = 60_000
_L_DIGEST = label("approval-digest")


def approval_digest(
    action: str, arguments: msgspec.Struct, session_id: str | None, caller: Caller, policy_version: int
) -> bytes:
    """48 bytes (SHA-384) that stand for exactly this call: another one has another digest.

    `arguments` is of the action table's type, so its JSON with sorted keys is one text for one meaning. No
    tab's or principal's id is empty, so the empty text says that there is none.
    """
    return sha384(
        pae(
            _L_DIGEST,
            action.encode(),
            msgspec.json.encode(arguments, order="sorted"),
            (session_id or "").encode(),
            (caller.principal_id or "").encode(),
            u64(caller.generation or 0),
            u64(policy_version),
        )
    )


class ApprovalBook:
    """What was asked and what was agreed to. One for each broker; it lives and dies with it."""

    def __init__(self, limits: ApprovalLimits | None = None) -> None:
        self.limits = limits or ApprovalLimits()
        self._open: dict[str, ApprovalRequest] = {}
        self._asked: dict[str | None, deque[int]] = {}
        self._refused: OrderedDict[bytes, int] = OrderedDict()
        self._remembered: OrderedDict[str, Remembered] = OrderedDict()

    # ---- tickets ------------------------------------------------------------------------------------

    def open(self, request: ApprovalRequest, now_ms: int) -> None:
        """Let a question be put, at `now_ms`. Raises `ActionError`, and nobody is asked: `user-denied` when a
        person has just said no to the same call, `rate-limited` when this agent, or all together, ask too
        much."""
        if request.ticket_id in self._open:
            raise ValueError("this ticket is open already")
        principal, limits = request.caller.principal_id, self.limits
        refused_at = self._refused.get(request.digest)
        if refused_at is not None and now_ms < refused_at + limits.quiet_after_no_ms:
            raise ActionError(Code.USER_DENIED, rule=JUST_REFUSED)
        own = sum(one.caller.principal_id == principal for one in self._open.values())
        if own >= limits.pending_per_principal or len(self._open) >= limits.pending:
            raise ActionError(Code.RATE_LIMITED, rule=TOO_MANY)
        for one in [one for one, times in self._asked.items() if times[-1] <= now_ms - _MINUTE_MS]:
            del self._asked[one]
        times = self._asked.setdefault(principal, deque())
        while times and times[0] <= now_ms - _MINUTE_MS:
            times.popleft()
        if len(times) >= limits.asks_per_minute:
            raise ActionError(Code.RATE_LIMITED, rule=TOO_MANY)
        times.append(now_ms)
        self._open[request.ticket_id] = request

    def close(self, request: ApprovalRequest) -> None:
        """Take a question back. What was answered or never open stays so."""
        if self._open.get(request.ticket_id) is request:
            del self._open[request.ticket_id]

    def unasked(self, request: ApprovalRequest) -> None:
        """Close a ticket that reached nobody: it does not count as a question."""
        self.close(request)
        times = self._asked.get(request.caller.principal_id, deque())
        if request.asked_at_ms in times:
            times.remove(request.asked_at_ms)
        if not times:
            self._asked.pop(request.caller.principal_id, None)

    def refuse(self, request: ApprovalRequest, now_ms: int) -> None:
        """Take a no: the ticket is closed, and the same call is not asked about again for a while."""
        self.close(request)
        self._refused[request.digest] = now_ms
        self._refused.move_to_end(request.digest)
        if len(self._refused) > self.limits.refused:
            self._refused.popitem(last=False)

    def redeem(
        self, request: ApprovalRequest, answer: ApprovalAnswer, *, remember_as: str, now_ms: int
    ) -> Remembered | None:
        """Use a yes, once: the ticket is closed, and an agreement that reaches further is kept under the id
        `remember_as` and returned.

        Raises `ActionError`: `user-denied` for a no, `approval-timeout` after the ticket's end, and `failure`
        for an answer to another request, a reach that was not offered, or a ticket that is not open.
        """
        if self._open.get(request.ticket_id) is not request:
            raise ActionError(Code.FAILURE, rule=MISMATCH)
        del self._open[request.ticket_id]
        if not equal(answer.digest, request.digest):
            raise ActionError(Code.FAILURE, rule=MISMATCH)
        if answer.reach is None:
            self.refuse(request, now_ms)
            raise ActionError(Code.USER_DENIED, rule=request.rule)
        if now_ms >= request.expires_at_ms:
            raise ActionError(Code.APPROVAL_TIMEOUT, rule=request.rule)
        if answer.reach not in request.reaches:
            raise ActionError(Code.FAILURE, rule=MISMATCH)
        if answer.reach is Reach.ONCE:
            return None
        in_session = answer.reach is Reach.SESSION
        minutes = MAX_APPROVAL_MINUTES if answer.minutes is None else answer.minutes
        agreed = Remembered(
            id=remember_as,
            caller=request.caller,
            policy_scope=request.policy_scope,
            reach=answer.reach,
            session_id=request.session_id if in_session else None,
            origin=None if in_session else request.origin,
            rule=request.rule,
            policy_version=request.policy_version,
            agreed_at_ms=now_ms,
            expires_at_ms=now_ms + minutes * _MINUTE_MS,
        )
        self._keep(agreed, now_ms)
        return agreed

    # ---- agreements that reach further ----------------------------------------------------------------

    def find(
        self,
        caller: Caller,
        policy_scope: str,
        *,
        session_id: str | None,
        origin: str | None,
        policy_version: int,
        now_ms: int,
    ) -> Remembered | None:
        """What a person agreed to that covers such a call, or None. `session_id` is the tab that the agent
        itself named: an agreement for a tab never covers a call that names none."""
        for one in self.remembered(policy_version, now_ms):
            if one.caller == caller and one.policy_scope == policy_scope and _covers(one, session_id, origin):
                return one
        return None

    def holds(self, agreed: Remembered, policy_version: int, now_ms: int) -> bool:
        """Whether the agreement is still there."""
        self._drop_ended(policy_version, now_ms)
        return self._remembered.get(agreed.id) is agreed

    def remembered(self, policy_version: int, now_ms: int) -> tuple[Remembered, ...]:
        """All agreements that hold, the oldest first."""
        self._drop_ended(policy_version, now_ms)
        return tuple(self._remembered.values())

    def forget(self, agreed_id: str) -> bool:
        """Take one back. False when there is none with this id (any more)."""
        return self._remembered.pop(agreed_id, None) is not None

    def end_principal(self, principal_id: str | None) -> None:
        """Take all of one agent's back (None: those of shared pairing), open tickets too: an answer that is
        on its way opens nothing. That it has asked still counts."""
        for one in [one for one in self._remembered.values() if one.caller.principal_id == principal_id]:
            del self._remembered[one.id]
        for ticket in [
            ticket for ticket in self._open.values() if ticket.caller.principal_id == principal_id
        ]:
            self.close(ticket)

    def end_all(self) -> None:
        """Take everything back, of all agents."""
        self._open.clear()
        self._remembered.clear()

    def _keep(self, agreed: Remembered, now_ms: int) -> None:
        self._drop_ended(agreed.policy_version, now_ms)
        principal = agreed.caller.principal_id
        own = [one.id for one in self._remembered.values() if one.caller.principal_id == principal]
        if len(own) >= self.limits.remembered_per_principal:
            del self._remembered[own[0]]
        elif len(self._remembered) >= self.limits.remembered:
            self._remembered.popitem(last=False)
        if agreed.id in self._remembered:
            raise ValueError("this id is in use")
        self._remembered[agreed.id] = agreed

    def _drop_ended(self, policy_version: int, now_ms: int) -> None:
        for one in list(self._remembered.values()):
            if one.policy_version != policy_version or now_ms >= one.expires_at_ms:
                del self._remembered[one.id]


def _covers(agreed: Remembered, session_id: str | None, origin: str | None) -> bool:
    if agreed.reach is Reach.SESSION:
        return session_id is not None and agreed.session_id == session_id
    return origin is not None and agreed.origin == origin
