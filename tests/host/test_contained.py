"""Applications that misbehave behind the gate, as a new version of Quart or Hypercorn might."""

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.loopback_stream import LoopbackStream
from tabwarden_adapters.host.connection import Connection
from tabwarden_adapters.host.contained import OneRequest, quiet_config
from tabwarden_adapters.host.peers import Peers

from tests.host.support import code_of, everything, limits, until

HOST, TOKEN = b"127.0.0.1:1", b"ab" * 32
RAW = b"GET /excluded-targets HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\n\r\n" % (HOST, TOKEN)
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}
App = Callable[[Any, Any, Any], Awaitable[None]]


@asynccontextmanager
async def connected(app: App) -> AsyncIterator[tuple[trio.SocketStream, Connection, trio.Event]]:
    """One end of a connection whose other is served by `app`; afterwards nothing is left of it."""
    files = len(os.listdir("/proc/self/fd"))
    peers, ended = Peers(), trio.Event()
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        stream = await trio.testing.open_stream_to_socket_listener(listener)
        accepted = await listener.accept()
        await listener.aclose()
        ours = LoopbackStream(_taken(accepted), on_trio=True)
        connection = Connection(ours, peers, limits(send_s=0.2), lambda: None)

        async def run() -> None:
            try:
                await connection.run(app, quiet_config(), HOST, TOKEN)
            finally:
                ours.close()
                ended.set()

        nursery.start_soon(run)
        yield stream, connection, ended
        await stream.aclose()
        with trio.fail_after(10):
            await ended.wait()
    peers.close()
    assert len(os.listdir("/proc/self/fd")) <= files


def _taken(accepted: trio.SocketStream) -> Any:
    return socket.socket(fileno=accepted.socket.detach())


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    await trio.lowlevel.checkpoint()


async def start_only(scope: Any, receive: Any, send: Any) -> None:
    await send(START)


async def body_first(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.body", "body": b"x"})


async def twice(scope: Any, receive: Any, send: Any) -> None:
    for _ in range(2):
        await send(START)
        await send({"type": "http.response.body", "body": b"{}"})


async def other_message(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.push", "path": "/x", "headers": []})


async def raises(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    raise ValueError("sk-secret")


async def raises_a_group(scope: Any, receive: Any, send: Any) -> None:
    raise ExceptionGroup("sk-secret", [ValueError("sk-secret"), RuntimeError()])


class Odd(BaseException):
    pass


async def raises_what_is_no_exception(scope: Any, receive: Any, send: Any) -> None:
    raise Odd("sk-secret")


async def raises_a_mixed_group(scope: Any, receive: Any, send: Any) -> None:
    raise BaseExceptionGroup("sk-secret", [Odd("sk-secret"), ValueError("sk-secret")])


async def wrong_status(scope: Any, receive: Any, send: Any) -> None:
    await send(START | {"status": "many"})
    await send({"type": "http.response.body", "body": b"{}"})


async def wrong_headers(scope: Any, receive: Any, send: Any) -> None:
    await send(START | {"headers": [(b"x", b"y\r\nset-cookie: z")]})
    await send({"type": "http.response.body", "body": b"{}"})


@pytest.mark.parametrize(
    "app",
    [
        nothing,
        start_only,
        body_first,
        twice,
        other_message,
        raises,
        raises_a_group,
        wrong_status,
        wrong_headers,
    ],
)
async def test_an_application_without_one_whole_reply_is_a_typed_failure(
    app: App, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(app) as (stream, connection, _):
        await stream.send_all(RAW)
        assert code_of(await everything(stream)) == (500, "failure")
        assert not connection.sound
    out, err = capfd.readouterr()
    assert "sk-secret" not in out + err + caplog.text


H2C = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: "
WEBSOCKET = (
    b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
NO_REQUESTS = {
    "h2c upgrade, malformed settings": H2C + b"%%%\r\n\r\n",
    "h2c upgrade": H2C + b"AAMAAABkAAQAAP__\r\n\r\n",
    "WebSocket upgrade": WEBSOCKET,
    "WebSocket upgrade and 1 byte": WEBSOCKET + b"\0",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "not HTTP": b"\0\0\r\n\r\n",
    "two lengths": b"POST /log HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    "half a body": b"POST /log HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nx",
    "half a head": b"GET /",
}


@pytest.mark.parametrize("kind", NO_REQUESTS)
async def test_what_ends_hypercorn_elsewhere_ends_nothing_here_even_without_the_gate(kind: str) -> None:
    ours, theirs = socket.socketpair()
    loopback, ran = LoopbackStream(ours, on_trio=True), False

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal ran
        ran = True

    one = OneRequest(app, quiet_config(), loopback, limits(), lambda: None)
    with theirs:
        theirs.setblocking(False)
        with trio.move_on_after(0.3) as scope:
            await one.serve(NO_REQUESTS[kind])
        # What is not whole is waited for until whoever watches the peer cancels it.
        assert scope.cancelled_caught == (kind in ("half a body", "half a head") and not ran)
        assert not one.begun
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        loopback.close()


async def test_an_application_is_cancelled_when_its_peer_leaves() -> None:
    running, cancelled = trio.Event(), trio.Event()

    async def forever(scope: Any, receive: Any, send: Any) -> None:
        running.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with connected(forever) as (stream, connection, ended):
        await stream.send_all(RAW)
        await running.wait()
        await stream.aclose()
        await until(ended.is_set)
        assert cancelled.is_set()
        assert connection.sound


async def test_what_hypercorn_is_given_is_written_anew() -> None:
    scopes: list[Any] = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        await send(START | {"headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})

    async with connected(note) as (stream, connection, _):
        odd = RAW.replace(b"\r\n\r\n", b"\r\nx-odd: 1\r\nuser-agent: x\r\nConnection: keep-alive\r\n\r\n")
        await stream.send_all(odd.replace(b"targets", b"targets?a=b"))
        assert (await everything(stream)).endswith(b"\r\n\r\n{}")
        assert (connection.served, connection.sound) == (True, True)
    (scope,) = scopes
    assert (scope["type"], scope["method"], scope["path"], scope["query_string"]) == (
        "http",
        "GET",
        "/excluded-targets",
        b"a=b",
    )
    assert sorted(scope["headers"]) == [(b"connection", b"close"), (b"content-length", b"0"), (b"host", HOST)]


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_peer_that_leaves_after_any_number_of_turns_leaves_nothing(turns: int) -> None:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send(START)
        await send({"type": "http.response.body", "body": b"{}" * 1000})

    async with connected(answer) as (stream, connection, ended):
        await stream.send_all(RAW)
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        await stream.aclose()
        await until(ended.is_set)
        assert connection.sound
