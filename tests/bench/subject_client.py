"""The subject's client: `AgentClient` as an agent author uses it; one for each caller, a principal each."""

import os
from collections.abc import Callable

from tabwarden import AgentClient, ConnectionDescriptor
from tabwarden.clock import SystemClock
from tabwarden.protocol.codec import CONTENT_TYPE, SUITE
from tabwarden.protocol.proof import CHALLENGE_ROUTE, Proof, challenge_body

from tests.bench.stacks import Client, Ready


def descriptor(ready: Ready, index: int) -> ConnectionDescriptor:
    """The credential of one of the principals."""
    names = list(ready["tokens"])
    name = names[index % len(names)]
    return ConnectionDescriptor(
        address=ready["address"],
        token=bytes.fromhex(ready["tokens"][name]),
        ed_public=bytes.fromhex(ready["ed_public"]),
        pq_public=bytes.fromhex(ready["pq_public"]),
        instance=bytes.fromhex(ready["instance"]),
        principal_id=name,
        generation=1,
        protocol=SUITE,
    )


class SubjectClient:
    """One caller."""

    def __init__(self, ready: Ready, index: int) -> None:
        self._client = AgentClient(descriptor(ready, index))

    async def call(self) -> None:
        """Make one no-op call."""
        await self._client.call("sessions")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._client.aclose()


async def connect(ready: Ready, index: int) -> Client:
    """One caller; its connection opens with its first call."""
    return SubjectClient(ready, index)


def forge(ready: Ready) -> Callable[[], bytes]:
    """Requests for a challenge that are right in everything but their proof: what a stranger can send."""
    name = next(iter(ready["tokens"]))
    clock, body = SystemClock(), challenge_body()

    def request() -> bytes:
        proof = Proof(name, 1, clock.boottime_ms(), os.urandom(32), os.urandom(48))
        lines = [
            b"POST %s HTTP/1.1" % CHALLENGE_ROUTE,
            b"host: " + ready["address"].encode(),
            b"content-type: " + CONTENT_TYPE,
            b"content-length: %d" % len(body),
            *(b"%s: %s" % header for header in proof.headers()),
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    return request
