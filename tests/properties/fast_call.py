"""A call without socket and key exchange: its proof is real, and everything from the opened seal on."""

import os
from functools import lru_cache

import msgspec
from tabwarden.control import AgentControl
from tabwarden.errors import PeerRefused
from tabwarden.limits import NONCE_BYTES
from tabwarden.model import ConnectionDescriptor
from tabwarden.protocol.proof import AGENT_ROUTE, L_AGENT_REQUEST_MAC, METHOD, CapabilityKeys, prove
from tabwarden.protocol.seal import CallKeys
from tabwarden.service.call import Call
from tabwarden.service.dispatch import run_call
from tabwarden.service.http_gate import RequestHead
from tabwarden.service.no_trace import NullTrace
from tabwarden.service.pipeline import Pipeline

_KEYS = CallKeys(bytes(32), bytes(12), bytes(32), bytes(12))


@lru_cache(64)
def _keys(descriptor: ConnectionDescriptor) -> CapabilityKeys:
    return CapabilityKeys.derive(
        descriptor.token,
        instance=descriptor.instance,
        principal_id=descriptor.principal_id,
        generation=descriptor.generation,
        ed_public=descriptor.ed_public,
        pq_public=descriptor.pq_public,
    )


async def fast_call(
    control: AgentControl, descriptor: ConnectionDescriptor, action: str, arguments: dict[str, str]
) -> bool:
    """Whether a sealed success came back. `Pipeline.open` less the challenge: proof, then the opened call."""
    keys = _keys(descriptor)
    runtime = control._runtime
    body = msgspec.json.encode({"type": "agent-request", "action": action, "args": arguments})
    proof, _ = prove(
        keys.request,
        L_AGENT_REQUEST_MAC,
        AGENT_ROUTE,
        descriptor.instance,
        descriptor.principal_id,
        descriptor.generation,
        runtime.clock.boottime_ms(),
        os.urandom(NONCE_BYTES),
        body,
    )
    head = RequestHead(METHOD, AGENT_ROUTE, proof.headers(), len(body))
    try:
        capability, _, _ = Pipeline(runtime)._prove(L_AGENT_REQUEST_MAC, head, body)
    except PeerRefused:
        return False
    call = Call(runtime, capability, _KEYS, b"", NullTrace(), body)
    await run_call(runtime, call)
    if call.reply is None or call.reply.status != 200:
        return False
    reply = msgspec.json.decode(_KEYS.open_response(call.reply.body, b""))
    return bool(reply["status"] == 200)
