"""A man in the middle between a real client and a real broker, who rewrites chosen bytes of M1 to M4."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from tabwarden.client import AgentClient
from tabwarden.connection import LoopbackConnection
from tabwarden.model import ConnectionDescriptor

from tests.attacks.fake_broker import listening, read_message

Rewrite = Callable[[bytes], bytes]


class Middle:
    """`rewrite["M2"]` and so on change a body; what went by, unchanged, is in `seen["M2"]`."""

    def __init__(self, broker_address: str) -> None:
        self._target = broker_address
        self.rewrite: dict[str, Rewrite] = {}
        self.seen: dict[str, list[bytes]] = {"M1": [], "M2": [], "M3": [], "M4": []}
        self.before_reply: Callable[[str], object] = lambda stage: None

    async def connection(self, stream: trio.SocketStream) -> None:
        host, _, port = self._target.partition(":")
        async with stream, await trio.open_tcp_stream(host, int(port)) as onward:
            while (request := await read_message(stream)) is not None:
                first = request[0].split(b"\r\n")[0]
                asked, answered = ("M1", "M2") if b"/v1/challenge" in first else ("M3", "M4")
                await onward.send_all(self._changed(asked, *request))
                reply = await read_message(onward)
                if reply is None:
                    return
                self.before_reply(answered)
                await stream.send_all(self._changed(answered, *reply))

    def _changed(self, stage: str, head: bytes, body: bytes) -> bytes:
        self.seen[stage].append(body)
        new = self.rewrite.get(stage, lambda data: data)(body)
        lines = [
            b"content-length: %d" % len(new) if line.lower().startswith(b"content-length:") else line
            for line in head.split(b"\r\n")
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + new


class DivertedClient(AgentClient):
    """The real client, whose packets to the broker's address end up somewhere else."""

    def __init__(self, descriptor: ConnectionDescriptor, address: str, **options: Any) -> None:
        super().__init__(descriptor, **options)
        self._diverted = address
        self.opened = 0

    async def _connection(self) -> LoopbackConnection:
        self.opened += 1
        connection = await LoopbackConnection.open(self._diverted)
        connection._host = self._descriptor.address.encode()
        return connection


@asynccontextmanager
async def between(
    descriptor: ConnectionDescriptor, **options: Any
) -> AsyncIterator[tuple[DivertedClient, Middle]]:
    """The client of `descriptor` with a man in the middle before its broker."""
    middle = Middle(descriptor.address)
    async with (
        listening(middle.connection) as address,
        DivertedClient(descriptor, address, **options) as client,
    ):
        yield client, middle
