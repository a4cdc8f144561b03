"""A client in JavaScript against a running broker: M1 to M4 over real HTTP, in both identity modes."""

import json
from typing import Any

import pytest
import trio
from tabwarden import Grant, Limits, start_agent_control
from tabwarden.errors import Refusal
from tabwarden.model import AuditOutcome, Caller, ConnectionDescriptor
from tabwarden.protocol.codec import SUITE

from tests.interop.node import HERE
from tests.protocol.present import PROVIDERS
from tests.support.fakes import AllowOnly, MemoryAudit, Reasons

SESSION = {"id": "01234567-89ab-cdef-0123-456789abcdef", "title": "caf\u00e9 \U0001f375", "foreground": True}
CALLS = [
    {"action": "sessions", "args": {}},
    {"action": "read", "args": {}},
    {"action": "navigate", "args": {"url": "https://a.test"}},
    {"action": "no-such-action", "args": {}},
    {"action": "navigate", "args": {"url": "https://a.test", "extra": 1}},
]
REFUSED = {"status": 403, "body": b"refused\n".hex()}


async def sessions(_arguments: object, _context: object) -> list[dict[str, object]]:
    return [{**SESSION, "cookie": "never leaves"}]


async def read(_arguments: object, _context: object) -> dict[str, object]:
    return {"text": "x" * 10_000, "untrusted": True}


def told(descriptor: ConnectionDescriptor) -> dict[str, object]:
    return {
        "address": descriptor.address,
        "token": descriptor.token.hex(),
        "ed_public": descriptor.ed_public.hex(),
        "pq_public": descriptor.pq_public.hex(),
        "instance": descriptor.instance.hex(),
        "principal_id": descriptor.principal_id,
        "generation": descriptor.generation,
        "protocol": descriptor.protocol,
    }


async def run_client(node: str, descriptor: ConnectionDescriptor) -> dict[str, Any]:
    done = await trio.run_process(
        [node, str(HERE / "live.mjs")],
        stdin=json.dumps({"descriptor": told(descriptor), "calls": CALLS}).encode(),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("mode", ["legacy", "individual"])
async def test_a_client_in_another_language(node: str, mode: str, provider: str) -> None:
    audit, reasons, authorize = MemoryAudit(), Reasons(), AllowOnly("sessions", "read")
    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=authorize,
            actions={"sessions": sessions, "read": read},
            audit=audit,
            on_error=reasons,
            identity_mode=mode,  # type: ignore[arg-type]
            limits=Limits(batch_size=16),
            provider=PROVIDERS[provider],
        )
        if mode == "individual":
            await control.reconcile_principals([Grant("agent-7", 3)])
            descriptor = await control.issue_principal("agent-7", 3)
        else:
            assert control.descriptor is not None
            descriptor = control.descriptor
        assert descriptor.protocol == SUITE
        result = await run_client(node, descriptor)
        statistics = control.statistics()
        await control.close()

    assert [reply["status"] for reply in result["results"]] == [200, 200, 403, 400, 400]
    assert result["results"][0]["body"] == [SESSION]
    assert result["results"][1]["body"] == {"text": "x" * 10_000, "untrusted": True}
    assert [reply["body"] for reply in result["results"][2:]] == [
        {"code": code, "effect": "not_started"}
        for code in ("policy-denied", "unknown-action", "invalid-arguments")
    ]
    assert result["notices"] == {
        "leaf": "ed25519-signature",
        "path": "ed25519-signature",
        "ed25519 signature": "ed25519-signature",
        "ml-dsa signature": "ml-dsa-signature",
        "binding": "binding-mac",
        "binding mac": "binding-mac",
    }
    assert result["once"] == 200
    assert result["replayed"] == REFUSED
    assert result["stranger"] == REFUSED

    caller = Caller("agent-7", 3) if mode == "individual" else Caller(None, None)
    assert {who for _, who in authorize.asked} == {caller}
    assert [event.outcome for event in audit.terminal()] == [
        AuditOutcome.COMPLETED,
        AuditOutcome.COMPLETED,
        AuditOutcome.DENIED,
        AuditOutcome.DENIED,
        AuditOutcome.DENIED,
        AuditOutcome.COMPLETED,
    ]
    assert {event.principal_id for event in audit.agent_events} == {caller.principal_id}
    assert statistics.refusals == {Refusal.NONCE: 1, Refusal.PROOF: 1}
    # Seven challenges were handed out, and nobody's request cost a signature of its own.
    assert statistics.signatures <= 4
    assert reasons.told == []
