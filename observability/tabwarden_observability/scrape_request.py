"""What a scraper may ask for, and the bytes that answer it. No I/O.

One request a connection: `GET /metrics HTTP/1.1` from a program of this machine. A page in a browser must not
read the figures, neither from another origin nor under a name of its own that leads here (DNS rebinding).
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import httptools

MAX_HEAD: Final = 8192  # a scraper's own is some 300 bytes
MAX_FIELDS: Final = 32

_PATH: Final = b"/metrics"
_END: Final = b"\r\n\r\n"
_TEXT: Final = b"text/plain; version=0.0.4; charset=utf-8"  # Prometheus' text format
# A browser adds these by itself and a page cannot leave them out; a scraper has no use for any of them.
_BROWSER_FIELDS: Final = frozenset({b"origin", b"referer", b"cookie"})
_BROWSER_PREFIXES: Final = (b"sec-", b"proxy-", b"access-control-")
# A request for figures has no body and asks for no other protocol.
_FORBIDDEN_FIELDS: Final = frozenset({b"content-length", b"transfer-encoding", b"upgrade", b"expect"})


class ScrapeRefused(Exception):
    """Why a request gets no figures. It says no more than its status does."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def own_hosts(address: str, port: int) -> frozenset[bytes]:
    """What the Host of a request to `address` may be, `localhost` among it."""
    name = f"[{address}]" if ":" in address else address
    return frozenset(f"{host}:{port}".encode() for host in ("localhost", name))


def whole(data: bytes) -> bool:
    """Whether a request ends within `data`. Raises `ScrapeRefused` when it has become too large."""
    if len(data) > MAX_HEAD:
        raise ScrapeRefused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    return _END in data


def judge(data: bytes, hosts: frozenset[bytes]) -> None:
    """Raises `ScrapeRefused` for all but one whole request for the figures. `hosts` as of `own_hosts`."""
    seen = _Seen()
    parser = httptools.HttpRequestParser(seen)
    try:
        parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        raise ScrapeRefused(HTTPStatus.BAD_REQUEST) from None
    names = [name for name, _ in seen.fields]
    named = [value for name, value in seen.fields if name == b"host"]
    if not seen.complete or not data.endswith(_END) or parser.get_http_version() != "1.1":
        raise ScrapeRefused(HTTPStatus.BAD_REQUEST)
    if len(named) != 1 or len(names) > MAX_FIELDS or not _FORBIDDEN_FIELDS.isdisjoint(names):
        raise ScrapeRefused(HTTPStatus.BAD_REQUEST)
    if named[0].lower() not in hosts or _browser(names):
        raise ScrapeRefused(HTTPStatus.FORBIDDEN)
    if parser.get_method() != b"GET":
        raise ScrapeRefused(HTTPStatus.METHOD_NOT_ALLOWED)
    if seen.target != _PATH:
        raise ScrapeRefused(HTTPStatus.NOT_FOUND)


def answer(status: HTTPStatus, figures: bytes | None = None) -> bytes:
    """The whole answer. Without `figures` it only says what its status is called."""
    body = f"{status.phrase}\n".encode() if figures is None else figures
    fields = [
        b"content-type: " + _TEXT,
        b"content-length: %d" % len(body),
        b"cache-control: no-store",
        b"x-content-type-options: nosniff",
        b"cross-origin-resource-policy: same-origin",
        b"connection: close",
    ]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        fields.append(b"allow: GET")
    line = f"HTTP/1.1 {status.value} {status.phrase}".encode()
    return b"\r\n".join([line, *fields, b"", body])


def _browser(names: Iterable[bytes]) -> bool:
    return any(name in _BROWSER_FIELDS or name.startswith(_BROWSER_PREFIXES) for name in names)


class _Seen:
    """Callbacks of llhttp."""

    def __init__(self) -> None:
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name.lower(), value))

    def on_message_complete(self) -> None:
        self.complete = True
