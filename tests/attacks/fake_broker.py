"""Attacks on the client: a broker with real keys that is wrong in one thing, and a squatter with none.

Whatever the fake broker sends, it goes on with as if it were right: a client that does not look gets its
answer, and the test fails.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio
from tabwarden.errors import MalformedError
from tabwarden.model import ConnectionDescriptor
from tabwarden.protocol.challenge import L_BATCH, Binding, Leaf, binding_mac, signed_value
from tabwarden.protocol.codec import SUITE
from tabwarden.protocol.merkle import leaf_hash, root_and_paths
from tabwarden.protocol.primitives import Ed25519Signer, X25519Key
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_CHALLENGE_REQUEST,
    METHOD,
    CapabilityKeys,
    Proof,
    instance_id,
    mac_input,
)
from tabwarden.protocol.seal import (
    CallKeys,
    RequestWire,
    request_associated,
    response_associated,
    transcript_hash,
)

from tests.attacks.toolkit import PROVIDER

OK = b'{"type":"agent-response","status":200,"body":"believed"}'


def same(value: Any) -> Any:
    return value


@dataclass
class Wrong:
    """What is made wrong; everything else is as the real broker does it."""

    before_m2: Callable[[], object] = lambda: None
    leaf: Callable[[Leaf], Leaf] = same
    sent_leaf: Callable[[bytes], bytes] = same  # after signing
    index: Callable[[int], int] = same
    count: Callable[[int], int] = same
    path: Callable[[bytes], bytes] = same
    signed_instance: Callable[[bytes], bytes] = same
    signed_count: Callable[[int], int] = same
    signed_root: Callable[[bytes], bytes] = same
    ed_signature: Callable[[bytes], bytes] = same
    pq_signature: Callable[[bytes], bytes] = same
    pq_context: bytes = L_BATCH
    ed_signer: Ed25519Signer | None = None
    pq_signer: Any = None
    binding: Callable[[Binding], Binding] = same
    bound_to: Callable[[bytes, bytes], tuple[bytes, bytes]] = lambda covered, mac: (covered, mac)
    binding_key: Callable[[bytes], bytes] = same
    mac: Callable[[bytes], bytes] = same
    m2: Callable[[bytes], bytes] = same
    plaintext: Callable[[bytes], bytes] = same
    response_keys: Callable[[CallKeys], CallKeys] = same
    associated: Callable[[bytes], bytes] = same
    m4: Callable[[bytes], bytes] = same
    head: Callable[[bytes, bytes], bytes] = lambda route, head: head


@dataclass
class FakeBroker:
    """Listens at `descriptor.address`. `seen` has every request that came: (route, body)."""

    clock: Any
    wrong: Wrong = field(default_factory=Wrong)
    leaves: int = 3
    seen: list[tuple[bytes, bytes]] = field(default_factory=list)
    opened: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ed, self.pq = Ed25519Signer(), PROVIDER.signer()
        self.token = os.urandom(32)
        self.kem, self.x = PROVIDER.kem_key(), X25519Key()
        self._last: tuple[bytes, bytes, bytes, Leaf] | None = None
        self.descriptor: ConnectionDescriptor

    def at(self, address: str) -> None:
        self.instance = instance_id(self.ed.public, self.pq.public, address)
        self.keys = CapabilityKeys.derive(
            self.token,
            instance=self.instance,
            principal_id="legacy",
            generation=0,
            ed_public=self.ed.public,
            pq_public=self.pq.public,
        )
        self.descriptor = ConnectionDescriptor(
            address=address,
            token=self.token,
            ed_public=self.ed.public,
            pq_public=self.pq.public,
            instance=self.instance,
            principal_id="legacy",
            generation=0,
            protocol=SUITE,
        )

    @property
    def requests(self) -> int:
        """How many M3 came."""
        return sum(route == AGENT_ROUTE for route, _ in self.seen)

    def challenge(self, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
        wrong, proof = self.wrong, Proof.parse(headers)
        covered = mac_input(
            L_CHALLENGE_REQUEST,
            METHOD,
            CHALLENGE_ROUTE,
            self.instance,
            proof.principal_id,
            proof.generation,
            proof.timestamp,
            proof.nonce,
            body,
        )
        leaf = Leaf(
            self.instance,
            os.urandom(16),
            os.urandom(32),
            self.kem.public,
            self.x.public,
            self.clock.boottime_ms() + 60_000,
        )
        leaf = wrong.leaf(leaf)
        digests = [os.urandom(48) for _ in range(self.leaves - 1)] + [leaf_hash(leaf.encode())]
        root, paths = root_and_paths(digests)
        message = signed_value(
            wrong.signed_instance(self.instance), wrong.signed_count(self.leaves), wrong.signed_root(root)
        )
        ed = wrong.ed_signature((wrong.ed_signer or self.ed).sign(message))
        pq = wrong.pq_signature((wrong.pq_signer or self.pq).sign(message, wrong.pq_context))
        issued = self.clock.boottime_ms()
        wrong.before_m2()
        binding = wrong.binding(
            Binding(METHOD, AGENT_ROUTE, proof.principal_id, proof.generation, proof.nonce, issued, 10_000)
        ).encode()
        sent_leaf = wrong.sent_leaf(leaf.encode())
        mac = binding_mac(
            wrong.binding_key(self.keys.binding),
            leaf_hash(sent_leaf),
            binding,
            *wrong.bound_to(covered, proof.mac),
        )
        m2 = wrong.m2(
            b"".join(
                (
                    sent_leaf,
                    wrong.index(self.leaves - 1).to_bytes(2),
                    wrong.count(self.leaves).to_bytes(2),
                    wrong.path(paths[-1]),
                    ed,
                    pq,
                    binding,
                    wrong.mac(mac),
                )
            )
        )
        self._last = (covered, proof.mac, m2, leaf)
        return m2

    def answer(self, body: bytes) -> bytes:
        assert self._last is not None
        covered, mac, m2, leaf = self._last
        wire = RequestWire.parse(body)
        transcript = transcript_hash(covered, mac, m2, wire.kem_ciphertext, wire.x_public)
        try:
            x_secret = self.x.exchange(wire.x_public) if leaf.x_public == self.x.public else bytes(32)
        except MalformedError:
            x_secret = bytes(32)
        keys = CallKeys.derive(self.keys.psk, self.kem.decapsulate(wire.kem_ciphertext), x_secret, transcript)
        associated = request_associated(
            METHOD, AGENT_ROUTE, self.instance, wire.challenge_id, "legacy", 0, transcript
        )
        self.opened.append(msgspec.json.decode(keys.open_request(wire.sealed, associated)))
        wrong = self.wrong
        sealed = wrong.response_keys(keys).seal_response(
            wrong.plaintext(OK), wrong.associated(response_associated(transcript, body))
        )
        return wrong.m4(sealed)

    async def connection(self, stream: trio.SocketStream) -> None:
        async with stream:
            while (message := await read_message(stream)) is not None:
                head, body = message
                first, *lines = head.split(b"\r\n")
                route = first.split(b" ")[1]
                self.seen.append((route, body))
                headers = [
                    (name.lower(), value.strip())
                    for name, _, value in (line.partition(b":") for line in lines)
                ]
                reply = self.challenge(headers, body) if route == CHALLENGE_ROUTE else self.answer(body)
                await stream.send_all(self.wrong.head(route, http_ok(len(reply))) + reply)


def http_ok(length: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % length


async def read_message(stream: trio.SocketStream) -> tuple[bytes, bytes] | None:
    """Head and body of the next HTTP message with a content-length; None at the end."""
    held = b""
    while b"\r\n\r\n" not in held:
        if not (data := await some(stream)):
            return None
        held += data
    head, _, body = held.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        if not (data := await some(stream)):
            return None
        body += data
    return head, body


async def some(stream: trio.SocketStream) -> bytes:
    try:
        return bytes(await stream.receive_some(65536))
    except trio.BrokenResourceError:
        return b""


@asynccontextmanager
async def listening(handler: Callable[[trio.SocketStream], Any]) -> AsyncIterator[str]:
    """Serve `handler` on a loopback port around the block; gives its address."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = "{}:{}".format(*listeners[0].socket.getsockname())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        yield address
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def fake_broker(clock: Any, wrong: Wrong | None = None, **more: Any) -> AsyncIterator[FakeBroker]:
    fake = FakeBroker(clock, wrong or Wrong(), **more)
    async with listening(fake.connection) as address:
        fake.at(address)
        yield fake


@dataclass
class Squatter:
    """Took the broker's port, knows nothing, answers everything with `reply`, keeps what it was sent."""

    reply: bytes
    received: bytes = b""
    connections: int = 0

    async def connection(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        async with stream:
            while data := await some(stream):
                self.received += data
                if b"\r\n\r\n" in self.received:
                    await stream.send_all(self.reply)
                    await stream.send_eof()
