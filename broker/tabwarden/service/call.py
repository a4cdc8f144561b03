"""One opened call: what it may still do, how it ends, and that it ends exactly once.

`run()` does the work in a task of its own; `finish()` is synchronous, so nothing can come between the
terminal audit record, the seal and the last look at the caller's rights. Whoever watches the connection
may `abandon()` a call whose adapter does not stop: what the adapter returns later goes nowhere.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import trio

from tabwarden.actions import ACTIONS
from tabwarden.authority.outcomes import effect
from tabwarden.authority.principals import Capability
from tabwarden.authority.projection import encode
from tabwarden.errors import DENIALS, ActionError, Code, ContentClass, HostReason
from tabwarden.model import (
    AgentEvent,
    AgentRequest,
    AuditOutcome,
    AuthenticatedRequest,
    Caller,
    Outcome,
    Phase,
    Role,
    SealedReply,
    TraceOutcome,
)
from tabwarden.ports import AuditTicket, RequestTrace
from tabwarden.protocol.seal import MAX_PLAINTEXT, CallKeys
from tabwarden.service.http_gate import REFUSED, HttpReply
from tabwarden.service.request_scope import CAUSE_CODE, CAUSE_TRACE, Cause, RequestScope
from tabwarden.service.runtime import Runtime


class Call:
    """A call in flight. Implements `CallContext` for its adapter."""

    def __init__(
        self,
        runtime: Runtime,
        capability: Capability,
        keys: CallKeys,
        associated: bytes,
        trace: RequestTrace,
        plaintext: bytes,
    ) -> None:
        self._runtime = runtime
        self.capability = capability
        self._keys = keys
        self._associated = associated
        self._trace = trace
        self._boot_ms = runtime.clock.boottime_ms()
        self.authenticated = AuthenticatedRequest(capability.caller, plaintext)
        self.request_id = os.urandom(16).hex()
        self.life = RequestScope(runtime.limits)
        self.request: AgentRequest | None = None
        self.ticket: AuditTicket | None = None
        self.rule: str | None = None
        self.retry_after_ms: int | None = None
        self._role: Role = "agent"
        self._scopes: frozenset[str] = frozenset()
        self._committed: bool | None = False
        self._finished = False
        self.reply: HttpReply | None = None
        self.done = trio.Event()
        self.on_abandon: Callable[[], None] | None = None
        trace.annotate(
            principal_id=self.caller.principal_id,
            generation=self.caller.generation,
            request_bytes=len(plaintext),
        )
        runtime.calls.add(self)

    # ---- CallContext ------------------------------------------------------------------------------

    @property
    def caller(self) -> Caller:
        return self.authenticated.caller

    @property
    def action(self) -> str:
        return "" if self.request is None else self.request.action

    @property
    def role(self) -> Role:
        return self._role

    @property
    def scopes(self) -> frozenset[str]:
        return self._scopes

    @property
    def trace(self) -> RequestTrace:
        return self._trace

    def effects_begin(self) -> None:
        if self._committed is False:
            self._committed = None

    def effects_done(self) -> None:
        self._committed = True

    def waiting_for_person(self) -> AbstractContextManager[None]:
        return self.life.waiting_for_person()

    def check(self) -> None:
        self.life.check()
        if not self._runtime.registry.is_current(self.capability, self._runtime.wall_ms()):
            # Expired by time: nobody cancelled it, so it cancels itself.
            self.cancel(Cause.REVOKED)
            self.life.check()

    # ---- the stages' side -------------------------------------------------------------------------

    def authorized(self, role: Role, scopes: frozenset[str]) -> None:
        """Record what the authorizer gave, before the adapter may see it."""
        self._role, self._scopes = role, scopes

    def event(self, outcome: AuditOutcome, code: Code | None = None) -> AgentEvent:
        """The audit record of this call at this moment."""
        runtime, request, caller = self._runtime, self.request, self.caller
        terminal = outcome is not AuditOutcome.AUTHORIZED
        return AgentEvent(
            outcome=outcome,
            request_id=self.request_id,
            wall_ms=runtime.clock.wall_ms(),
            boot_ms=self._boot_ms,
            action=None if request is None else request.action,
            scope=None if request is None else request.policy_scope,
            code=code,
            rule=self.rule,
            session_id=None if request is None else request.session_id,
            principal_id=caller.principal_id,
            generation=caller.generation,
            committed=self._committed if terminal and self.ticket is not None else None,
            trace_id=self._trace.trace_id,
            span_id=self._trace.span_id,
        )

    def cancel(self, cause: Cause) -> None:
        """End the call early; the first cause stays."""
        self.life.cancel(cause)

    # ---- the end ----------------------------------------------------------------------------------

    def fail(self, error: ActionError) -> Outcome:
        """The outcome of a typed ending, with what is known of side effects."""
        self.rule = error.rule or self.rule
        if self._committed is False and self.ticket is not None and not self._reads_only:
            self._committed = error.committed
        found = error.content_class if error.code is Code.CONTENT_DENIED else None
        # A host's own inspector raised it: what is not of the closed set says nothing.
        told = found if isinstance(found, ContentClass) else None
        return Outcome(error.code, committed=self._committed, content_class=told)

    @property
    def _reads_only(self) -> bool:
        return self.request is not None and ACTIONS[self.request.action].effect == "read"

    def succeed(self, body: object) -> Outcome:
        """The outcome of a projected result."""
        self._committed = True
        return Outcome(None, body, committed=True)

    def finish(self, outcome: Outcome) -> None:
        """Record, seal, look once more, release. Only the first call does anything. Never awaits."""
        if self._finished:
            return
        self._finished = True
        runtime = self._runtime
        runtime.calls.discard(self)
        cause = self.life.cause
        if cause is not None:
            # Whatever was being returned, the call was over before: nothing of it leaves.
            outcome = Outcome(CAUSE_CODE[cause], committed=self._committed)
        try:
            with self._trace.phase(Phase.AUDIT):
                self._record(outcome)
        except Exception:
            # `AuditUnavailable`; a sink that raises anything else has not written the record either.
            runtime.report(HostReason.AUDIT_UNAVAILABLE)
            outcome = Outcome(Code.AUDIT_UNAVAILABLE, committed=outcome.committed)
        key = None if self.request is None else self.request.idempotency_key
        if key is not None and self.ticket is not None:
            self.capability.account.outcomes.end(key, effect(outcome.committed), runtime.clock.monotonic_ms())
        sealed: SealedReply | None = None
        if cause is not Cause.DISCONNECTED:
            with self._trace.phase(Phase.ENCRYPTION):
                sealed = self._seal(outcome)
        # After sealing: a revocation up to here takes the result back.
        if not runtime.registry.is_current(self.capability, runtime.wall_ms()):
            if outcome.code is None:
                runtime.report(HostReason.RESULT_SUPPRESSED)
            self.reply = REFUSED
        elif cause is Cause.REVOKED:
            self.reply = REFUSED
        elif sealed is not None:
            self.reply = HttpReply(200, sealed.wire)
            self._trace.annotate(reply_bytes=len(sealed.wire))
        code = None if outcome.code is None else outcome.code.value
        self._trace.end(self._trace_outcome(outcome, cause), code)
        runtime.outcomes[self.action, code or "ok"] += 1
        self.done.set()

    def abandon(self) -> None:
        """Answer without the adapter: it did not stop when its time was up."""
        if not self._finished:
            self._runtime.report(HostReason.ADAPTER_IGNORED_CANCELLATION)
            cause = self.life.cause or Cause.DEADLINE
            self.cancel(cause)
            self.finish(Outcome(CAUSE_CODE[cause], committed=self._committed))
            if self.on_abandon is not None:
                self.on_abandon()

    async def see_off(self) -> None:
        """After `cancel`: give the work its time to stop, then end the call without it."""
        with trio.move_on_after(self._runtime.limits.cancel_grace_s):
            await self.done.wait()
        self.abandon()

    def _record(self, outcome: Outcome) -> None:
        if outcome.code is None:
            kind = AuditOutcome.COMPLETED
        else:
            kind = AuditOutcome.DENIED if outcome.code in DENIALS else AuditOutcome.FAILED
        event = self.event(kind, outcome.code)
        if self.ticket is None:
            self._runtime.audit.note(event)
        else:
            self.ticket.settle(event)

    def _seal(self, outcome: Outcome) -> SealedReply:
        body: object = outcome.body
        if outcome.code is not None:
            ending: dict[str, object] = {"code": outcome.code.value, "effect": effect(outcome.committed)}
            if self.retry_after_ms is not None:
                ending["retryAfterMs"] = self.retry_after_ms
            if outcome.content_class is not None:
                ending["contentClass"] = outcome.content_class.value
            body = ending
        message = {"type": "agent-response", "status": outcome.status, "body": body}
        return SealedReply(self._keys.seal_response(encode(message), self._associated))

    def check_fits(self, body: object) -> None:
        """Raise `result-too-large` for a result that no reply can hold. The margin is the envelope's."""
        if len(encode(body)) > MAX_PLAINTEXT - 64:
            raise ActionError(Code.RESULT_TOO_LARGE, committed=self._committed)

    @staticmethod
    def _trace_outcome(outcome: Outcome, cause: Cause | None) -> TraceOutcome:
        if cause is not None:
            return CAUSE_TRACE[cause]
        if outcome.code is None:
            return TraceOutcome.OK
        return TraceOutcome.DENIED if outcome.code in DENIALS else TraceOutcome.FAILED
