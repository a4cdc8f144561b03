"""What stands round a proxy in its tests: a policy, names, counts, and raw sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from tabwarden_adapters.browser.egress_proxy import Egress, EgressProxy
from tabwarden_adapters.browser.resolver import Unresolved


class Hosts:
    """An `EndpointPolicy`: hosts that may be connected to, and those of them that are named."""

    def __init__(self, *allowed: str, named: tuple[str, ...] = ()) -> None:
        self.lists = {"allowed": {*allowed, *named}, "named": set(named)}
        self.asked: list[tuple[str, int]] = []

    def allowed(self, host: str, port: int) -> bool:
        self.asked.append((host, port))
        return host in self.lists["allowed"]

    def named(self, host: str, port: int) -> bool:
        return host in self.lists["named"]


class Names:
    """A `Resolver`: each look-up of a host takes its next answer, and stays with the last."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): list(value) for name, value in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise Unresolved
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Counts:
    """An `EgressCounters` that can be waited for."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Egress]] = []
        self._more = trio.lowlevel.ParkingLot()

    def count(self, host: str, outcome: Egress) -> None:
        self.all.append((host, outcome))
        self._more.unpark_all()

    async def wait(self, *outcomes: tuple[str, Egress]) -> None:
        while self.all != list(outcomes):
            await self._more.park()


class Origin:
    """A server of raw bytes: `conversation` is what it does with each connection."""

    def __init__(self) -> None:
        self.port = 0
        self.heard = b""
        self.connections = 0
        self.answer = b""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Send `answer` once a whole head has come; then echo what comes, and half-close with the peer."""
        self.connections += 1
        async with stream:
            try:
                while data := await stream.receive_some():
                    self.heard += data
                    if self.answer and b"\r\n\r\n" in self.heard:
                        await stream.send_all(self.answer)
                        self.answer = b""
                    elif b"HTTP/1.1" not in self.heard:
                        await stream.send_all(data)
                await stream.send_all(b"bye")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass


class Client:
    """One raw connection to a proxy."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream

    async def ask(self, text: bytes) -> bytes:
        """Send, and return what comes next: b"" when the connection ended without a word."""
        await self.stream.send_all(text)
        return await self.more()

    async def more(self) -> bytes:
        try:
            return bytes(await self.stream.receive_some())
        except trio.BrokenResourceError:
            return b""

    async def rest(self) -> bytes:
        parts = []
        while data := await self.more():
            parts.append(data)
        return b"".join(parts)


@asynccontextmanager
async def connected(proxy: EgressProxy) -> AsyncIterator[Client]:
    """A client of the proxy."""
    stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
    async with stream:
        yield Client(stream)


def connect(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
