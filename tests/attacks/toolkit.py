"""What an attacker has: raw HTTP over TCP, and an honest peer that can be made to deviate in one thing."""

import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import trio
from tabwarden.errors import Refusal
from tabwarden.model import ConnectionDescriptor
from tabwarden.protocol.challenge import ReceivedChallenge
from tabwarden.protocol.codec import CONTENT_TYPE, base64url
from tabwarden.protocol.primitives import NativeProvider, X25519Key, hmac_sha384
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_AGENT_REQUEST_MAC,
    L_CHALLENGE_REQUEST,
    METHOD,
    PROOF_HEADERS,
    CapabilityKeys,
    challenge_body,
    mac_input,
)
from tabwarden.protocol.seal import (
    CallKeys,
    RequestWire,
    pad,
    request_associated,
    response_associated,
    transcript_hash,
)

from tests.attacks.serving import Broker
from tests.support.fakes import ManualClock

PROVIDER = NativeProvider()


def envelope(action: str = "sessions", **more: Any) -> bytes:
    """The plaintext of an honest M3."""
    return msgspec.json.encode({"type": "agent-request", "action": action, "args": {}} | more)


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    """The same bytes with one bit flipped."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


@dataclass(frozen=True)
class Request:
    """One HTTP request before it is written; `mac` and `mac_input` are the proof's."""

    route: bytes
    proof: tuple[tuple[bytes, bytes], ...]
    body: bytes
    mac: bytes = b""
    mac_input: bytes = b""
    method: bytes = b"POST"

    def raw(self, host: str, *extra: bytes, route: bytes | None = None) -> bytes:
        lines = [
            b"%s %s HTTP/1.1" % (self.method, route or self.route),
            b"host: " + host.encode(),
            b"content-type: " + CONTENT_TYPE,
            b"content-length: %d" % len(self.body),
            *(b"%s: %s" % field for field in self.proof),
            *extra,
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body

    def with_header(self, name: bytes, value: bytes) -> "Request":
        """The same with one proof header's value replaced."""
        return replace(
            self, proof=tuple((field, value if field == name else old) for field, old in self.proof)
        )


@dataclass(frozen=True)
class Reply:
    """One HTTP reply; `raw` is everything that was read."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    raw: bytes


class Wire:
    """A TCP connection with nothing between: what is written is what travels."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._held = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def receive(self) -> Reply:
        """One whole reply; fails when the peer closes first."""
        with trio.fail_after(15):
            while b"\r\n\r\n" not in self._held:
                self._held += await self._some()
            head, _, rest = self._held.partition(b"\r\n\r\n")
            first, *lines = head.split(b"\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)
            }
            length = int(headers[b"content-length"])
            while len(rest) < length:
                rest += await self._some()
        self._held = rest[length:]
        body = rest[:length]
        return Reply(int(first.split(b" ")[1]), headers, body, head + b"\r\n\r\n" + body)

    async def _some(self) -> bytes:
        data = await self.stream.receive_some(65536)
        assert data, f"closed after {self._held!r}"
        return bytes(data)

    async def rest(self) -> bytes:
        """Everything until the other side closes (or resets)."""
        with trio.fail_after(15):
            try:
                while data := await self.stream.receive_some(65536):
                    self._held += data
            except trio.BrokenResourceError:
                pass
        held, self._held = self._held, b""
        return held

    async def ask(self, data: bytes) -> Reply:
        await self.send(data)
        return await self.receive()

    def reset(self) -> None:
        """Hang up with RST."""
        self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.socket.close()

    def close(self) -> None:
        """Hang up with FIN only."""
        self.stream.socket.close()


@asynccontextmanager
async def connect(address: str) -> AsyncIterator[Wire]:
    host, _, port = address.partition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    try:
        yield Wire(stream)
    finally:
        await trio.aclose_forcefully(stream)


async def answer(broker: Broker, raw: bytes) -> bytes:
    """Send on a new connection, and read until it is closed."""
    async with connect(broker.control.address) as wire:
        await wire.send(raw)
        return await wire.rest()


async def assert_refused(broker: Broker, raw: bytes, reason: Refusal, *, keeps: bool = False) -> None:
    """The refusal, byte for byte, then the end of the connection; nothing kept; the reason counted."""
    before, counted = broker.kept(), broker.refused(reason)
    assert await answer(broker, raw) == broker.refusal
    assert broker.refused(reason) == counted + 1
    if not keeps:
        assert broker.kept() == before


@dataclass(frozen=True)
class Opened:
    """A challenge as an agent holds it."""

    m1: Request
    m2: bytes
    challenge: ReceivedChallenge


@dataclass(frozen=True)
class Action:
    """M3, and what is needed to open its answer."""

    request: Request
    wire: RequestWire
    keys: CallKeys
    transcript: bytes

    def open(self, body: bytes) -> dict[str, Any]:
        plain = self.keys.open_response(body, response_associated(self.transcript, self.request.body))
        value = msgspec.json.decode(plain)
        assert isinstance(value, dict)
        return value


class Peer:
    """An agent made from the protocol modules, with real keys. What is passed replaces what is honest."""

    def __init__(self, descriptor: ConnectionDescriptor, clock: Any, **identity: Any) -> None:
        self.descriptor = replace(descriptor, **identity)
        self.clock = clock
        descriptor = self.descriptor
        self.keys = CapabilityKeys.derive(
            descriptor.token,
            instance=descriptor.instance,
            principal_id=descriptor.principal_id,
            generation=descriptor.generation,
            ed_public=descriptor.ed_public,
            pq_public=descriptor.pq_public,
        )

    @property
    def host(self) -> str:
        return self.descriptor.address

    def _prove(self, label: bytes, key: bytes, route: bytes, body: bytes, changed: dict[str, Any]) -> Request:
        sent_route = changed.pop("sent_route", route)
        method = changed.pop("method", METHOD)
        fields: dict[str, Any] = {
            "instance": self.descriptor.instance,
            "principal_id": self.descriptor.principal_id,
            "generation": self.descriptor.generation,
            "timestamp": self.clock.boottime_ms(),
            "nonce": os.urandom(32),
        }
        fields |= changed
        covered = mac_input(
            label,
            method,
            route,
            fields["instance"],
            fields["principal_id"],
            fields["generation"],
            fields["timestamp"],
            fields["nonce"],
            body,
        )
        mac = hmac_sha384(key, covered)
        values = (
            fields["principal_id"],
            str(fields["generation"]),
            str(fields["timestamp"]),
            base64url(fields["nonce"]),
            base64url(mac),
        )
        proof = tuple((name, value.encode()) for name, value in zip(PROOF_HEADERS, values, strict=True))
        return Request(sent_route, proof, body, mac, covered)

    def m1(
        self,
        *,
        body: bytes | None = None,
        key: bytes | None = None,
        label: bytes = L_CHALLENGE_REQUEST,
        route: bytes = CHALLENGE_ROUTE,
        **changed: Any,
    ) -> Request:
        return self._prove(
            label, key or self.keys.challenge, route, challenge_body() if body is None else body, changed
        )

    def m3_of(
        self,
        body: bytes,
        *,
        key: bytes | None = None,
        label: bytes = L_AGENT_REQUEST_MAC,
        route: bytes = AGENT_ROUTE,
        **changed: Any,
    ) -> Request:
        """M3 with a good proof over any body."""
        return self._prove(label, key or self.keys.request, route, body, changed)

    async def challenge(self, broker: Broker) -> Opened:
        """A challenge of this peer's own, on a connection of its own."""
        async with connect(broker.control.address) as wire:
            return await self.challenge_on(wire)

    async def challenge_on(self, wire: Wire) -> Opened:
        m1 = self.m1()
        reply = await wire.ask(m1.raw(self.host))
        assert reply.status == 200, reply.raw
        return Opened(m1, reply.body, ReceivedChallenge.parse(reply.body))

    def m3(
        self,
        opened: Opened,
        plaintext: bytes | None = None,
        *,
        psk: bytes | None = None,
        padded: bytes | None = None,
        x_public: bytes | None = None,
        challenge_id: bytes | None = None,
        sealed_for: dict[str, Any] | None = None,
        **changed: Any,
    ) -> Action:
        """An honest M3 for `opened`; `sealed_for` changes fields of the seal's associated data."""
        leaf = opened.challenge.leaf
        ciphertext, kem_secret = PROVIDER.encapsulate(leaf.kem_public)
        ours = X25519Key()
        sent_public = x_public or ours.public
        transcript = transcript_hash(opened.m1.mac_input, opened.m1.mac, opened.m2, ciphertext, sent_public)
        x_secret = bytes(32) if x_public is not None else ours.exchange(leaf.x_public)
        keys = CallKeys.derive(psk or self.keys.psk, kem_secret, x_secret, transcript)
        covered: dict[str, Any] = {
            "method": METHOD,
            "route": AGENT_ROUTE,
            "instance": self.descriptor.instance,
            "challenge_id": leaf.challenge_id,
            "principal_id": self.descriptor.principal_id,
            "generation": self.descriptor.generation,
            "transcript": transcript,
        }
        associated = request_associated(**(covered | (sealed_for or {})))
        padded = padded if padded is not None else pad(envelope() if plaintext is None else plaintext)
        sealed = _seal_padded(keys, padded, associated)
        wire = RequestWire(challenge_id or leaf.challenge_id, ciphertext, sent_public, sealed)
        return Action(self.m3_of(wire.encode(), **changed), wire, keys, transcript)

    async def call(self, broker: Broker, plaintext: bytes | None = None) -> tuple[int, Any]:
        """One honest call over one connection: sealed status and body."""
        async with connect(broker.control.address) as wire:
            return await self.call_on(wire, plaintext)

    async def call_on(self, wire: Wire, plaintext: bytes | None = None) -> tuple[int, Any]:
        action = self.m3(await self.challenge_on(wire), plaintext)
        reply = await wire.ask(action.request.raw(self.host))
        assert reply.status == 200, reply.raw
        message = action.open(reply.body)
        assert message["type"] == "agent-response"
        return message["status"], message["body"]


def _seal_padded(keys: CallKeys, padded: bytes, associated: bytes) -> bytes:
    from tabwarden.protocol.primitives import aead_seal

    return aead_seal(keys.request_key, keys.request_iv, padded, associated)


def peer_of(broker: Broker, **identity: Any) -> Peer:
    """The honest agent of a broker in legacy mode, on the broker's own clock."""
    return Peer(broker.descriptor, broker.runtime.clock, **identity)


def manual(clock: ManualClock | None = None) -> ManualClock:
    return clock or ManualClock()
