"""Which model is asked, and where: checked once, then only used."""

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import ada_url
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.ai.limits import MAX_CHARACTERS

_ENDPOINT: Final = "/chat/completions"
_PORTS: Final = {"https:": 443, "http:": 80}
_MAX_URL: Final = 2048
_MAX_MODEL: Final = 128


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address in the parts that go on the wire. It was parsed once (WHATWG URL, by ada): no other parser
    can read it in another way."""

    scheme: bytes
    host: bytes  # a name in ASCII, or an address without brackets
    port: int
    target: bytes  # path and query
    authority: bytes  # the Host header
    origin: str  # as `https://models.example:8443`


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """`max_characters` is the most of an answer."""

    endpoint: Endpoint
    model: str
    max_characters: int


class PolicyPart(Protocol):
    """The part `ai` of a policy document."""

    @property
    def enabled(self) -> bool: ...
    @property
    def url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def max_characters(self) -> int: ...


def settings_of(part: PolicyPart) -> GatewaySettings | None:
    """What a policy says; None when it says that there is no gateway. Raises `ConfigurationError`."""
    if not part.enabled:
        return None
    return gateway_settings(part.url, part.model, part.max_characters)


@lru_cache(maxsize=64)
def gateway_settings(url: str, model: str, max_characters: int = MAX_CHARACTERS) -> GatewaySettings:
    """From plain values. `url` is the API's base (`https://models.example/v1`) or the whole endpoint, which
    ends in `/chat/completions`.

    Raises `ConfigurationError`, which names the field. `http` is for this machine only: `127.0.0.1` or
    `[::1]`, as written, because a name may lead elsewhere.
    """
    endpoint = _endpoint(url)
    if not model or len(model) > _MAX_MODEL or not model.isprintable():
        raise ConfigurationError(f"ai.model: must be a name of at most {_MAX_MODEL} printable characters")
    if type(max_characters) is not int or not 1 <= max_characters <= MAX_CHARACTERS:
        raise ConfigurationError(f"ai.max_characters: must be from 1 to {MAX_CHARACTERS}")
    return GatewaySettings(endpoint, model, max_characters)


def origin_of(url: str) -> str:
    """The origin that a key for this gateway is bound to. Raises `ConfigurationError` as above."""
    return _endpoint(url).origin


def _endpoint(url: str) -> Endpoint:
    try:
        parsed = ada_url.URL(url) if len(url) <= _MAX_URL else None
    except ValueError:  # includes UnicodeEncodeError, for lone surrogates
        parsed = None
    if parsed is None or parsed.protocol not in _PORTS or not parsed.hostname:
        raise ConfigurationError(f"ai.url: must be an https address of at most {_MAX_URL} characters")
    if parsed.username or parsed.password:
        raise ConfigurationError("ai.url: must not have credentials: store the key with tabwarden ai set-key")
    if parsed.hash:
        raise ConfigurationError("ai.url: must not have a fragment (#…)")
    if parsed.protocol == "http:" and not _is_loopback(parsed.hostname):
        raise ConfigurationError(
            "ai.url: must begin with https://, because prompts are sent there; http:// is for this machine "
            "only, written as 127.0.0.1 or [::1]"
        )
    path = parsed.pathname
    if not path.endswith(_ENDPOINT):
        path = path.rstrip("/") + _ENDPOINT
    return Endpoint(
        scheme=parsed.protocol.removesuffix(":").encode("ascii"),
        host=parsed.hostname.strip("[]").encode("ascii"),
        port=int(parsed.port or _PORTS[parsed.protocol]),
        target=(path + parsed.search).encode("ascii"),
        authority=parsed.host.encode("ascii"),
        origin=str(parsed.origin),
    )


def _is_loopback(hostname: str) -> bool:
    try:
        return ipaddress.ip_address(hostname.strip("[]")).is_loopback
    except ValueError:
        return False
