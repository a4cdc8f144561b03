"""The last await: a reply that its peer does not take."""

import socket
from contextlib import asynccontextmanager

import pytest
import trio
from tabwarden.limits import Limits

from tests.attacks.serving import Broker, serve, until
from tests.attacks.toolkit import Action, Wire, envelope, peer_of


async def _large(arguments: object, context: object) -> dict[str, str]:
    return {"text": "a" * 120_000}


@asynccontextmanager
async def _unread(broker: Broker, action: Action):
    """A peer with a tiny buffer that asks for a large result and does not read it."""
    broker.control._endpoint._listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours = trio.socket.socket()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, _, port = broker.control.address.partition(":")
    await ours.connect((host, int(port)))
    with ours:
        wire = Wire(trio.SocketStream(ours))
        await wire.send(action.request.raw(broker.control.address))
        await until(lambda: len(broker.audit.terminal()) == 1)
        yield wire


def _broker(body_s: float):
    return serve(
        allow=("read", "sessions"), actions={"read": _large}, limits=Limits(body_s=body_s, batch_size=8)
    )


async def test_a_peer_that_never_reads_loses_its_connection():
    async with _broker(0.1) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker), envelope("read"))
        async with _unread(broker, action):
            await broker.quiet()
        assert [event.code for event in broker.audit.terminal()] == [None]


@pytest.mark.parametrize("how", ["reset", "close", "broker closed", "revoked", "more bytes", "read late"])
async def test_a_reply_on_its_way_is_ended(how):
    async with _broker(2) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker), envelope("read"))
        async with _unread(broker, action) as wire:
            assert broker.control.statistics().connections == 1
            if how in ("reset", "close"):
                getattr(wire, how)()
            elif how == "broker closed":
                with trio.fail_after(8):
                    await broker.control.close()
            elif how == "revoked":
                # It was released before; what is revoked now is the next one.
                await broker.control.revoke()
            elif how == "more bytes":
                await wire.send(peer.m1().raw(peer.host))
            else:
                assert action.open((await wire.receive()).body)["status"] == 200
                assert (await peer.call_on(wire, envelope("sessions")))[0] == 404
        await broker.quiet()
        outcomes = [event.code for event in broker.audit.terminal()]
        assert outcomes[0] is None
        assert len(outcomes) == (2 if how == "read late" else 1)
