"""Names to addresses, off the event loop and bounded: the one place where a guarded browser's names go."""

import socket
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import trio

RESOLVE_S = 8.0  # resolv.conf's default gives up after 5 s for each server
LOOKUPS = 8  # threads; a lookup that hangs keeps its own until the system gives up
MAX_ADDRESSES = 16  # of one answer: a name with more is not refused, only cut


class Unresolved(Exception):
    """The name leads nowhere, or the answer took too long."""


class Resolver(Protocol):
    """Finds the addresses of a host name (lower-case ASCII, no trailing dot)."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Addresses in digits, best first; at least one. Raises `Unresolved`."""
        ...


class SystemResolver:
    """What the system answers (getaddrinfo(3)). Names below `localhost` are this machine (RFC 6761, 6.3)."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(LOOKUPS)

    async def resolve(self, host: str) -> Sequence[str]:
        """See `Resolver`. Waits `RESOLVE_S` seconds at the most."""
        if host == "localhost" or host.endswith(".localhost"):
            return ("127.0.0.1", "::1")
        ask = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        try:
            with trio.fail_after(RESOLVE_S):
                # Abandoned, it ends by itself and changes nothing.
                found = await trio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._limiter)
        except (OSError, UnicodeError, trio.TooSlowError):
            raise Unresolved from None
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))[:MAX_ADDRESSES]
        if not addresses:
            raise Unresolved
        return addresses
