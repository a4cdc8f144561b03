"""What network policy says for one caller, in the forms in which the guard asks."""

from typing import Protocol

from tabwarden.model import Caller


class NetworkPolicy(Protocol):
    """Where agents' tabs may be, and what they may load. Answers at once, from current policy; only True
    allows. `href` is an HTTP(S) URL in WHATWG normal form; `host` a host in normal form, IPv6 in brackets."""

    def destination_allowed(self, caller: Caller, href: str, /) -> bool:
        """May a tab be at this address?"""
        ...

    def resource_allowed(self, caller: Caller, href: str, /) -> bool:
        """May a page load this, in a frame too? All that `destination_allowed` allows is included."""
        ...

    def endpoint_allowed(self, caller: Caller, host: str, port: int, /) -> bool:
        """May there be a connection to this host for either?"""
        ...

    def endpoint_named(self, caller: Caller, host: str, port: int, /) -> bool:
        """Is this very host listed, not only a pattern that it matches? It may then be a private one."""
        ...


class GrantRules:
    """One caller's rules: implements `RequestRules` and `EndpointPolicy`."""

    def __init__(self, policy: NetworkPolicy, caller: Caller) -> None:
        self._policy = policy
        self._caller = caller
        self._ended = False

    def end(self) -> None:
        """The grant has ended, whatever policy says: what is still under way is allowed nothing."""
        self._ended = True

    def page(self, href: str) -> bool:
        """See `RequestRules`."""
        return not self._ended and self._policy.destination_allowed(self._caller, href)

    def resource(self, href: str) -> bool:
        """See `RequestRules`."""
        return not self._ended and self._policy.resource_allowed(self._caller, href)

    def allowed(self, host: str, port: int) -> bool:
        """See `EndpointPolicy`."""
        return not self._ended and self._policy.endpoint_allowed(self._caller, host, port)

    def named(self, host: str, port: int) -> bool:
        """See `EndpointPolicy`."""
        return not self._ended and self._policy.endpoint_named(self._caller, host, port)
