"""Bytes over one TCP connection, for both ends, on trio and asyncio (through anyio).

A general stream yields to the scheduler after every write, which costs a turn of the loop in each message of
a call. Here a write that the kernel takes at once returns at once; reading always waits, so a peer that never
stops sending cannot keep the loop to itself.
"""

import socket
from contextlib import suppress

import anyio
import trio


class PeerGone(Exception):
    """The connection is broken or was closed from our side."""


class LoopbackStream:
    """One reader and one writer at a time. `socket` is non-blocking and owned by this object."""

    __slots__ = ("_wait_readable", "socket")

    def __init__(self, owned: socket.socket, *, on_trio: bool = False) -> None:
        """`on_trio` spares the detour through anyio, and an idle connection two frames of memory."""
        self._wait_readable = trio.lowlevel.wait_readable if on_trio else anyio.wait_readable
        owned.setblocking(False)
        # Some systems refuse this on a connection that the peer has reset already.
        with suppress(OSError):
            owned.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = owned

    @classmethod
    async def connect(cls, host: str, port: int) -> "LoopbackStream":
        """To an IPv4 address in digits. Raises OSError."""
        ours = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            stream = cls(ours)
            try:
                ours.connect((host, port))
            except BlockingIOError:
                await anyio.wait_writable(ours)
                error = ours.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, "connect") from None
        except BaseException:
            ours.close()
            raise
        return stream

    async def receive(self, size: int) -> bytes:
        """1 to `size` bytes, or none at the peer's end of stream. Raises `PeerGone`."""
        while True:
            try:
                await self._wait_readable(self.socket)
                return self.socket.recv(size)
            except BlockingIOError:
                continue
            except (OSError, ValueError, anyio.ClosedResourceError, trio.ClosedResourceError):
                raise PeerGone from None

    def send_now(self, data: bytes) -> int:
        """How many bytes the kernel took without waiting. Raises `PeerGone`."""
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            raise PeerGone from None

    async def send(self, data: bytes) -> None:
        """All of `data`; waits only when the kernel's buffer is full. Raises `PeerGone`."""
        sent = self.send_now(data)
        while sent < len(data):
            try:
                await anyio.wait_writable(self.socket)
            except (OSError, ValueError, anyio.ClosedResourceError):
                raise PeerGone from None
            sent += self.send_now(data[sent:])

    def send_eof(self) -> None:
        """Our end of stream. Raises `PeerGone`."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            raise PeerGone from None

    def close(self) -> None:
        """Close at once, and wake whoever waits."""
        if self.socket.fileno() != -1:
            anyio.notify_closing(self.socket)
            self.socket.close()

    @property
    def readable(self) -> bool:
        """True when data or an end of stream is waiting: on an idle connection, both mean the end."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True
