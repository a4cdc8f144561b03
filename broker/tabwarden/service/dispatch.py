"""The stages of an opened call: parse, rate, authorize, audit, act, project. One span each.

Every await is followed by another look at whether the call may go on. Exception groups are collapsed
here and nowhere else, and no text of an exception goes any further.
"""

import math
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

import msgspec
import trio

from tabwarden.actions import ACTIONS, Envelope, OutcomeQuery, agent_request
from tabwarden.authority.projection import NotProjectable, project
from tabwarden.errors import ActionError, Code, HostReason, MalformedError
from tabwarden.model import AgentRequest, AuditOutcome, Authorization, AuthorizedAction, Outcome, Phase
from tabwarden.ports import ActionAdapter
from tabwarden.protocol.codec import parse_json
from tabwarden.service.call import Call
from tabwarden.service.request_scope import Cause
from tabwarden.service.runtime import Runtime

T = TypeVar("T")

_FAILED = partial(ActionError, Code.FAILURE, committed=None)
_NOT_RECORDED = partial(ActionError, Code.AUDIT_UNAVAILABLE)


@trio.lowlevel.enable_ki_protection
async def run_call(runtime: Runtime, call: Call) -> None:
    """Take the call to its end. Raises nothing but the cancellation of the task it runs in.

    Runs protected from KeyboardInterrupt: a Ctrl-C belongs to the host's main task, and one that comes
    out of an adapter was raised by the adapter.
    """
    outcome = Outcome(Code.FAILURE)
    try:
        with call.life.scope:
            outcome = await _stages(runtime, call)
        if call.life.cause is not None:
            # Others are ended with this one: their adapters are told first, and then each says its end.
            await trio.lowlevel.cancel_shielded_checkpoint()
    except trio.Cancelled:
        # From outside: the whole broker is being torn down.
        call.cancel(Cause.CLOSED)
        raise
    except ActionError as error:
        outcome = call.fail(error)
    except Exception:
        # Ours: everything that is not has been translated below.
        runtime.report(HostReason.INTERNAL_FAULT)
    finally:
        call.finish(outcome)


async def _stages(runtime: Runtime, call: Call) -> Outcome:
    query_or_request = _parse(runtime, call)
    if isinstance(query_or_request, OutcomeQuery):
        now = runtime.clock.monotonic_ms()
        state = call.capability.account.outcomes.ask(query_or_request.idempotency_key, now)
        return Outcome(None, {"outcome": state})
    request = call.request = query_or_request
    call.trace.annotate(action=request.action, scope=request.policy_scope, session_id=request.session_id)
    with call.trace.phase(Phase.AUTHORIZATION):
        authorized = await _authorize(runtime, call, request)
    adapter = runtime.adapters.get(request.action)
    if adapter is None:
        raise ActionError(Code.NOT_AVAILABLE)
    _begin_once(runtime, call, request)
    with call.trace.phase(Phase.AUDIT):
        await _record_authorization(runtime, call)
    with call.trace.phase(Phase.DISPATCH):
        value = await _act(runtime, call, authorized, adapter)
    with call.trace.phase(Phase.PROJECTION):
        try:
            body = project(ACTIONS[request.action], value)
        except NotProjectable:
            runtime.report(HostReason.RESULT_NOT_PROJECTABLE)
            raise ActionError(Code.FAILURE, committed=None) from None
        call.check_fits(body)
    return call.succeed(body)


def _parse(runtime: Runtime, call: Call) -> AgentRequest | OutcomeQuery:
    """Strict JSON, then the envelope, then one unit of the caller's minute, then the arguments."""
    envelope: Envelope | OutcomeQuery | None = None
    try:
        value = parse_json(call.authenticated.plaintext)
        kind = value.get("type") if isinstance(value, dict) else None
        if kind == "agent-outcome":
            envelope = msgspec.convert(value, OutcomeQuery)
        else:
            envelope = msgspec.convert(value, Envelope)
    except (MalformedError, msgspec.ValidationError):
        pass
    retry_after_ms = call.capability.account.requests.take(runtime.clock.monotonic_ms())
    if envelope is None:
        raise ActionError(Code.BAD_REQUEST)
    if retry_after_ms:
        call.retry_after_ms = retry_after_ms
        raise ActionError(Code.RATE_LIMITED)
    if isinstance(envelope, OutcomeQuery):
        return envelope
    if isinstance(envelope.traceparent, str):
        call.trace.adopt(envelope.traceparent)
    return agent_request(call.authenticated, envelope)


