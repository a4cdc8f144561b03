"""What an authorizer's answer lets through, and what an adapter is told of its call."""

from typing import Any

import pytest
from tabwarden import ACTIONS, ActionError, Authorization, Caller, Code, Grant
from tabwarden.model import AuditOutcome
from tabwarden.service.request_scope import Cause

from tests.attacks.serving import serve
from tests.attacks.toolkit import Peer, connect, envelope, peer_of
from tests.service.stations import HookTracer

TAB = "00000000-0000-0000-0000-000000000000"


class Answer:
    """An authorizer with one answer for everything."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def __call__(self, *arguments: Any, **more: Any) -> Any:
        if isinstance(self._answer, ActionError):
            raise self._answer
        return self._answer


EVERYTHING = frozenset(spec.internal_scope for spec in ACTIONS.values())

DENIED = {
    "no": (Authorization(allowed=False, rule="test.no"), "policy-denied"),
    "no, with every scope": (
        Authorization(allowed=False, scopes=EVERYTHING, rule="test.no"),
        "policy-denied",
    ),
    "no, for a reason": (
        Authorization(allowed=False, code=Code.DESTINATION_DENIED, rule="test.no"),
        "destination-denied",
    ),
    "yes, without any scope": (Authorization(allowed=True, rule="test.no"), "policy-denied"),
    "yes, with all other scopes": (
        Authorization(allowed=True, scopes=EVERYTHING - {"browser:navigate"}, rule="test.no"),
        "policy-denied",
    ),
    "yes, to an admin without the scope": (
        Authorization(allowed=True, role="admin", rule="test.no"),
        "policy-denied",
    ),
    "something true": (Authorization(allowed=1, scopes=EVERYTHING, rule="test.no"), "policy-denied"),
    "a typed ending": (ActionError(Code.CONTENT_DENIED, rule="test.no"), "content-denied"),
}


@pytest.mark.parametrize("kind", DENIED)
async def test_what_is_not_granted_is_not_done(transport, kind):
    answer, code = DENIED[kind]
    done: list[object] = []

    async def act(arguments: object, context: object) -> dict[str, bool]:
        done.append(arguments)
        return {"completed": True}

    async with serve(transport, authorize=Answer(answer), actions={"reload": act}) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        assert (status, body) == (403, {"code": code, "effect": "not_started"})
        assert done == []
        assert broker.reasons.told == []
        [event] = broker.audit.agent_events
        assert (event.outcome, event.code, event.rule) == (AuditOutcome.DENIED, code, "test.no")
        assert (event.action, event.scope, event.session_id) == ("reload", "reload", TAB)
        assert event.committed is None


async def test_an_action_without_an_adapter(transport):
    answer = Answer(Authorization(allowed=True, scopes=EVERYTHING))
    async with serve(transport, authorize=answer, actions={}) as broker:
        status, body = await peer_of(broker).call(broker)
        assert (status, body) == (404, {"code": "not-available", "effect": "not_started"})
        assert [event.outcome for event in broker.audit.agent_events] == ["denied"]


async def test_what_an_adapter_is_told(transport):
    seen: list[Any] = []

    async def act(arguments: Any, context: Any) -> list[object]:
        seen.append((context.caller, context.action, context.role, context.scopes, context.trace.trace_id))
        seen.append(arguments)
        context.check()
        return []

    answer = Authorization(allowed=True, role="admin", scopes=frozenset({"sessions:list"}))
    tracer = HookTracer()
    async with serve(
        transport,
        authorize=Answer(answer),
        actions={"sessions": act},
        tracer=tracer,
        identity_mode="individual",
    ) as broker:
        await broker.control.reconcile_principals([Grant("one", 3)])
        peer = Peer(await broker.control.issue_principal("one", 3), broker.runtime.clock)
        assert await peer.call(broker) == (200, [])
    told, arguments = seen
    assert told == (Caller("one", 3), "sessions", "admin", frozenset({"sessions:list"}), "0" * 31 + "1")
    assert type(arguments) is ACTIONS["sessions"].arguments
    assert tracer.ended == [("ok", None)]


async def test_what_an_authorizer_is_told(transport):
    seen: list[Any] = []

    async def authorize(*arguments: Any, caller: Caller, waiting_for_person: Any) -> Authorization:
        seen.append((*arguments, caller))
        with waiting_for_person():
            pass
        return Authorization(allowed=False)

    async with serve(transport, authorize=authorize, actions={}) as broker:
        await peer_of(broker).call(
            broker, envelope("navigate", args={"sessionId": TAB, "url": "http://a.test"})
        )
    [(action, arguments, scope, session_id, caller)] = seen
    assert (action, scope, session_id, caller) == ("navigate", "navigate", TAB, Caller(None, None))
    assert (arguments.url, arguments.session_id) == ("http://a.test", TAB)


async def test_an_adapter_that_looks_learns_that_its_call_is_over():
    looked: list[object] = []

    async def act(arguments: object, context: Any) -> list[object]:
        broker.runtime.end_calls(Cause.REVOKED)
        try:
            context.check()
        except ActionError as error:
            looked.append(error.code)
            raise
        return []

    async with serve(actions={"sessions": act}) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            assert await wire.rest() == broker.refusal
    assert looked == ["revoked"]
