"""Exactly one HTTP/1.1 request out of a stream of bytes, with bounds on all of it.

llhttp (httptools) parses strictly; what it lets through and we do not want, the gate refuses.
"""

from dataclasses import dataclass, field

import httptools
import trio
from tabwarden.loopback_stream import LoopbackStream

from tabwarden_adapters.host.errors import ControlError, ErrorCode
from tabwarden_adapters.host.gate import Head, check_head
from tabwarden_adapters.host.limits import HostLimits

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request that passed the gate."""

    head: Head
    body: bytes = field(repr=False)

    def canonical(self, host: bytes) -> bytes:
        """The same request written anew: no byte of the peer's headers goes further than the gate."""
        target = self.head.route + (b"?" + self.head.query if self.head.query else b"")
        lines = [
            b"%s %s HTTP/1.1" % (self.head.method, target),
            b"host: " + host,
            b"content-length: %d" % len(self.body),
            b"connection: close",
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


class RequestReader:
    """Callbacks of llhttp for one connection; stops at the first fault."""

    def __init__(self, host: bytes, token: bytes, limits: HostLimits) -> None:
        self._host = host
        self._token = token
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._body = bytearray()
        self.head: Head | None = None
        self.complete = False
        self.fault: ErrorCode | None = None

    def feed(self, data: bytes) -> None:
        """Parse; afterwards look at `fault`, then at `complete`."""
        if self.head is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(ErrorCode.MALFORMED)
        if self.head is None and self._head_bytes > self._limits.header_bytes:
            self._fail(ErrorCode.HEADERS)

    def take(self) -> Request:
        """The complete request."""
        if self.head is None:
            raise RuntimeError("no complete request")
        return Request(self.head, bytes(self._body))

    def _fail(self, code: ErrorCode) -> None:
        if self.fault is None:
            self.fault = code

    def on_message_begin(self) -> None:
        if self.complete:
            self._fail(ErrorCode.MALFORMED)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Counted here too: a large head may arrive whole, in one read. After the head it is a trailer.
        self._headers.append((name.lower(), value))
        size = len(self._target) + sum(len(name) + len(value) for name, value in self._headers)
        if self.head is not None or size > self._limits.header_bytes:
            self._fail(ErrorCode.HEADERS)
        if len(self._headers) > self._limits.header_fields:
            self._fail(ErrorCode.HEADERS)
        if self.fault is not None:
            self._headers.clear()

    def on_headers_complete(self) -> None:
        if self.complete or self.fault is not None:
            return self._fail(ErrorCode.MALFORMED)
        try:
            self.head = check_head(
                self._parser.get_method(),
                self._target,
                self._parser.get_http_version(),
                self._headers,
                host=self._host,
                token=self._token,
            )
        except ControlError as refused:
            self._fail(refused.code)
        return None

    def on_body(self, body: bytes) -> None:
        # Never more than Content-Length, which the gate has judged; but after a fault nothing is kept.
        if self.fault is None:
            self._body += body

    def on_message_complete(self) -> None:
        self.complete = True


async def read_request(
    stream: LoopbackStream, host: bytes, token: bytes, limits: HostLimits
) -> Request | None:
    """One request; None when the peer leaves before it is whole. Raises `ControlError`, `PeerGone`."""
    reader = RequestReader(host, token, limits)
    with trio.CancelScope(deadline=trio.current_time() + limits.head_s) as scope:
        while not reader.complete:
            data = await stream.receive(_READ_BYTES)
            if not data:
                return None
            waiting_for_head = reader.head is None
            reader.feed(data)
            if reader.fault is not None:
                raise ControlError(reader.fault)
            if waiting_for_head and reader.head is not None:
                scope.deadline = trio.current_time() + limits.body_s
        return reader.take()
    raise ControlError(ErrorCode.TOO_SLOW)
