"""The demo's agent: a process of its own that knows nothing but the path of its sealed descriptor.

Reads one JSON command a line from standard input and answers each with one JSON line.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import trio
from tabwarden import AgentClient
from tabwarden.clock import SystemClock
from tabwarden.connection import LoopbackConnection
from tabwarden.errors import CallFailed, ClientError
from tabwarden.limits import NONCE_BYTES
from tabwarden.model import ConnectionDescriptor
from tabwarden.protocol.proof import (
    CHALLENGE_ROUTE,
    L_CHALLENGE_REQUEST,
    CapabilityKeys,
    challenge_body,
    prove,
)

from tabwarden_adapters.credentials import load_descriptor


async def _call(client: AgentClient, action: str, args: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": True, "result": await client.call(action, args)}
    except CallFailed as failed:
        return {"ok": False, "status": failed.status, "code": failed.code, "effect": failed.effect}
    except ClientError as error:
        return {"ok": False, "code": type(error).__name__, "message": str(error)}


async def _replay(descriptor: ConnectionDescriptor) -> dict[str, Any]:
    """Send one good request for a challenge, and then the same bytes again, as an eavesdropper would."""
    keys = CapabilityKeys.derive(
        descriptor.token,
        instance=descriptor.instance,
        principal_id=descriptor.principal_id,
        generation=descriptor.generation,
        ed_public=descriptor.ed_public,
        pq_public=descriptor.pq_public,
    )
    body = challenge_body()
    proof, _ = prove(
        keys.challenge,
        L_CHALLENGE_REQUEST,
        CHALLENGE_ROUTE,
        descriptor.instance,
        descriptor.principal_id,
        descriptor.generation,
        SystemClock().boottime_ms(),
        os.urandom(NONCE_BYTES),
        body,
    )
    statuses = []
    for _ in range(2):
        connection = await LoopbackConnection.open(descriptor.address)
        statuses.append((await connection.post(CHALLENGE_ROUTE, proof.headers(), body)).status)
        connection.close()
    return {"ok": True, "result": statuses}


async def main(connection: Path) -> None:
    descriptor = load_descriptor(connection)
    async with AgentClient(descriptor) as client:
        while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            command = json.loads(line)
            if command["do"] == "replay":
                answer = await _replay(descriptor)
            else:
                answer = await _call(client, command["do"], command["args"])
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
