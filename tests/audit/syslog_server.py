"""A real syslog server on a real socket, that can also misbehave."""

import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from tests.audit.receivers import Message, parse_syslog, split_frames


@dataclass
class SyslogServer:
    """`messages` is what was read of whole messages, over all connections.

    `reads_from`: as many connections are not read at all, and are reset when `resets` is set; `unread` says
    that there is something to read. `leaves_after`: so many messages later a connection is reset, the first
    by the first number, and so on.
    """

    to: str = ""
    reads_from: int = 0
    leaves_after: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    ended_in_order: int = 0
    bad_handshakes: int = 0
    unread: trio.Event = field(default_factory=trio.Event)
    resets: trio.Event = field(default_factory=trio.Event)
    _arrived: trio.Condition = field(default_factory=trio.Condition)

    @property
    def sequences(self) -> list[int]:
        return [int(message.parameters["seq"]) for message in self.messages]

    async def until(self, sequence: int) -> None:
        """Until the record of this number was read, or a later one."""
        async with self._arrived:
            while not any(one >= sequence for one in self.sequences):
                await self._arrived.wait()

    async def all_gone(self) -> None:
        """Until no connection is open any more."""
        async with self._arrived:
            while self.open:
                await self._arrived.wait()

    async def connected(self, count: int) -> None:
        async with self._arrived:
            while self.connections < count:
                await self._arrived.wait()

    async def serve(self, stream: trio.SocketStream, context: ssl.SSLContext | None) -> None:
        number, plain = self.connections, stream
        self.connections += 1
        self.open += 1
        async with self._arrived:
            self._arrived.notify_all()
        try:
            if number < self.reads_from:
                await trio.lowlevel.wait_readable(plain.socket)
                self.unread.set()
                await self.resets.wait()
                return
            await self._read(stream if context is None else trio.SSLStream(plain, context, server_side=True))
        finally:
            reset(plain)
            self.open -= 1
            with trio.CancelScope(shield=True):
                async with self._arrived:
                    self._arrived.notify_all()

    async def _read(self, stream: "trio.SocketStream | trio.SSLStream[trio.SocketStream]") -> None:
        leaves_after = self.leaves_after.pop(0) if self.leaves_after else None
        left, count = b"", 0
        try:
            if isinstance(stream, trio.SSLStream):
                await stream.do_handshake()
        except trio.BrokenResourceError:
            self.bad_handshakes += 1
            async with self._arrived:
                self._arrived.notify_all()
            return
        while data := await stream.receive_some(700):
            frames, left = split_frames(left + data)
            for frame in frames:
                self.messages.append(parse_syslog(frame))
                count += 1
                if count == leaves_after:
                    return
            async with self._arrived:
                self._arrived.notify_all()
        self.ended_in_order += 1
        await stream.aclose()


def reset(stream: trio.SocketStream) -> None:
    """Close as a process that crashes: with what it has not read thrown away."""
    if stream.socket.fileno() != -1:
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()


@asynccontextmanager
async def syslog_server(
    kind: str, folder: Path, server: SyslogServer | None = None, context: ssl.SSLContext | None = None
) -> AsyncIterator[SyslogServer]:
    """At `server.to` while the block runs."""
    server = server or SyslogServer()
    if kind == "unix":
        listening = trio.socket.socket(socket.AF_UNIX)
        await listening.bind(str(folder / "syslog.sock"))
        server.to = f"unix://{folder / 'syslog.sock'}"
    else:
        listening = trio.socket.socket(socket.AF_INET)
        if server.reads_from:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await listening.bind(("127.0.0.1", 0))
        server.to = f"{kind}://127.0.0.1:{listening.getsockname()[1]}"
    listening.listen(8)
    async with trio.open_nursery() as nursery:

        async def one(stream: trio.SocketStream) -> None:
            with contextlib.suppress(trio.BrokenResourceError):  # the shipper was ended
                await server.serve(stream, context)

        nursery.start_soon(trio.serve_listeners, one, [trio.SocketListener(listening)])
        yield server
        nursery.cancel_scope.cancel()