async def _authorize(runtime: Runtime, call: Call, request: AgentRequest) -> AuthorizedAction:
    ask = partial(
        runtime.authorize,
        request.action,
        request.arguments,
        request.policy_scope,
        request.session_id,
        caller=request.caller,
        waiting_for_person=call.life.waiting_for_person,
    )
    answer: object = await _guarded(runtime, HostReason.AUTHORIZER_FAILED, ask)
    call.check()
    if not isinstance(answer, Authorization):
        runtime.report(HostReason.AUTHORIZER_FAILED)
        raise ActionError(Code.FAILURE)
    call.rule = answer.rule
    if not answer.grants(request.internal_scope):
        raise _denial(answer)
    authorized = AuthorizedAction.of(request, answer)
    call.authorized(authorized.role, authorized.scopes)
    return authorized


def _denial(answer: Authorization) -> ActionError:
    if answer.allowed is not True:
        return ActionError(Code.POLICY_DENIED if answer.allowed else answer.code, rule=answer.rule)
    if answer.ask is not None:
        # Whoever asks people takes `ask` out of the answer; here it says that nobody does.
        return ActionError(Code.NO_APPROVER, rule=answer.ask)
    return ActionError(Code.POLICY_DENIED, rule=answer.rule)


def _begin_once(runtime: Runtime, call: Call, request: AgentRequest) -> None:
    key = request.idempotency_key
    if key is not None and not call.capability.account.outcomes.begin(key, runtime.clock.monotonic_ms()):
        raise ActionError(Code.CONFLICT)


async def _record_authorization(runtime: Runtime, call: Call) -> None:
    try:
        call.ticket = runtime.audit.admit(call.event(AuditOutcome.AUTHORIZED))
    except Exception:
        # `AuditUnavailable`; a sink that raises anything else is no better.
        runtime.report(HostReason.AUDIT_UNAVAILABLE)
        raise ActionError(Code.AUDIT_UNAVAILABLE) from None
    await _guarded(runtime, HostReason.AUDIT_UNAVAILABLE, call.ticket.durable, _NOT_RECORDED)
    call.check()


async def _act(runtime: Runtime, call: Call, authorized: AuthorizedAction, adapter: ActionAdapter) -> object:
    act = partial(adapter, authorized.request.arguments, call)
    # Nothing is awaited from here to the adapter's own first step.
    _require_still_holds(runtime, authorized)
    value: object = await _guarded(runtime, HostReason.ADAPTER_FAILED, act)
    if ACTIONS[authorized.request.action].effect != "read":
        call.effects_done()
    # A thread or a shield may have outrun its cancellation and come back as if nothing had happened.
    call.check()
    return value


def _require_still_holds(runtime: Runtime, authorized: AuthorizedAction) -> None:
    """Raise `stale` when what was decided no longer stands. The function is not ours: it may raise."""
    if authorized.still_holds is None:
        return
    try:
        holds = authorized.still_holds()
    except BaseException:
        runtime.report(HostReason.AUTHORIZER_FAILED)
        raise ActionError(Code.FAILURE) from None
    if holds is not True:
        raise ActionError(Code.STALE)


async def _guarded(
    runtime: Runtime,
    reason: HostReason,
    work: Callable[[], Awaitable[T]],
    failure: Callable[[], ActionError] = _FAILED,
) -> T:
    """Run code that is not ours. Only our own cancellation and `ActionError` get through; for the rest, the
    host is told `reason` and `failure()` is raised."""
    try:
        return await work()
    except ActionError:
        raise
    except BaseException as error:
        leaves = list(_leaves(error))
        cancelled = next((leaf for leaf in leaves if isinstance(leaf, trio.Cancelled)), None)
        # One that came from a scope elsewhere (a task shared with others) does not end this call's task.
        if cancelled is not None and trio.current_effective_deadline() == -math.inf:
            raise cancelled from None
        if len(leaves) == 1 and isinstance(leaves[0], ActionError):
            raise leaves[0] from None
        runtime.report(reason)
    raise failure()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
