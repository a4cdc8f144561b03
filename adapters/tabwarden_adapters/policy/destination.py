"""Where a URL leads, as a browser would read it (WHATWG URL Standard, by ada), or why it may not be used."""

from dataclasses import dataclass

import ada_url

_DEFAULT_PORTS = {"http:": 80, "https:": 443}


class DestinationRefused(Exception):
    """`rule` names what was wrong with the URL, for the audit."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Destination:
    """`host` is normalised: lower-case ASCII, no trailing dot, an IP address in its one normal form (IPv6 in
    brackets). `port` is the effective one. `usual_port` says that it is the scheme's own."""

    host: str
    port: int
    usual_port: bool


def parse_destination(url: str) -> Destination:
    """The destination of an absolute HTTP(S) URL.

    Raises `DestinationRefused` with `url.invalid`, `url.scheme`, `url.credentials` or `url.host`.
    """
    try:
        parsed = ada_url.URL(url)
    except ValueError:  # includes UnicodeEncodeError, for lone surrogates
        raise DestinationRefused("url.invalid") from None
    usual = _DEFAULT_PORTS.get(parsed.protocol)
    if usual is None:
        raise DestinationRefused("url.scheme")
    if parsed.username or parsed.password:
        raise DestinationRefused("url.credentials")
    # One trailing dot only marks the name as complete (RFC 1034, 3.1); it leads to the same place.
    host = parsed.hostname.removesuffix(".")
    if not host or not host.isascii() or any(not label for label in host.split(".")):
        raise DestinationRefused("url.host")
    port = int(parsed.port) if parsed.port else usual
    return Destination(host, port, port == usual)
