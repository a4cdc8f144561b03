"""The client's half of HTTP/1.1: POST to one literal loopback address over a kept connection.

Lean on purpose: a general HTTP library takes longer for one small POST on loopback than the broker takes for
everything else. No redirects, no proxies, no environment; a reply has a cap and the caller a deadline.
"""

from contextlib import suppress

import anyio
import httptools

from tabwarden.errors import ProtocolViolation, Unreachable
from tabwarden.limits import MAX_REPLY
from tabwarden.loopback_stream import LoopbackStream, PeerGone
from tabwarden.protocol.codec import CONTENT_TYPE

_READ_BYTES = 65_536
_MAX_HEAD = 8192
_MAX_FIELDS = 32
# Below the broker's own limit for idle connections, so that we never write into one it is closing.
_IDLE_S = 10.0


class Reply:
    """Status, body and the one header that matters. Nothing in it is authenticated yet."""

    __slots__ = ("body", "retry_after", "status")

    def __init__(self, status: int, body: bytes, retry_after: bytes | None) -> None:
        self.status = status
        self.body = body
        self.retry_after = retry_after


class _ReplyReader:
    """Callbacks of llhttp for one reply."""

    __slots__ = ("_body", "_fields", "_length", "complete", "fault", "keep_alive", "parser", "retry_after")

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.keep_alive = False
        self._body: list[bytes] = []
        self._length = 0
        self._fields = 0
        self.retry_after: bytes | None = None
        self.complete = False
        self.fault = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        if self._fields > _MAX_FIELDS or name.lower() == b"transfer-encoding":
            self.fault = True
        elif name.lower() == b"retry-after":
            self.retry_after = value

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._length > MAX_REPLY:
            self.fault = True
        else:
            self._body.append(body)

    def on_headers_complete(self) -> None:
        # llhttp knows this in here only; once the message is complete it says no.
        self.keep_alive = self.parser.should_keep_alive()

    def on_message_complete(self) -> None:
        self.complete = True

    @property
    def body(self) -> bytes:
        return b"".join(self._body)


class LoopbackConnection:
    """One TCP connection to `127.0.0.1:PORT`, used for one exchange at a time."""

    def __init__(self, stream: LoopbackStream, host: bytes) -> None:
        self._stream = stream
        self._host = host
        self._idle_since = anyio.current_time()
        self.usable = True

    @classmethod
    async def open(cls, address: str) -> "LoopbackConnection":
        """Raises `Unreachable` when nothing listens there."""
        host, _, port = address.partition(":")
        try:
            stream = await LoopbackStream.connect(host, int(port))
        except OSError:
            raise Unreachable("the broker does not answer at its address: is it running?") from None
        return cls(stream, address.encode())

    @property
    def fresh(self) -> bool:
        """False when the other side may already be closing it."""
        young = anyio.current_time() - self._idle_since < _IDLE_S
        return self.usable and young and not self._stream.readable

    async def post(self, route: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> Reply:
        """One exchange. Raises `Unreachable` or `ProtocolViolation`; after that it cannot be used again."""
        await self.send(route, headers, body)
        return await self.receive()

    async def send(self, route: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """The first half of an exchange. Never raises for a broken connection: `receive` does."""
        self.usable = False
        lines = [
            b"POST %s HTTP/1.1" % route,
            b"host: " + self._host,
            b"content-type: " + CONTENT_TYPE,
            b"content-length: %d" % len(body),
            *(b"%s: %s" % header for header in headers),
        ]
        # A broker may answer and close before it has read everything: then look for its answer all the same.
        with suppress(PeerGone):
            await self._stream.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    async def receive(self) -> Reply:
        """The second half. Raises as `post` does."""
        reply = await self._read()
        self._idle_since = anyio.current_time()
        return reply

    async def _read(self) -> Reply:
        reader = _ReplyReader()
        received = 0
        while not reader.complete:
            try:
                data = await self._stream.receive(_READ_BYTES)
            except PeerGone:
                data = b""
            if not data:
                raise Unreachable("the broker closed the connection without an answer")
            received += len(data)
            try:
                reader.parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                raise ProtocolViolation("the answer is not HTTP") from None
            if reader.fault or received > MAX_REPLY + _MAX_HEAD:
                raise ProtocolViolation("the answer is too large or not of the expected form")
        self.usable = reader.keep_alive
        return Reply(reader.parser.get_status_code(), reader.body, reader.retry_after)

    def close(self) -> None:
        """Close without ceremony."""
        self.usable = False
        self._stream.close()
