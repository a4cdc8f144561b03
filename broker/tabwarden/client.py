"""The agent's side: `AgentClient` for trio and asyncio (through anyio).

    async with AgentClient(descriptor) as client:
        tabs = await client.call("sessions")

It believes nothing that was not sealed for this very call: not the HTTP status, not a clear-text error, not a
challenge whose two signatures and binding it has not checked itself.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec

from tabwarden.clock import SystemClock
from tabwarden.connection import LoopbackConnection, Reply
from tabwarden.errors import (
    CallFailed,
    ChallengeLimited,
    ClientDeadline,
    ClientError,
    Code,
    ContentClass,
    DescriptorError,
    MalformedError,
    ProtocolViolation,
    Refused,
)
from tabwarden.limits import BUSY_RETRY_MS, NONCE_BYTES, Limits
from tabwarden.model import ConnectionDescriptor
from tabwarden.ports import Clock
from tabwarden.protocol.challenge import Binding, ReceivedChallenge
from tabwarden.protocol.codec import SUITE, parse_decimal, parse_json
from tabwarden.protocol.primitives import NativeProvider, PqProvider, X25519Key
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_AGENT_REQUEST_MAC,
    L_CHALLENGE_REQUEST,
    METHOD,
    CapabilityKeys,
    Proof,
    challenge_body,
    instance_id,
    prove,
)
from tabwarden.protocol.seal import (
    CallKeys,
    RequestWire,
    request_associated,
    response_associated,
    transcript_hash,
)

_VERIFIED_ROOTS = 64  # two hours of an idle broker, some seconds of a busy one
_IDLE_CONNECTIONS = 64
_DEFAULT_DEADLINE_S = 15.0
_CONTENT_CLASSES = frozenset(one.value for one in ContentClass)
_M1_BODY = challenge_body()


class VerifiedRoots:
    """Roots whose two signatures were verified, bounded, oldest first out.

    An entry names the instance, which is a hash of the keys that verified it, so clients of different
    brokers can share one.
    """

    def __init__(self, capacity: int = _VERIFIED_ROOTS) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[tuple[bytes, int, bytes], None] = OrderedDict()

    def __contains__(self, entry: tuple[bytes, int, bytes]) -> bool:
        return entry in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: tuple[bytes, int, bytes]) -> None:
        """(instance, count, root), after both signatures were found good."""
        self._entries[entry] = None
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


_OF_THIS_PROCESS = VerifiedRoots()


@dataclass(frozen=True, slots=True)
class _Opened:
    """A challenge that passed every check, with what the transcript needs of it."""

    challenge: ReceivedChallenge
    wire: bytes
    request_input: bytes
    request_mac: bytes


class AgentClient:
    """Calls one broker as one principal. Safe for many concurrent calls in one event loop."""

    def __init__(
        self,
        descriptor: ConnectionDescriptor,
        *,
        deadline_s: float = _DEFAULT_DEADLINE_S,
        clock: Clock | None = None,
        provider: PqProvider | None = None,
        verified_roots: VerifiedRoots | None = None,
    ) -> None:
        """`deadline_s` bounds a whole call, retries included. Raises `DescriptorError`.

        `verified_roots` is what this process has verified so far, shared by its clients unless given.
        """
        self._clock = clock or SystemClock()
        _check_descriptor(descriptor, self._clock.wall_ms())
        self._descriptor = descriptor
        self._deadline_s = deadline_s
        self._provider = provider or NativeProvider()
        self._keys = CapabilityKeys.derive(
            descriptor.token,
            instance=descriptor.instance,
            principal_id=descriptor.principal_id,
            generation=descriptor.generation,
            ed_public=descriptor.ed_public,
            pq_public=descriptor.pq_public,
        )
        self._verified_roots = _OF_THIS_PROCESS if verified_roots is None else verified_roots
        self._idle: list[LoopbackConnection] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the kept connections, and those of calls in flight when these end."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    async def call(
        self,
        action: str,
        args: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
    ) -> Any:
        """Do one action and return its result (JSON values).

        Raises `CallFailed` for a sealed failure, otherwise another `ClientError`. A sealed
        `browser-management-busy` is tried again, at most three times; nothing else ever is.
        """
        request: dict[str, Any] = {"type": "agent-request", "action": action, "args": dict(args or {})}
        if idempotency_key is not None:
            request["idempotencyKey"] = idempotency_key
        if traceparent is not None:
            request["traceparent"] = traceparent
        return await self._with_deadline(request)

    async def outcome(self, idempotency_key: str) -> str:
        """What became of the call with this key: `not_started`, `committed` or `unknown`."""
        answer = await self._with_deadline({"type": "agent-outcome", "idempotencyKey": idempotency_key})
        return str(answer["outcome"])

    async def _with_deadline(self, request: dict[str, Any]) -> Any:
        try:
            plaintext = msgspec.json.encode(request)
        except (TypeError, ValueError):
            raise ClientError("the arguments are not JSON values") from None
        with anyio.move_on_after(self._deadline_s):
            for pause_ms in BUSY_RETRY_MS:
                try:
                    return await self._once(plaintext)
                except CallFailed as failed:
                    if (failed.status, failed.code) != (409, Code.BUSY.value):
                        raise
                await anyio.sleep(pause_ms / 1000)
            return await self._once(plaintext)
        raise ClientDeadline("the call took longer than its deadline; what became of it is not known")

    async def _once(self, plaintext: bytes) -> Any:
        connection = await self._connection()
        try:
            result = await self._exchange(connection, plaintext)
        except CallFailed:
            self._keep(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return result

    async def _connection(self) -> LoopbackConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.fresh:
                return connection
            connection.close()
        return await LoopbackConnection.open(self._descriptor.address)

    def _keep(self, connection: LoopbackConnection) -> None:
        if connection.usable and not self._closed and len(self._idle) < _IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()

    async def _exchange(self, connection: LoopbackConnection, plaintext: bytes) -> Any:
        opened, ours = await self._get_challenge(connection)
        try:
            kem_ciphertext, kem_secret = self._provider.encapsulate(opened.challenge.leaf.kem_public)
            x_secret = ours.exchange(opened.challenge.leaf.x_public)
        except MalformedError:
            raise ProtocolViolation("the challenge's keys are not valid") from None
        descriptor = self._descriptor
        transcript = transcript_hash(
            opened.request_input, opened.request_mac, opened.wire, kem_ciphertext, ours.public
        )
        keys = CallKeys.derive(self._keys.psk, kem_secret, x_secret, transcript)
        challenge_id = opened.challenge.leaf.challenge_id
        associated = request_associated(
            METHOD,
            AGENT_ROUTE,
            descriptor.instance,
            challenge_id,
            descriptor.principal_id,
            descriptor.generation,
            transcript,
        )
        try:
            sealed = keys.seal_request(plaintext, associated)
        except MalformedError:
            raise ClientError("the request is larger than one call can carry") from None
        wire = RequestWire(challenge_id, kem_ciphertext, ours.public, sealed).encode()
        proof, _ = self._prove(L_AGENT_REQUEST_MAC, AGENT_ROUTE, self._keys.request, wire)
        reply = await connection.post(AGENT_ROUTE, proof.headers(), wire)
        _check_clear_status(reply)
        try:
            return _result(keys.open_response(reply.body, response_associated(transcript, wire)))
        except MalformedError:
            raise ProtocolViolation("the reply was not sealed for this call") from None

    async def _get_challenge(self, connection: LoopbackConnection) -> tuple[_Opened, X25519Key]:
        proof, request_input = self._prove(
            L_CHALLENGE_REQUEST, CHALLENGE_ROUTE, self._keys.challenge, _M1_BODY
        )
        asked_at = self._clock.boottime_ms()
        await connection.send(CHALLENGE_ROUTE, proof.headers(), _M1_BODY)
        # Our one-use key needs nothing of the challenge: it is made while the broker is busy.
        ours = X25519Key()
        reply = await connection.receive()
        _check_clear_status(reply)
        descriptor = self._descriptor
        expected = Binding(
            METHOD, AGENT_ROUTE, descriptor.principal_id, descriptor.generation, proof.nonce, 0, 0
        )
        try:
            challenge = ReceivedChallenge.parse(reply.body)
            self._check_root(challenge)
            challenge.check_binding(
                self._keys.binding, expected, request_input, proof.mac, descriptor.instance
            )
        except MalformedError:
            raise ProtocolViolation("the challenge does not come from the paired broker") from None
        self._check_time(challenge, asked_at)
        return _Opened(challenge, reply.body, request_input, proof.mac), ours

    def _check_root(self, challenge: ReceivedChallenge) -> None:
        # A root covers its whole batch, so its two signatures need verifying once.
        descriptor = self._descriptor
        known = (descriptor.instance, challenge.count, challenge.root)
        if known in self._verified_roots:
            return
        challenge.check_signatures(
            self._provider, descriptor.ed_public, descriptor.pq_public, descriptor.instance
        )
        self._verified_roots.add(known)

    def _check_time(self, challenge: ReceivedChallenge, asked_at: int) -> None:
        """By our own clock and never by what the message says alone: late is late even if it claims not."""
        now = self._clock.boottime_ms()
        binding = challenge.binding
        lifetime = min(binding.lifetime, Limits().challenge_lifetime_ms)
        if now - asked_at >= lifetime or now >= challenge.leaf.not_after:
            raise ProtocolViolation("the challenge came too late")
        if not asked_at - lifetime <= binding.issued <= now + lifetime:
            raise ProtocolViolation("the challenge is from another time")

    def _prove(self, label_bytes: bytes, route: bytes, key: bytes, body: bytes) -> tuple[Proof, bytes]:
        descriptor = self._descriptor
        return prove(
            key,
            label_bytes,
            route,
            descriptor.instance,
            descriptor.principal_id,
            descriptor.generation,
            self._clock.boottime_ms(),
            os.urandom(NONCE_BYTES),
            body,
        )


def _check_descriptor(descriptor: ConnectionDescriptor, now_wall_ms: int) -> None:
    if descriptor.protocol != SUITE:
        raise DescriptorError("the descriptor is for another protocol: update this program or the broker")
    expected = instance_id(descriptor.ed_public, descriptor.pq_public, descriptor.address)
    if descriptor.instance != expected:
        raise DescriptorError(
            "the descriptor's keys, address and instance do not belong together: pair again"
        )
    if descriptor.expires_at_ms is not None and descriptor.expires_at_ms <= now_wall_ms:
        raise DescriptorError("the descriptor has expired: ask for a new one")


def _check_clear_status(reply: Reply) -> None:
    """Anything but 200 is a refusal in the clear. 200 itself means nothing: only the seal does."""
    if reply.status == 200:
        return
    if reply.status == 429:
        try:
            seconds = parse_decimal(reply.retry_after or b"60", 3600)
        except MalformedError:
            seconds = 60
        raise ChallengeLimited(seconds)
    if reply.status in (403, 413):
        raise Refused("the broker refused: it was restarted, or this pairing is revoked, replaced or expired")
    raise ProtocolViolation("the answer has a status that the protocol does not know")


def _result(plaintext: bytes) -> Any:
    """The body of a sealed success. Raises `CallFailed`, or `MalformedError` when it is no sealed reply."""
    message = parse_json(plaintext)
    if not isinstance(message, dict) or message.get("type") != "agent-response":
        raise MalformedError("reply type")
    status, body = message.get("status"), message.get("body")
    # bool is an int in Python, and `true` is not a status.
    if type(status) is not int or not (status == 200 or 400 <= status <= 599):
        raise MalformedError("reply status")
    if status == 200:
        return body
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise MalformedError("reply body")
    retry_after = body.get("retryAfterMs")
    effect, found = body.get("effect"), body.get("contentClass")
    raise CallFailed(
        status,
        body["code"],
        retry_after if type(retry_after) is int else None,
        effect if effect in ("not_started", "committed", "unknown") else "unknown",
        found if isinstance(found, str) and found in _CONTENT_CLASSES else None,
    )
