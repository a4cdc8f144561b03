"""One HTTP/1.1 request at a time out of a stream of bytes, with bounds on its head.

llhttp (httptools) parses strictly; what it lets through and a listener does not want, the listener's own gate
refuses (`judge`).
"""

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Generic, TypeVar

import httptools

H = TypeVar("H")  # a head that passed the gate
E = TypeVar("E", bound=Exception)  # why a request is refused

Fields = list[tuple[bytes, bytes]]
"""Names in lower case, and values, as they came."""


class Fault(Enum):
    """What is wrong with a request before its head is judged."""

    MALFORMED = auto()  # not one whole HTTP/1.1 request, or another one before this one was taken
    LARGE_HEAD = auto()


class BoundedRequest(ABC, Generic[H, E]):
    """Callbacks of llhttp for one connection: collects one request at a time and stops at the first fault,
    after which nothing more is kept."""

    __slots__ = (
        "_body",
        "_field_bytes",
        "_fields",
        "_head_bytes",
        "_max_bytes",
        "_max_fields",
        "_parser",
        "_refused",
        "_target",
        "complete",
        "fault",
        "head",
    )

    def __init__(self, refused: type[E], *, max_bytes: int, max_fields: int) -> None:
        """Bounds of a head: its size in bytes and its number of fields."""
        self._refused = refused
        self._max_bytes = max_bytes
        self._max_fields = max_fields
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._fields: Fields = []
        self._body: list[bytes] = []
        self._head_bytes = 0
        self._field_bytes = 0
        self.head: H | None = None
        self.complete = False
        self.fault: E | None = None

    @abstractmethod
    def judge(self, method: bytes, target: bytes, version: str, fields: Fields) -> H:
        """The head as it goes on. Raises `E`."""

    @abstractmethod
    def refusal(self, fault: Fault) -> E:
        """The listener's own word for it."""

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
            self._fail(Fault.MALFORMED)
        if self.head is None and self._head_bytes > self._max_bytes:
            self._fail(Fault.LARGE_HEAD)

    def take(self) -> tuple[H, bytes]:
        """The complete request; the reader is then ready for the next one."""
        head, body = self.head, b"".join(self._body)
        if head is None:
            raise RuntimeError("no complete request")
        self._target, self._fields, self._body = b"", [], []
        self._head_bytes = self._field_bytes = 0
        self.head, self.complete = None, False
        return head, body

    def _fail(self, fault: Fault) -> None:
        if self.fault is None:
            self.fault = self.refusal(fault)

    def on_message_begin(self) -> None:
        if self.complete:
            self._fail(Fault.MALFORMED)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.fault is not None:
            return
        # Counted here too: a large head may arrive whole, in one read. After the head it is a trailer.
        self._field_bytes += len(name) + len(value)
        too_large = self._field_bytes + len(self._target) > self._max_bytes
        if too_large or self.head is not None or len(self._fields) >= self._max_fields:
            self._fail(Fault.LARGE_HEAD)
        else:
            self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self.fault is not None:
            return
        if self.complete:
            self._fail(Fault.MALFORMED)
            return
        parser = self._parser
        try:
            self.head = self.judge(parser.get_method(), self._target, parser.get_http_version(), self._fields)
        except self._refused as refused:
            self.fault = refused
        else:
            if parser.should_upgrade():
                # No gate lets it through; what came after it would be taken for the other protocol's.
                self._fail(Fault.MALFORMED)

    def on_body(self, body: bytes) -> None:
        # Never more than Content-Length, which the gate has judged.
        if self.fault is None:
            self._body.append(body)

    def on_message_complete(self) -> None:
        self.complete = True
