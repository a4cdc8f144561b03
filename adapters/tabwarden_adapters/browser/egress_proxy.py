"""A filtering proxy on 127.0.0.1 for one browser context: the wall that its requests cannot go round.

It judges the host and port, looks the name up once, judges every address of the answer, and connects to
exactly what it judged: a name that answers differently the second time gains nothing. It never falls back to
anything, decrypts nothing and keeps nothing but counts by host.
"""

import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import Protocol

import trio
from tabwarden.service.peer_socket import PeerLookup

from tabwarden_adapters.browser.addresses import is_loopback, is_public
from tabwarden_adapters.browser.egress_http import (
    AnswerReader,
    Malformed,
    RequestReader,
    Target,
    absolute_target,
    forwarded,
    tunnel_target,
)
from tabwarden_adapters.browser.relay import IdleTimer, relay, send_body
from tabwarden_adapters.browser.resolver import Resolver, Unresolved

LOOPBACK = "127.0.0.1"
CONNECTIONS = 256  # Chromium opens 32 sockets to a proxy, and 255 for WebSockets
HEAD_S = 10.0  # a browser sends its head at once; it may open a socket some seconds before it needs it
CONNECT_S = 5.0  # for each address
ADDRESSES_TRIED = 3
READ_BYTES = 64 * 1024
HOSTS_COUNTED = 256  # more than the sites and their suppliers of a day
OTHER_HOSTS = "(other)"
REFUSED_HOSTS = "(refused)"
BACKLOG = 128


class Egress(StrEnum):
    """What became of one request for a connection."""

    CONNECTED = "connected"
    HOST = "host-refused"
    ADDRESS = "address-refused"
    OWN_PORT = "own-port-refused"
    UNRESOLVED = "unresolved"
    UNREACHABLE = "unreachable"
    MALFORMED = "malformed"
    TOO_SLOW = "too-slow"
    FOREIGN_USER = "foreign-user"
    CAPACITY = "capacity"
    CONTENT = "content-refused"
    """No connection was asked for: what it was to send must not leave. Told by the guards."""


_POLICY_ALLOWED = frozenset(
    {
        Egress.CONNECTED,
        Egress.ADDRESS,
        Egress.OWN_PORT,
        Egress.UNRESOLVED,
        Egress.UNREACHABLE,
        Egress.CONTENT,
    }
)


class EgressCounters(Protocol):
    """Told of each outcome. `host` is "" where no host was named. Must not block or raise."""

    def count(self, host: str, outcome: Egress) -> None: ...


