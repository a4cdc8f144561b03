"""Host patterns of a policy: `example.test`, `*.example.test`, `[::1]`, each with an optional `:port`.

A pattern without a port means the usual port of the URL's scheme (80, 443). `*.` stands for one or more
labels, so `*.example.test` does not match `example.test` itself, and never an IP address. Patterns must be
written in the normal form that URLs are brought to, so that what the file says is what is compared.
"""

import re
from dataclasses import dataclass

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.policy.destination import Destination, DestinationRefused, parse_destination

_PORT = re.compile(r"(?P<host>.*[^:\[]):(?P<port>[0-9]{0,6})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`host` is an exact host or, with `below`, a domain that the host must be a subdomain of."""

    host: str
    below: bool
    port: int | None

    def matches(self, destination: Destination) -> bool:
        if self.port is None:
            if not destination.usual_port:
                return False
        elif self.port != destination.port:
            return False
        if self.below:
            return destination.host.endswith("." + self.host)
        return destination.host == self.host


def parse_host_pattern(text: str, field: str) -> HostPattern:
    """Read one pattern; `field` names where it stands. Raises `ConfigurationError`."""
    host, port = text, None
    # A bare IPv6 address has colons too; it fails below, with the advice to add brackets.
    if not (text.startswith("[") and text.endswith("]")) and (match := _PORT.fullmatch(text)):
        host = match["host"]
        port = _port(match["port"], text, field)
    below = host.startswith("*.")
    name = host.removeprefix("*.")
    normal = _normal_form(name)
    if normal is None:
        raise ConfigurationError(
            f"{field}: {text!a} is not a host; write example.test, *.example.test, 127.0.0.1 or [::1], "
            "each with :port if it needs one"
        )
    if normal != name:
        wanted = ("*." if below else "") + normal + ("" if port is None else f":{port}")
        raise ConfigurationError(f"{field}: write {wanted!a} instead of {text!a} (its normal form)")
    # All of localhost is this machine (RFC 6761, 6.3); any other single label is somebody's whole registry.
    if below and (is_address(name) or ("." not in name and name != "localhost")):
        raise ConfigurationError(f"{field}: {text!a} is too wide; *. needs a domain of two labels or more")
    return HostPattern(name, below, port)


def is_address(host: str) -> bool:
    """Whether a normalised host is an IP address. To WHATWG, any host that ends in a number is one."""
    return host.startswith("[") or host.rsplit(".", 1)[-1].isdigit()


def _port(digits: str, text: str, field: str) -> int:
    if not digits or digits != str(int(digits)) or not 1 <= int(digits) <= 65535:
        raise ConfigurationError(f"{field}: the port of {text!a} is not a number from 1 to 65535")
    return int(digits)


def _normal_form(name: str) -> str | None:
    """How a URL with this host would be compared; None when it is no host at all."""
    if not name or any(character in name for character in "/\\?#@*% \t\r\n") or name.startswith(":"):
        return None
    try:
        destination = parse_destination(f"http://{name}/")
    except DestinationRefused:
        return None
    # Otherwise part of the name was taken for a port (`::1`, `a:b`).
    return destination.host if destination.usual_port and (":" not in name or name[0] == "[") else None
