"""Servers that a host.json may lead to and that are no host, or one that has gone wrong."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from tabwarden_adapters.host import HostPolicy, HostProblem

from tests.host.support import private_home
from tests.host.test_host_file import write

Wrong = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def host_that(answers: Wrong, tmp_path: Path, **file: Any) -> AsyncIterator[HostPolicy]:
    """A policy whose host.json leads to a server that does `answers` with each connection."""
    home = private_home(tmp_path)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def handle(stream: trio.SocketStream) -> None:
            try:
                await answers(stream)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the engine had enough
            finally:
                await trio.aclose_forcefully(stream)

        nursery.start_soon(trio.serve_listeners, handle, [listener])
        write(home, **({"controlPort": listener.socket.getsockname()[1]} | file))
        yield HostPolicy(home, answer_s=10, person_wait_s=10)
        nursery.cancel_scope.cancel()


async def received(stream: trio.SocketStream) -> bytes:
    """One whole request."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += await stream.receive_some(65_536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += await stream.receive_some(65_536)
    return head


def says(reply: bytes, *, close: bool = True) -> Wrong:
    async def answer(stream: trio.SocketStream) -> None:
        await received(stream)
        await stream.send_all(reply)
        if not close:
            await trio.sleep_forever()

    return answer


def ok(body: bytes, *more: bytes) -> bytes:
    fields = [b"HTTP/1.1 200 OK", b"content-type: application/json", b"content-length: %d" % len(body), *more]
    return b"\r\n".join(fields) + b"\r\n\r\n" + body


YES = json.dumps(
    {"mode": "allowed", "answer": "yes", "hosts": ["x"], "ids": [], "done": True, "ok": True}
).encode()


def status(line: bytes, *more: bytes) -> bytes:
    return ok(YES, *more).replace(b"200 OK", line)


async def silent(stream: trio.SocketStream) -> None:
    await received(stream)
    await trio.sleep_forever()


async def endless(stream: trio.SocketStream) -> None:
    await received(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await stream.send_all(b"10000\r\n" + b" " * 65_536 + b"\r\n")


async def endless_head(stream: trio.SocketStream) -> None:
    await received(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n")
    while True:
        await stream.send_all(b"x: y\r\n" * 1000)


MISBEHAVING: dict[str, tuple[HostProblem, Wrong]] = {
    "closes at once": (HostProblem.UNREACHABLE, says(b"")),
    "wrong token": (HostProblem.UNAUTHORIZED, says(status(b"401 Unauthorized"))),
    "forbidden": (HostProblem.UNAUTHORIZED, says(status(b"403 Forbidden"))),
    "redirect": (HostProblem.REDIRECT, says(status(b"302 Found", b"location: http://127.0.0.1:1/policy"))),
    "permanent redirect": (HostProblem.REDIRECT, says(status(b"308 Moved", b"location: https://evil.test/"))),
    "not found": (HostProblem.STATUS, says(status(b"404 Not Found"))),
    "failure": (HostProblem.STATUS, says(status(b"500 No"))),
    "created": (HostProblem.STATUS, says(status(b"201 Created"))),
    "no content": (HostProblem.STATUS, says(b"HTTP/1.1 204 No Content\r\n\r\n")),
    "continue": (HostProblem.STATUS, says(b"HTTP/1.1 100 Continue\r\n\r\n" + ok(YES))),
    "upgrade": (HostProblem.STATUS, says(b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")),
    "not HTTP": (HostProblem.ANSWER, says(b"SSH-2.0-OpenSSH\r\n")),
    "two replies": (HostProblem.ANSWER, says(ok(YES) + ok(b""))),
    "not JSON": (HostProblem.ANSWER, says(ok(b"yes"))),
    "empty": (HostProblem.ANSWER, says(ok(b""))),
    "an array": (HostProblem.ANSWER, says(ok(b"[]"))),
    "another word": (HostProblem.ANSWER, says(ok(b'{"mode": "on", "answer": "ok", "hosts": [1], "ids": 1}'))),
    "other types": (
        HostProblem.ANSWER,
        says(ok(b'{"mode": true, "answer": 1, "hosts": "x", "ids": null, "done": 1, "ok": "true"}')),
    ),
    "duplicate keys": (
        HostProblem.ANSWER,
        says(ok(b'{"mode": "off", "answer": "no", "mode": "allowed", "answer": "yes"}')),
    ),
    "deep": (HostProblem.ANSWER, says(ok(b'{"mode": "allowed", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"))),
    "cut off": (HostProblem.UNREACHABLE, says(ok(YES)[:-1])),
    "large": (HostProblem.TOO_LARGE, says(ok(YES + b" " * (256 * 1024)))),
    "much larger": (HostProblem.TOO_LARGE, says(ok(YES + b" " * 900_000))),
    "endless": (HostProblem.TOO_LARGE, endless),
    "endless head": (HostProblem.TOO_LARGE, endless_head),
}
