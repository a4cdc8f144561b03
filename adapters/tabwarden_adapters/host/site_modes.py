"""The person's AI modes: what flags or a file list, under what a policy permits at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.host.origins import OPAQUE, host_of, web_origin
from tabwarden_adapters.host.static_policy import StaticPolicy
from tabwarden_adapters.host.values import SiteMode

Permitted = Callable[[str], bool]


class SiteModes:
    """`off` wins over the policy, the policy over `allow` and `ask`.

    What a policy permits and no list names is `ASK`; without a policy, what is not named is `OFF`.
    """

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        off: Sequence[str] = (),
        permitted: Permitted | None = None,
    ) -> None:
        """`allow` and `ask` are sites (`https://example.test`, or `example.test` for https). `off` is wider:
        `example.test` is every origin of that host, `*.example.test` every one below it.

        `permitted` says of an origin whether a policy lets agents be there; anything but True is a no.
        Raises `ConfigurationError` naming the list, also where two disagree.
        """
        self._listed = StaticPolicy.from_flags(allow=allow, ask=ask)
        self._off = tuple(_off(text) for text in off)
        self._permitted = permitted
        for name, texts in (("allow", allow), ("ask", ask)):
            for text in texts:
                if self._is_off(web_origin(text if "://" in text else f"https://{text}")):
                    raise ConfigurationError(f"{name}: {text!a} is also in off; leave one")

    async def mode(self, origin: str) -> SiteMode:
        """Of a normalised origin, as it is now."""
        listed = await self._listed.site_mode(origin)
        if origin == OPAQUE or self._is_off(origin):
            return SiteMode.OFF
        if self._permitted is None:
            return listed
        if self._permitted(origin) is not True:
            return SiteMode.OFF
        return SiteMode.ASK if listed is SiteMode.OFF else listed

    def _is_off(self, origin: str) -> bool:
        return any(one.matches(origin) for one in self._off)


@dataclass(frozen=True, slots=True)
class _Off:
    host: str
    below: bool = False
    origin: str | None = None

    def matches(self, origin: str) -> bool:
        if self.origin is not None:
            return origin == self.origin
        host = host_of(origin)
        return host.endswith(f".{self.host}") if self.below else host == self.host


def _off(text: str) -> _Off:
    below = text.startswith("*.")
    named = text.removeprefix("*.")
    exact = "://" in named
    try:
        origin = web_origin(named if exact else f"https://{named}")
    except ValueError:
        origin = OPAQUE
    rest = named.partition("://")[2].removesuffix("/") if exact else named
    # More than a host or an origin (a path, a star elsewhere) would promise a choice that is not made.
    if origin == OPAQUE or (below and exact) or any(one in rest for one in ("/?#*@" if exact else ":/?#*@")):
        raise ConfigurationError(
            f"off: {text!a} is not a host like example.test or *.example.test, or a site like "
            "https://example.test:8443"
        )
    return _Off(host_of(origin), below, origin if exact else None)
