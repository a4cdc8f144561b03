"""One HTTP/1.1 request at a time out of a stream of bytes, with bounds.

llhttp (httptools) parses strictly; what it lets through and we do not want, the gate refuses.
"""

import httptools

from tabwarden.errors import PeerRefused, Refusal
from tabwarden.service.http_gate import RequestHead, check_head
from tabwarden.service.runtime import Runtime


class RequestReader:
    """Callbacks of llhttp for one connection: collects one request at a time and stops at the first fault."""

    __slots__ = (
        "_body",
        "_field_bytes",
        "_fields",
        "_head_bytes",
        "_parser",
        "_runtime",
        "_target",
        "complete",
        "fault",
        "head",
    )

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._head_bytes = 0
        self._field_bytes = 0
        self.head: RequestHead | None = None
        self.complete = False
        self.fault: PeerRefused | None = None

    @property
    def started(self) -> bool:
        """True from the first byte of a request to its end."""
        return self._head_bytes > 0

    def feed(self, data: bytes) -> None:
        """Parse; afterwards look at `fault`, then at `complete`."""
        if self.head is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(Refusal.HTTP)
        if self.head is None and self._head_bytes > self._runtime.limits.header_bytes:
            self._fail(Refusal.HEADERS)

    def take(self) -> tuple[RequestHead, bytes]:
        """The complete request; the reader is then ready for the next one."""
        head, body = self.head, b"".join(self._body)
        if head is None:
            raise RuntimeError("no complete request")
        self._target, self._fields, self._body = b"", [], []
        self._head_bytes = self._field_bytes = 0
        self.head, self.complete = None, False
        return head, body

    def _fail(self, reason: Refusal) -> None:
        if self.fault is None:
            self.fault = PeerRefused(reason)

    def on_message_begin(self) -> None:
        if self.complete:
            self._fail(Refusal.HTTP)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        limits = self._runtime.limits
        # Counted here too: a large head may arrive whole, in one read.
        self._field_bytes += len(name) + len(value)
        if self._field_bytes + len(self._target) > limits.header_bytes or self.head is not None:
            self._fail(Refusal.HEADERS)
        if len(self._fields) <= limits.header_fields:
            self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self.complete or self.fault is not None:
            return self._fail(Refusal.HTTP)
        if self._parser.should_upgrade():
            return self._fail(Refusal.HTTP)
        try:
            self.head = check_head(
                self._parser.get_method(),
                self._target,
                self._parser.get_http_version(),
                self._fields,
                host=self._runtime.host,
                limits=self._runtime.limits,
            )
        except PeerRefused as refused:
            self.fault = refused
        return None

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self.complete = True
