"""Attack 62: a connection from another user's process is closed before it is read."""

import os
import socket
import sys

import pytest
import trio
from tabwarden.errors import Refusal
from tabwarden.service.peer_socket import PeerLookup, PeerSocket

from tests.attacks.serving import serve
from tests.attacks.toolkit import answer, peer_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a socket is")

NOBODY = 65534


def _as_nobody(address: str, data: bytes) -> bytes:
    """In a child of another user: connect, send, and give back what was answered."""
    host, _, port = address.partition(":")
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with socket.create_connection((host, int(port)), timeout=5) as peer:
                try:
                    peer.sendall(data)
                    while part := peer.recv(65536):
                        os.write(into, part)
                    os.write(into, b"|closed")
                except ConnectionError:
                    os.write(into, b"|reset")
        finally:
            os._exit(0)
    os.close(into)
    answer = b""
    while part := os.read(out, 65536):
        answer += part
    os.close(out)
    os.waitpid(child, 0)
    return answer


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_attack_62_another_users_process_is_not_heard():
    async with serve() as broker:
        peer = peer_of(broker)
        before = broker.kept()
        # A perfect request, by one who even has the token.
        raw = peer.m1().raw(peer.host)
        for _ in range(3):
            reply = await trio.to_thread.run_sync(_as_nobody, peer.host, raw)
            assert reply in (b"|closed", b"|reset")
        assert broker.refused(Refusal.FOREIGN_USER) == 3
        assert broker.kept() == before
        # It was not read: the very same bytes are still fresh from our own process.
        assert b"HTTP/1.1 200 OK" in await answer(
            broker, raw.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_attack_62_under_hypercorn():
    async with serve("hypercorn") as broker:
        peer = peer_of(broker)
        before = broker.kept()
        reply = await trio.to_thread.run_sync(_as_nobody, peer.host, peer.m1().raw(peer.host))
        assert reply.removesuffix(b"|closed").removesuffix(b"|reset") == broker.refusal
        assert broker.refused(Refusal.FOREIGN_USER) == 1
        assert broker.kept() == before


async def test_attack_62_a_peer_that_the_kernel_does_not_know_is_foreign(monkeypatch):
    async with serve() as broker:
        # What the table says of a peer decides, in whatever way it says no.
        lookup = broker.control._endpoint._peers
        for found in (None, PeerSocket(uid=os.geteuid() + 1, open=True)):
            monkeypatch.setattr(type(lookup), "find", lambda *_, found=found: found)
            assert await answer(broker, b"") == b""
        monkeypatch.undo()
        assert broker.refused(Refusal.FOREIGN_USER) == 2
        assert await peer_of(broker).call(broker) == (200, [])


def test_attack_62_the_lookup_tells_owner_and_half_closed_from_closed():
    lookup = PeerLookup()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, peer = server.accept()
        with accepted:
            assert lookup.find(peer, accepted.getsockname()) == PeerSocket(os.geteuid(), open=True)
            client.shutdown(socket.SHUT_WR)
            assert accepted.recv(1) == b""
            assert lookup.find(peer, accepted.getsockname()) == PeerSocket(os.geteuid(), open=True)
            client.close()
            gone = lookup.find(peer, accepted.getsockname())
            assert gone is None or not gone.open
            assert lookup.find(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    lookup.close()
    assert not lookup.available
    assert lookup.find(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    lookup.close()