class HostCounts:
    """Counts by host and outcome; after `HOSTS_COUNTED` hosts, all others together. Implements
    `EgressCounters`.

    Hosts that the policy does not allow are counted apart: a page can make up as many of those as it likes,
    and must not crowd out the others.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Egress]] = Counter()
        self._hosts: set[str] = set()
        self._refused: set[str] = set()

    def count(self, host: str, outcome: Egress) -> None:
        """Add one."""
        known = self._hosts if outcome in _POLICY_ALLOWED else self._refused
        if host not in known:
            if len(known) >= HOSTS_COUNTED:
                host = OTHER_HOSTS
            else:
                known.add(host)
        self._counts[host, outcome] += 1

    def counts(self) -> dict[tuple[str, Egress], int]:
        """A copy of all counts."""
        return dict(self._counts)

    def for_metrics(self) -> dict[tuple[str, str], int]:
        """The counts with no host named but those that the policy allows: others are text of pages.

        May be called from any thread.
        """
        told: Counter[tuple[str, str]] = Counter()
        for (host, outcome), count in self.counts().items():
            told[host if outcome in _POLICY_ALLOWED else REFUSED_HOSTS, outcome.value] += count
        return dict(told)


class EndpointPolicy(Protocol):
    """What one grant may connect to. Answers at once; only True allows. `host` is in normal form."""

    def allowed(self, host: str, port: int, /) -> bool:
        """May anything of it, a page or what a page loads, connect there?"""
        ...

    def named(self, host: str, port: int, /) -> bool:
        """Is this very host named, not by a pattern? Then it may be on this machine or its network."""
        ...


class Refused(Exception):
    """Nothing was sent, and nothing will be."""

    def __init__(self, outcome: Egress) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome


async def judged_addresses(
    target: Target, policy: EndpointPolicy, resolver: Resolver, own_ports: Callable[[], frozenset[int]]
) -> tuple[str, ...]:
    """The addresses that `target` may be reached at; one that may not be refuses them all.

    `own_ports` are the loopback ports of this program, which no page may ever reach. Raises `Refused`.
    """
    try:
        if policy.allowed(target.host, target.port) is not True:
            raise Refused(Egress.HOST)
        named = policy.named(target.host, target.port) is True
    except Refused:
        raise
    except Exception:  # a policy that cannot answer allows nothing
        raise Refused(Egress.HOST) from None
    try:
        found = (target.bare,) if target.is_address else tuple(await resolver.resolve(target.host))
    except Unresolved:
        raise Refused(Egress.UNRESOLVED) from None
    if target.port in own_ports() and any(is_loopback(address) for address in found):
        raise Refused(Egress.OWN_PORT)
    if not named and not all(is_public(address) for address in found):
        raise Refused(Egress.ADDRESS)
    if not found:
        raise Refused(Egress.UNRESOLVED)
    return found


class EgressProxy:
    """One proxy; `await nursery.start(proxy.run)` brings it to life, `shut` ends it for good.

    `own_ports` names loopback ports that are refused whatever the policy says; its own always is. A fault in
    one connection ends that connection, never the nursery.
    """

    def __init__(
        self,
        policy: EndpointPolicy,
        resolver: Resolver,
        counters: EgressCounters,
        *,
        own_ports: Callable[[], frozenset[int]] = frozenset,
        connections: int = CONNECTIONS,
        head_s: float = HEAD_S,
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._counters = counters
        self._others = own_ports
        self._free = connections
        self._head_s = head_s
        self._scope = trio.CancelScope()
        self._connected: dict[trio.CancelScope, tuple[Target, bool]] = {}  # and whether it had to be named
        self.port = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve on an ephemeral port of 127.0.0.1 until `shut`; `port` is known once started."""
        listener = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        lookup = PeerLookup()
        try:
            with self._scope:
                await listener.bind((LOOPBACK, 0))
                listener.listen(BACKLOG)
                self.port = listener.getsockname()[1]
                async with trio.open_nursery() as nursery:
                    task_status.started()
                    await self._accept(listener, lookup, nursery)
        finally:
            listener.close()
            lookup.close()

    def shut(self) -> None:
        """Refuse everything from now on and cut every connection. Does not wait."""
        self._scope.cancel()

    def recheck(self) -> None:
        """The policy has changed: cut the connections that it would not allow now. Does not wait."""
        for scope, (target, private) in list(self._connected.items()):
            if not self._allowed(target, private):
                self._counters.count(target.host, Egress.HOST)
                scope.cancel()

    def _allowed(self, target: Target, private: bool) -> bool:
        """Whether this target may be reached at all, and at a private address."""
        try:
            return self._policy.allowed(target.host, target.port) is True and (
                not private or self._policy.named(target.host, target.port) is True
            )
        except Exception:  # a policy that cannot answer allows nothing
            return False

    async def _accept(
        self, listener: trio.socket.SocketType, lookup: PeerLookup, nursery: trio.Nursery
    ) -> None:
        while True:
            try:
                accepted, peer = await listener.accept()
            except OSError:  # out of descriptors, or a peer that has left again
                await trio.sleep(0.05)
                continue
            stream = trio.SocketStream(accepted)
            refused = None if self._ours(lookup, peer) else Egress.FOREIGN_USER
            if refused is None and self._free < 1:
                refused = Egress.CAPACITY
            if refused is not None:
                self._counters.count("", refused)
                accepted.close()
                continue
            self._free -= 1
            nursery.start_soon(self._serve, stream)

    def _ours(self, lookup: PeerLookup, peer: tuple[str, int]) -> bool:
        if not lookup.available:
            return True  # the system does not tell whose a connection is
        found = lookup.find(peer, (LOOPBACK, self.port))
        return found is not None and found.uid == os.getuid()

    async def _serve(self, client: trio.SocketStream) -> None:
        host = ""
        try:
            reader = RequestReader()
            with trio.move_on_after(self._head_s) as patience:
                if not await _read_head(client, reader):
                    return  # opened and never used, as a browser does in advance
            if patience.cancelled_caught:
                raise Refused(Egress.TOO_SLOW)
            if reader.method == b"CONNECT":
                target = tunnel_target(reader.target)
                host = target.host
                await self._tunnel(client, reader, target)
            else:
                target, path, name = absolute_target(reader.target)
                host = target.host
                head = forwarded(reader.method, path, name, reader.headers)
                await self._forward(client, reader, target, head)
        except Refused as refused:
            self._counters.count(host, refused.outcome)
            await _refuse(client, tunnel=reader.method == b"CONNECT")
        except Malformed:
            self._counters.count(host, Egress.MALFORMED)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass  # either side has left
        except Exception:  # a fault of ours: the other connections go on
            self._counters.count(host, Egress.MALFORMED)
        finally:
            self._free += 1
            await trio.aclose_forcefully(client)

    async def _tunnel(self, client: trio.SocketStream, reader: RequestReader, target: Target) -> None:
        async with self._dialled(target) as origin:
            await client.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
            if reader.rest:
                await origin.send_all(reader.rest)
            await relay(client, origin)

    async def _forward(
        self, client: trio.SocketStream, reader: RequestReader, target: Target, head: bytes
    ) -> None:
        """One request, one answer. Both connections then close: what follows would have to be judged anew."""
        answer = AnswerReader(head_only=reader.method == b"HEAD")
        framed = reader.chunked  # before anything is sent: it may be malformed
        async with self._dialled(target) as origin:
            try:
                await origin.send_all(head + (reader.take_body() if framed or reader.body else b""))
                async with trio.open_nursery() as nursery:
                    idle = IdleTimer(nursery.cancel_scope)
                    nursery.start_soon(send_body, client, origin, reader, idle)
                    while not answer.done and (data := await origin.receive_some(READ_BYTES)):
                        await client.send_all(answer.feed(data))
                        idle.touch()
                    with suppress(trio.BrokenResourceError):
                        await client.send_eof()
                    nursery.cancel_scope.cancel()
            except* Malformed:
                self._counters.count(target.host, Egress.MALFORMED)
            except* (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                pass

    @asynccontextmanager
    async def _dialled(self, target: Target) -> AsyncIterator[trio.SocketStream]:
        """A judged connection while the block runs; `recheck` may end both. Raises `Refused`."""
        with trio.CancelScope() as scope:
            origin, address = await self._dial(target)
            private = not is_public(address)
            self._connected[scope] = (target, private)
            try:
                if not self._allowed(target, private):  # changed while it connected
                    raise Refused(Egress.HOST)
                yield origin
            finally:
                del self._connected[scope]
                await trio.aclose_forcefully(origin)

    async def _dial(self, target: Target) -> tuple[trio.SocketStream, str]:
        """Connect to an address that was judged, and say which. Raises `Refused`."""
        addresses = await judged_addresses(target, self._policy, self._resolver, self._own_ports)
        for address in addresses[:ADDRESSES_TRIED]:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            outgoing = trio.socket.socket(family, socket.SOCK_STREAM)
            try:
                with trio.fail_after(CONNECT_S):
                    await outgoing.connect((address, target.port))
            except (OSError, trio.TooSlowError):
                outgoing.close()
                continue
            except BaseException:
                outgoing.close()
                raise
            self._counters.count(target.host, Egress.CONNECTED)
            return trio.SocketStream(outgoing), address
        raise Refused(Egress.UNREACHABLE)

    def _own_ports(self) -> frozenset[int]:
        return self._others() | {self.port}


async def _read_head(client: trio.SocketStream, reader: RequestReader) -> bool:
    while not reader.head_done:
        data = await client.receive_some(READ_BYTES)
        if not data:
            return False
        reader.feed(data)
    return True


async def _refuse(client: trio.SocketStream, *, tunnel: bool) -> None:
    """A refused tunnel is told so. For plain HTTP any answer would pass as the site's own page, so there is
    none: the browser sees a connection that ended."""
    if tunnel:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(1):
            await client.send_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
