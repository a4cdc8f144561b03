"""Whole CDP messages over some stream. Here the pipe; a WebSocket is another `Transport` (websocket.py)."""

import fcntl
import os
from collections import deque
from typing import Protocol, Self

import trio

# A read result is a few hundred KiB at the very most and a URL at most 2 MiB; a form that a page posts
# can be any size, and comes inside an event.
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
# Enough of an oversized message to see what it was: Chromium writes the id or the method first, a paused
# request's id after it, and last the session.
HEAD_BYTES, TAIL_BYTES = 96, 64
CHUNK_BYTES = 256 * 1024


class Oversized(bytes):
    """The first bytes of a message that was larger than allowed, and its last ones as `tail`; the rest was
    dropped unread."""

    tail: bytes

    def __new__(cls, head: bytes, tail: bytes = b"") -> Self:
        made = super().__new__(cls, head)
        made.tail = tail
        return made


class MessageParts:
    """Puts one message after another together. Of one that is too large only both ends are held."""

    def __init__(self, max_message_bytes: int) -> None:
        self._max = max_message_bytes
        self._buffer = bytearray()
        self._dropping = False
        self._tail = b""

    def add(self, part: bytes) -> None:
        """More of the message."""
        if self._dropping:
            self._tail = (self._tail + part)[-TAIL_BYTES:]
            return
        self._buffer += part
        if len(self._buffer) > self._max:
            self._dropping = True
            self._tail = bytes(self._buffer[-TAIL_BYTES:])
            del self._buffer[HEAD_BYTES:]

    def whole(self) -> bytes:
        """The message that ends here, or `Oversized`; the next one begins."""
        message = bytes(self._buffer)
        self._buffer.clear()
        dropped, self._dropping = self._dropping, False
        return Oversized(message, self._tail) if dropped else message


class Transport(Protocol):
    """Carries messages of UTF-8 JSON, whole and in order."""

    async def receive(self) -> bytes | None:
        """The next message, `Oversized` for one that is too large, None at the end of the stream.

        Raises `trio.BrokenResourceError`, `trio.ClosedResourceError` or OSError.
        """
        ...

    async def send(self, message: bytes) -> None:
        """Write one message. Not to be cancelled in the middle: half a message ends the stream."""
        ...

    async def aclose(self) -> None:
        """Close both directions. Safe to call twice."""
        ...


class PipeTransport:
    """`--remote-debugging-pipe`: Chromium reads its fd 3 and writes its fd 4, each message ends in NUL.

    Takes ownership of both file descriptors: `read_fd` is where Chromium's messages arrive.
    """

    def __init__(self, read_fd: int, write_fd: int, *, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._read = trio.lowlevel.FdStream(read_fd)
        self._write = trio.lowlevel.FdStream(write_fd)
        self._parts = MessageParts(max_message_bytes)
        self._ready: deque[bytes] = deque()

    async def receive(self) -> bytes | None:
        """See `Transport.receive`."""
        while not self._ready:
            chunk = bytes(await self._read.receive_some(CHUNK_BYTES))
            if not chunk:
                return None
            *ended, rest = chunk.split(b"\0")
            for part in ended:
                self._parts.add(part)
                self._ready.append(self._parts.whole())
            self._parts.add(rest)
        return self._ready.popleft()

    async def send(self, message: bytes) -> None:
        """See `Transport.send`."""
        await self._write.send_all(message + b"\0")

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        await self._write.aclose()
        await self._read.aclose()


def pipe_pair() -> tuple[PipeTransport, int, int]:
    """A transport and the two descriptors that Chromium must get as its 3 and 4.

    The caller closes those two once Chromium is started. All four are above 4, so that placing them in
    the child never overwrites one, and are closed in other children.
    """
    for_child_read, our_write = os.pipe()
    our_read, for_child_write = os.pipe()
    fds = [_above(fd) for fd in (our_read, our_write, for_child_read, for_child_write)]
    return PipeTransport(fds[0], fds[1]), fds[2], fds[3]


def _above(fd: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved
