"""Where to ship to, as it is written: `tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH` or `otlp`."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from tabwarden.errors import ConfigurationError

OTLP = "otlp"
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_MAX_UNIX_PATH = 107  # sun_path of unix(7), less its final zero


@dataclass(frozen=True, slots=True)
class SyslogAddress:
    """`host` and `port`, or `path` for a unix socket."""

    kind: Literal["tcp", "tls", "unix"]
    host: str = ""
    port: int = 0
    path: str = ""


def parse_address(text: str) -> SyslogAddress | Literal["otlp"]:
    """Raises `ConfigurationError` for everything else: a port is never guessed."""
    if text == OTLP:
        return "otlp"
    if not text.isascii() or not text.isprintable() or " " in text:
        raise _mistake("it may hold printable ASCII without spaces only")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _mistake("its host or port cannot be read") from None
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise _mistake("it may have no ? and no #")
    if parts.username is not None or parts.password is not None:
        raise _mistake("it may hold no user and no password")
    if parts.scheme == "unix":
        return _unix(parts)
    if parts.scheme not in ("tcp", "tls"):
        raise _mistake("it begins with none of these")
    if parts.path:
        raise _mistake("it may have nothing behind the port")
    if not parts.hostname:
        raise _mistake("the host is missing")
    if not _is_host(parts.hostname):
        raise _mistake("the host is neither a name nor an address")
    if port is None or port == 0:
        raise _mistake("the port is missing")
    return SyslogAddress("tls" if parts.scheme == "tls" else "tcp", host=parts.hostname, port=port)


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return len(text) <= 253 and _HOST.fullmatch(text) is not None
    return True


def _unix(parts: SplitResult) -> SyslogAddress:
    if parts.netloc or not parts.path.startswith("/") or parts.path.endswith("/"):
        raise _mistake("a unix socket is named by its absolute path, with three slashes")
    if len(parts.path) > _MAX_UNIX_PATH:
        raise _mistake(f"the path of a unix socket has at most {_MAX_UNIX_PATH} bytes")
    return SyslogAddress("unix", path=parts.path)


def _mistake(why: str) -> ConfigurationError:
    return ConfigurationError(f"--to must be tcp://HOST:PORT, tls://HOST:PORT, unix:///PATH or otlp: {why}")
