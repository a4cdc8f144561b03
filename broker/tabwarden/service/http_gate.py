"""What a request must look like before anyone looks at its proof: method, route, Host, no trace of a browser.

Shared by the endpoint and the ASGI app. Every refusal is the same bytes; the reason is only counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tabwarden.errors import MalformedError, PeerRefused, Refusal
from tabwarden.limits import MAX_CHALLENGE_BODY, MAX_WIRE_BODY, Limits
from tabwarden.protocol.codec import CONTENT_TYPE, parse_decimal
from tabwarden.protocol.proof import AGENT_ROUTE, CHALLENGE_ROUTE, METHOD

Headers = Sequence[tuple[bytes, bytes]]

BODY_CAPS = {CHALLENGE_ROUTE: MAX_CHALLENGE_BODY, AGENT_ROUTE: MAX_WIRE_BODY}

# A browser adds these by itself and a page cannot leave them out; an agent has no use for any of them.
_BROWSER_HEADERS = frozenset({b"origin", b"referer", b"cookie", b"access-control-request-method"})
_BROWSER_PREFIXES = (b"sec-", b"proxy-")
# Ways of leaving plain HTTP/1.1 with one body of known length.
_FORBIDDEN_HEADERS = frozenset(
    {b"transfer-encoding", b"upgrade", b"http2-settings", b"te", b"trailer", b"expect"}
)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request that passed the gate. `route` is one of the two; `body_length` is within its cap."""

    method: bytes
    route: bytes
    headers: Headers = field(repr=False)
    body_length: int


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What goes back. `close` ends the connection after it."""

    status: int
    body: bytes = field(default=b"", repr=False)
    retry_after_s: int | None = None
    close: bool = False

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Lower-case names; no Server, no Date, no CORS."""
        headers = [
            (b"content-type", CONTENT_TYPE if self.status == 200 else b"text/plain"),
            (b"content-length", b"%d" % len(self.body)),
            (b"cache-control", b"no-store"),
        ]
        if self.retry_after_s is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after_s))
        if self.close:
            headers.append((b"connection", b"close"))
        return headers


REFUSED = HttpReply(403, b"refused\n", close=True)
TOO_LARGE = HttpReply(413, b"too large\n", close=True)


def challenge_limited(retry_after_s: int) -> HttpReply:
    """The only other refusal in the clear: the caller is known, and has to slow down."""
    return HttpReply(429, b"slow down\n", retry_after_s=retry_after_s)


class BodyTooLarge(PeerRefused):
    """Answered by 413 instead of the uniform refusal: it says nothing about keys."""

    def __init__(self) -> None:
        super().__init__(Refusal.TOO_LARGE)


def check_head(
    method: bytes, target: bytes, version: str, headers: Headers, *, host: bytes, limits: Limits
) -> RequestHead:
    """Judge a request before its body is read. `headers` has lower-case names; `host` is `127.0.0.1:PORT`.

    Raises `PeerRefused`, or `BodyTooLarge`.
    """
    if version != "1.1" or method != METHOD:
        raise PeerRefused(Refusal.HTTP)
    if len(headers) > limits.header_fields:
        raise PeerRefused(Refusal.HEADERS)
    hosts, lengths, types = [], [], []
    for name, value in headers:
        if name == b"host":
            hosts.append(value)
        elif name == b"content-length":
            lengths.append(value)
        elif name == b"content-type":
            types.append(value)
        elif name in _BROWSER_HEADERS or name.startswith(_BROWSER_PREFIXES):
            raise PeerRefused(Refusal.BROWSER)
        elif name in _FORBIDDEN_HEADERS or _leaves_http(name, value):
            raise PeerRefused(Refusal.HTTP)
    if hosts != [host]:
        raise PeerRefused(Refusal.HOST)
    cap = BODY_CAPS.get(target)
    if cap is None:
        raise PeerRefused(Refusal.ROUTE)
    if types != [CONTENT_TYPE] or len(lengths) != 1:
        raise PeerRefused(Refusal.HEADERS)
    try:
        length = parse_decimal(lengths[0], 2**62)
    except MalformedError:
        raise PeerRefused(Refusal.HEADERS) from None
    if length > cap:
        raise BodyTooLarge
    return RequestHead(method, target, headers, length)


def _leaves_http(name: bytes, value: bytes) -> bool:
    # `Connection: upgrade` and `Connection: http2-settings` announce another protocol.
    return name == b"connection" and value.lower() not in (b"keep-alive", b"close")


def wants_close(headers: Headers) -> bool:
    """True when the client asks for the connection to be closed after the reply."""
    return any(name == b"connection" and value.lower() == b"close" for name, value in headers)
