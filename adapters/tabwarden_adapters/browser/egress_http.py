"""The HTTP that a browser speaks to its proxy, strictly read (RFC 9112, 3.2), and what is sent on of it.

Two kinds of request exist: `CONNECT host:port`, and absolute-form for `http:` addresses. Everything that
is about the connection rather than the message is taken out on the way, in both directions.
"""

import re
from dataclasses import dataclass, field

import ada_url
import httptools

MAX_HEAD = 64 * 1024  # cookies and addresses of real sites reach some 20 KiB
_AUTHORITY = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._~-]{1,255}):([0-9]{1,5})")
_HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")
# RFC 9110, 7.6.1, and what old proxies were told. `TE` and `Trailer` only mean something to the next hop.
_HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization"),
        *(b"proxy-authenticate", b"proxy-authentication-info", b"te", b"trailer", b"upgrade"),
    )
)
Header = tuple[bytes, bytes]


class Malformed(Exception):
    """Not a request that a browser sends to a proxy, or not an answer that can be passed on."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request is to go: `host` in normal form (lower-case ASCII, IPv6 in brackets, no trailing dot).

    `tunnel` says that it came as CONNECT."""

    host: str
    port: int
    tunnel: bool

    @property
    def bare(self) -> str:
        """The host as a resolver takes it: IPv6 without its brackets."""
        return self.host.strip("[]")

    @property
    def is_address(self) -> bool:
        """To WHATWG, any host that ends in a number is an address."""
        return self.host.startswith("[") or self.host.rsplit(".", 1)[-1].isdigit()


def tunnel_target(authority: bytes) -> Target:
    """The target of a CONNECT. Raises `Malformed`."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None or not 1 <= int(match[2]) <= 65535:
        raise Malformed
    return Target(_host(f"http://{match[1].decode()}/"), int(match[2]), tunnel=True)


def absolute_target(text: bytes) -> tuple[Target, bytes, bytes]:
    """The target of an absolute-form request, its origin-form, and the one Host that goes with it.

    Raises `Malformed` for all but an `http:` address without credentials.
    """
    try:
        url = ada_url.URL(text.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        raise Malformed from None
    if url.protocol != "http:" or url.username or url.password:
        raise Malformed
    host = _host(url.href)
    port = int(url.port or 80)
    path = f"{url.pathname}{url.search}".encode()
    return Target(host, port, tunnel=False), path, (host if port == 80 else f"{host}:{port}").encode()


def url_target(href: str) -> Target:
    """Where an HTTP(S) URL leads. Raises `Malformed`."""
    try:
        url = ada_url.URL(href)
    except ValueError:
        raise Malformed from None
    return Target(_host(href), int(url.port or (443 if url.protocol == "https:" else 80)), tunnel=False)


def _host(href: str) -> str:
    try:
        host = str(ada_url.URL(href).hostname).removesuffix(".")
    except ValueError:
        raise Malformed from None
    if not host.isascii() or any(not label for label in host.split(".")):
        raise Malformed
    return host


@dataclass(slots=True)
class RequestReader:
    """Reads one request. `head_done`, then `body` in pieces, then `done`; nothing after it is read."""

    method: bytes = b""
    target: bytes = b""
    headers: list[Header] = field(default_factory=list)
    body: list[bytes] = field(default_factory=list)
    head_done: bool = False
    done: bool = False
    rest: bytes = b""  # what came after the head of a CONNECT
    _seen: int = 0
    _parser: httptools.HttpRequestParser | None = None

    def feed(self, data: bytes) -> None:
        """Raises `Malformed`, also when the head is larger than `MAX_HEAD`."""
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.method != b"CONNECT":
                raise Malformed from None
            self.rest = data[upgrade.args[0] :]
        except httptools.HttpParserError:
            raise Malformed from None
        if not self.head_done:
            self._seen += len(data)
            if self._seen > MAX_HEAD:
                raise Malformed

    def on_url(self, part: bytes) -> None:
        if not self.head_done:  # else of a second request, which is never answered
            self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head_done:
            return  # a trailer: for this hop only
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._parser is not None and not self.head_done:
            self.method = self._parser.get_method()
            self.head_done = True

    def on_body(self, part: bytes) -> None:
        if not self.done:
            self.body.append(part)

    def on_message_complete(self) -> None:
        self.done = True

    @property
    def chunked(self) -> bool:
        """True when the body's length is not known from the start. Raises `Malformed` when both are said."""
        encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if encodings and (encodings != [b"chunked"] or any(n == b"content-length" for n, _ in self.headers)):
            raise Malformed
        return bool(encodings)

    def take_body(self) -> bytes:
        """What came of the body since the last call, framed for the next hop."""
        data = b"".join(self.body)
        self.body.clear()
        if not self.chunked:
            return data
        framed = b"%x\r\n%s\r\n" % (len(data), data) if data else b""
        return framed + (b"0\r\n\r\n" if self.done else b"")


def forwarded(method: bytes, path: bytes, host: bytes, headers: list[Header]) -> bytes:
    """The head of a request as the origin gets it: origin-form, our Host, one request for a connection."""
    lines = [b"%s %s HTTP/1.1" % (method, path), b"Host: " + host]
    lines += [b"%s: %s" % pair for pair in _end_to_end(headers) if pair[0] != b"host"]
    return b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n"


def _end_to_end(headers: list[Header]) -> list[Header]:
    named = {
        token.strip().lower()
        for name, value in headers
        if name in (b"connection", b"proxy-connection")
        for token in value.split(b",")
    } - {b"transfer-encoding", b"content-length", b"host"}
    return [pair for pair in headers if pair[0] not in _HOP_BY_HOP and pair[0] not in named]


@dataclass(slots=True)
class AnswerReader:
    """Passes one answer on. `feed` returns what goes to the browser; `done` says that the answer is over."""

    head_only: bool  # it answers HEAD
    done: bool = False
    _buffer: bytes = b""
    _parser: httptools.HttpResponseParser | None = None

    def feed(self, data: bytes) -> bytes:
        """Raises `Malformed`."""
        out = b""
        if not self._in_body():
            self._buffer += data
            data = b""
        while not self.done and not self._in_body():
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if len(head) > MAX_HEAD:
                raise Malformed
            if not end:
                return out
            self._buffer = rest
            out += self._head(head)
            data = rest
        return out + self._through(data)

    def _in_body(self) -> bool:
        return self._parser is not None

    def _head(self, raw: bytes) -> bytes:
        first, *lines = raw.split(b"\r\n")
        match = _STATUS_LINE.fullmatch(first)
        headers = [_HEADER_LINE.fullmatch(line) for line in lines]
        if match is None or match[1] == b"101":
            raise Malformed
        pairs: list[Header] = []
        for header in headers:
            if header is None or b"\n" in header[2] or b"\0" in header[2]:
                raise Malformed
            pairs.append((header[1].lower(), header[2]))
        kept = [first, *(b"%s: %s" % pair for pair in _end_to_end(pairs))]
        if match[1].startswith(b"1"):
            return b"\r\n".join(kept) + b"\r\n\r\n"  # an early hint: the answer is still to come
        if self.head_only:
            self.done = True
        else:
            self._parser = httptools.HttpResponseParser(self)
            self._feed(raw + b"\r\n\r\n")
        return b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n"

    def _through(self, data: bytes) -> bytes:
        if self.done or not data:
            return b""
        self._feed(data)
        return data

    def _feed(self, data: bytes) -> None:
        if self._parser is None:
            raise Malformed
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self.done:  # else it is only what came after the answer, which nobody reads
                raise Malformed from None

    def on_message_complete(self) -> None:
        self.done = True
