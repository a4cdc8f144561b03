"""What a request must look like before Hypercorn, Quart or a backend sees anything of it. Pure.

The order is: plain HTTP/1.1, not a page's, addressed to us, with the token, to an endpoint, of a known and
allowed length. So a peer without the token learns nothing but that, whatever else is wrong.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tabwarden_adapters.host.errors import ControlError, ErrorCode
from tabwarden_adapters.host.limits import MAX_BODY

Headers = Sequence[tuple[bytes, bytes]]

ROUTES: dict[bytes, bytes] = {
    b"/policy": b"GET",
    b"/sensitive-overrides": b"GET",
    b"/excluded-targets": b"GET",
    b"/approve": b"POST",
    b"/handoff": b"POST",
    b"/log": b"POST",
    b"/tabs/open": b"POST",
}
"""The reference's seven endpoints and their methods."""

# A browser adds one of these to whatever a page makes it send; an engine has no use for them.
_BROWSER_HEADERS = frozenset({b"origin", b"referer", b"cookie"})
_BROWSER_PREFIXES = (b"sec-", b"proxy-", b"access-control-")
# The one exception: Node's own `fetch` always sends it, alone. A browser never leaves out Sec-Fetch-Site,
# -Mode and -Dest where it sends one of them (W3C Fetch Metadata), and a page can leave out none.
_NODE_FETCH = (b"sec-fetch-mode", b"cors")
# Ways of leaving plain HTTP/1.1 with one body of known length.
_FORBIDDEN = frozenset({b"upgrade", b"http2-settings", b"te", b"trailer"})
_BEARER = re.compile(rb"bearer +([\x21-\x7e]+)", re.IGNORECASE)
_TARGET = re.compile(rb"(/[A-Za-z/-]*)(?:\?([\x21\x24-\x7e]*))?")


@dataclass(frozen=True, slots=True)
class Head:
    """A request that passed the gate. `length` is its body's, within the limit."""

    method: bytes
    route: bytes
    query: bytes = field(repr=False)
    length: int


def check_head(
    method: bytes, target: bytes, version: str, headers: Headers, *, host: bytes, token: bytes
) -> Head:
    """Judge a request before its body is read. `headers` has lower-case names; `host` is `127.0.0.1:PORT`.

    Raises `ControlError`.
    """
    if version != "1.1":
        raise ControlError(ErrorCode.VERSION)
    _refuse_browsers(headers)
    if _values(headers, b"host") != [host]:
        raise ControlError(ErrorCode.HOST)
    _check_token(headers, token)
    _refuse_other_protocols(headers)
    matched = _TARGET.fullmatch(target)
    wanted = ROUTES.get(matched[1]) if matched else None
    if matched is None or wanted is None:
        raise ControlError(ErrorCode.ROUTE)
    if method != wanted:
        raise ControlError(ErrorCode.METHOD)
    length = _length(headers, method)
    if length > MAX_BODY:
        raise ControlError(ErrorCode.TOO_LARGE)
    return Head(method, matched[1], matched[2] or b"", length)


def _values(headers: Headers, wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def _refuse_browsers(headers: Headers) -> None:
    modes = _values(headers, b"sec-fetch-mode")
    for name, value in headers:
        if (name, value) == _NODE_FETCH and len(modes) == 1:
            continue
        if name in _BROWSER_HEADERS or name.startswith(_BROWSER_PREFIXES):
            raise ControlError(ErrorCode.BROWSER)


def _check_token(headers: Headers, token: bytes) -> None:
    sent = _values(headers, b"authorization")
    matched = _BEARER.fullmatch(sent[0]) if len(sent) == 1 else None
    # Compared in constant time, and also where there is nothing to compare.
    if not hmac.compare_digest(matched[1] if matched else b"", token):
        raise ControlError(ErrorCode.UNAUTHORIZED)


def _refuse_other_protocols(headers: Headers) -> None:
    for name, value in headers:
        if name == b"expect":
            raise ControlError(ErrorCode.EXPECTATION)
        if name == b"transfer-encoding":
            raise ControlError(ErrorCode.LENGTH)
        if name in _FORBIDDEN or (name == b"connection" and value.lower() not in (b"keep-alive", b"close")):
            raise ControlError(ErrorCode.MALFORMED)


def _length(headers: Headers, method: bytes) -> int:
    lengths = _values(headers, b"content-length")
    if not lengths:
        if method == b"POST":
            raise ControlError(ErrorCode.LENGTH)
        return 0
    if len(lengths) > 1 or not re.fullmatch(rb"0|[1-9][0-9]{0,18}", lengths[0]):
        raise ControlError(ErrorCode.MALFORMED)
    length = int(lengths[0])
    if method == b"GET" and length:
        raise ControlError(ErrorCode.MALFORMED)
    return length
