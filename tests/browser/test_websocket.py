"""CDP over a WebSocket: whole messages, bounded ones, and nothing that a web page would send."""

import json
from collections.abc import Awaitable, Callable

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.browser.cdp.transport import HEAD_BYTES, Oversized
from tabwarden_adapters.browser.cdp.websocket import WebSocketTransport
from trio.testing import memory_stream_pair
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)

TARGET = "/devtools/browser/0-0"


class Server:
    """The other end, on a stream in memory."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.protocol = WSConnection(ConnectionType.SERVER)
        self.head = b""
        self.heard: list[object] = []

    async def accept(self, answer: object | None = None) -> None:
        while b"\r\n\r\n" not in self.head:
            self.head += await self.stream.receive_some()
        self.protocol.receive_data(self.head)
        assert any(isinstance(event, Request) for event in self.protocol.events())
        await self.send(answer or AcceptConnection())

    async def send(self, *events: object) -> None:
        for event in events:
            await self.stream.send_all(self.protocol.send(event))

    async def hear(self) -> object:
        while not self.heard:
            self.protocol.receive_data(await self.stream.receive_some() or None)
            self.heard.extend(self.protocol.events())
        return self.heard.pop(0)


async def opened(nursery: trio.Nursery, *, limit: int = 1000) -> tuple[WebSocketTransport, Server]:
    ours, theirs = memory_stream_pair()
    server = Server(theirs)
    nursery.start_soon(server.accept)
    transport = await WebSocketTransport.open(ours, "127.0.0.1:9222", TARGET, max_message_bytes=limit)
    return transport, server


async def test_the_handshake_is_no_browsers(nursery):
    transport, server = await opened(nursery)
    lines = server.head.decode().lower().split("\r\n")
    assert lines[0] == f"get {TARGET} http/1.1"
    names = {line.partition(":")[0] for line in lines[1:] if line}
    assert "host: 127.0.0.1:9222" in lines
    assert not names & {"origin", "cookie", "referer", "sec-websocket-extensions", "sec-websocket-protocol"}
    await transport.aclose()


async def test_messages_arrive_whole_and_in_order(nursery):
    transport, server = await opened(nursery)
    await server.send(
        TextMessage("one", message_finished=False),
        Ping(payload=b"x"),
        TextMessage(" €", message_finished=False),
        TextMessage("uro", message_finished=True),
        TextMessage("two"),
    )
    assert await transport.receive() == "one €uro".encode()
    assert await transport.receive() == b"two"
    await transport.send(b'{"id":1}')
    assert await server.hear() == Pong(payload=b"x")
    heard = await server.hear()
    assert isinstance(heard, TextMessage)
    assert heard.data == '{"id":1}'


async def test_what_is_too_large_is_dropped_and_told(nursery):
    transport, server = await opened(nursery)
    large = json.dumps({"method": "Page.x", "params": {"url": "y" * 5000}, "sessionId": "AB"})
    parts = [large[start : start + 700] for start in range(0, len(large), 700)]
    for part in parts:
        await server.send(TextMessage(part, message_finished=part is parts[-1]))
    await server.send(TextMessage("z" * 1000), TextMessage("z" * 1001))
    got = await transport.receive()
    assert isinstance(got, Oversized)
    assert got == large.encode()[:HEAD_BYTES]
    assert got.tail == large.encode()[-64:]
    assert await transport.receive() == b"z" * 1000
    assert isinstance(await transport.receive(), Oversized)


async def test_a_large_message_is_never_held(nursery):
    ours, theirs = memory_stream_pair()
    server = Server(theirs)
    nursery.start_soon(server.accept)
    transport = await WebSocketTransport.open(ours, "127.0.0.1:9222", TARGET, max_message_bytes=1000)
    received: list[bytes | None] = []

    async def receive() -> None:
        received.append(await transport.receive())

    nursery.start_soon(receive)
    # One frame of 64 MiB, by pieces: its header first.
    frame = bytes([0x81, 127]) + (64 * 2**20).to_bytes(8, "big")
    await theirs.send_all(frame)
    for _ in range(64):
        await theirs.send_all(b"a" * 2**20)
        await trio.testing.wait_all_tasks_blocked()
        assert len(transport._parts._buffer) <= 1000 + 2**18
    await trio.testing.wait_all_tasks_blocked()
    assert isinstance(received[0], Oversized)


@pytest.mark.parametrize(
    "bad",
    [
        bytes([0xC1, 1]) + b"a",  # compressed, which nobody agreed to
        bytes([0x81, 0x81]) + b"mask" + b"a",  # masked by a server
        bytes([0x80, 1]) + b"a",  # the rest of nothing
        bytes([0x83, 0]),  # an opcode that does not exist
        bytes([0x81, 1]) + b"\xff",  # no UTF-8
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
async def test_what_breaks_the_protocol_ends_it(nursery, bad):
    transport, server = await opened(nursery)
    await server.stream.send_all(bad)
    await server.stream.send_all(b"")
    assert await transport.receive() is None
    assert await transport.receive() is None
    await transport.aclose()


async def test_the_end(nursery):
    transport, server = await opened(nursery)
    await server.send(TextMessage("last"), CloseConnection(code=1000))
    assert await transport.receive() == b"last"
    assert await transport.receive() is None
    with pytest.raises(trio.ClosedResourceError):
        await transport.send(b"x")
    await transport.aclose()
    await transport.aclose()
    transport, server = await opened(nursery)
    await server.stream.aclose()
    assert await transport.receive() is None
    transport, server = await opened(nursery)
    await transport.aclose()
    assert isinstance(await server.hear(), CloseConnection)
    assert await transport.receive() is None


async def test_a_message_that_was_cut_is_the_last_one(nursery):
    class Slow(trio.abc.Stream):
        """Takes half of what is sent, and then nothing."""

        def __init__(self, inner: trio.abc.Stream) -> None:
            self.inner = inner
            self.stuck = False
            self.closed = False

        async def send_all(self, data: bytes) -> None:
            if self.stuck:
                await self.inner.send_all(data[: len(data) // 2])
                await trio.sleep_forever()
            await self.inner.send_all(data)

        async def wait_send_all_might_not_block(self) -> None:
            await self.inner.wait_send_all_might_not_block()

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            return await self.inner.receive_some(max_bytes)

        async def aclose(self) -> None:
            self.closed = True
            await self.inner.aclose()

    ours, theirs = memory_stream_pair()
    slow, server = Slow(ours), Server(theirs)
    nursery.start_soon(server.accept)
    transport = await WebSocketTransport.open(slow, "127.0.0.1:9222", TARGET)
    slow.stuck = True
    async with trio.open_nursery() as sending:
        sending.start_soon(transport.send, b"x" * 100)
        await trio.testing.wait_all_tasks_blocked()
        sending.cancel_scope.cancel()
    slow.stuck = False
    with pytest.raises(trio.ClosedResourceError):
        await transport.send(b"y")
    await transport.aclose()
    assert slow.closed
    sent = b""
    while data := await theirs.receive_some():
        sent += data
    assert len(sent) == 53  # half a frame of 106 bytes, and nothing after it


Answering = Callable[[Server], Awaitable[None]]


async def rejects(server: Server) -> None:
    await server.accept(RejectConnection(status_code=403))


async def hangs_up(server: Server) -> None:
    await server.stream.receive_some()
    await server.stream.aclose()


async def is_something_else(server: Server) -> None:
    await server.stream.send_all(b"220 mail.test ESMTP\r\n\r\n")
    await server.stream.aclose()


@pytest.mark.parametrize("answering", [rejects, hangs_up, is_something_else])
async def test_who_takes_no_connection_is_told_of(nursery, answering):
    ours, theirs = memory_stream_pair()
    nursery.start_soon(answering, Server(theirs))
    with pytest.raises(ConfigurationError, match="takes no connection"):
        await WebSocketTransport.open(ours, "127.0.0.1:9222", TARGET)
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")


async def test_cancelled_in_the_handshake_nothing_stays_open(nursery):
    ours, _ = memory_stream_pair()
    with trio.move_on_after(0):
        await WebSocketTransport.open(ours, "127.0.0.1:9222", TARGET)
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")
