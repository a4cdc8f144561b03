"""Shared mode: agents act in the person's own browser context, and only Fetch can tell tabs apart.

A tab that an agent acts in is bound to its grant: every request that Fetch sees of it must satisfy the
grant, until a person goes elsewhere by the address bar. What Fetch does not see (docs/network-guard.md has
the list) is held to the global policy only, by one proxy for the whole browser.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from tabwarden.model import Caller

from tabwarden_adapters.browser.address_bar import AddressBar
from tabwarden_adapters.browser.body_inspection import BodyInspection, BodyLane, body_lane
from tabwarden_adapters.browser.cdp import Connection
from tabwarden_adapters.browser.cdp.generated import runtime, target
from tabwarden_adapters.browser.chromium import Chromium
from tabwarden_adapters.browser.egress_proxy import EgressCounters, EgressProxy, HostCounts
from tabwarden_adapters.browser.grant_rules import GrantRules, NetworkPolicy
from tabwarden_adapters.browser.inventory import Inventory
from tabwarden_adapters.browser.network_guard import (
    BYPASS_NOTHING,
    KINDS,
    OPENED_REMEMBERED,
    WORKERS,
    counting,
    leads_somewhere_allowed,
)
from tabwarden_adapters.browser.request_guard import RefusedRequest, RequestGuard, RequestRules
from tabwarden_adapters.browser.resolver import Resolver, SystemResolver
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.urls import destination, origin

ANYBODY = Caller(None, None)  # the global policy is what holds for nobody in particular


class _Nothing:
    """Rules for what no tab answers for."""

    def page(self, href: str) -> bool:
        return False

    def resource(self, href: str) -> bool:
        return False


_ENDED = _Nothing()


class _Bound:
    """One tab's binding. Implements `RequestRules`: the grant's, plus what the address bar asks for."""

    def __init__(
        self,
        tab: Tab,
        caller: Caller,
        rules: RequestRules,
        refused: Callable[[RefusedRequest], None],
        connection: Connection,
        released: Callable[[Tab], None],
        bodies: BodyLane | None,
    ) -> None:
        self.tab = tab
        self.caller = caller
        self.rules = rules
        self.bar = AddressBar(tab, lambda: released(tab))
        self.guard = RequestGuard(tab.session, self, connection.session, refused, tab.target_id, bodies)
        self.bar.begin()
        self.guard.begin(frames=True)
        tab.standing = self.guard

    def page(self, href: str) -> bool:
        """The document that a person seems to go to may come; what it loads is judged once it is sure."""
        return self.rules.page(href) or self.bar.navigating

    def resource(self, href: str) -> bool:
        return self.rules.resource(href)

    def release(self) -> None:
        self.tab.standing = None
        self.bar.end()
        self.guard.release()


class SharedGuard:
    """Owns the browser-wide proxy and the bindings. `await nursery.start(guard.run)`, start Chromium with
    `flags()`, then give `prepare` to `ChromiumHost.start`."""

    def __init__(
        self,
        policy: NetworkPolicy,
        *,
        resolver: Resolver | None = None,
        counters: EgressCounters | None = None,
        on_refused: Callable[[RefusedRequest], None] = lambda refused: None,
        bodies: BodyInspection | None = None,
    ) -> None:
        self.counters: EgressCounters = counters or HostCounts()
        self._on_refused = counting(self.counters, on_refused)
        self._bodies = bodies
        self.tabs_opened = 0
        self._opened: deque[tuple[int, Tab]] = deque(maxlen=OPENED_REMEMBERED)
        self._policy = policy
        self._everybody = GrantRules(policy, ANYBODY)
        self._resolver = resolver or SystemResolver()
        self._protected: set[int] = set()
        self._proxy = EgressProxy(
            self._everybody, self._resolver, self.counters, own_ports=lambda: frozenset(self._protected)
        )
        self._bound: dict[str, _Bound] = {}  # by target id
        self._creating: list[Caller] = []
        self._connection: Connection | None = None
        self._inventory: Inventory | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve the proxy until `close`."""
        await self._proxy.run(task_status=task_status)

    def flags(self) -> tuple[str, ...]:
        """Chromium's flags; only after `run` has started."""
        return (
            f"--proxy-server=http://127.0.0.1:{self._proxy.port}",
            f"--proxy-bypass-list={BYPASS_NOTHING}",
        )

    def attach(self, chromium: Chromium) -> Callable[[Inventory], None]:
        """What to give `ChromiumHost.start` as `prepare`."""
        self._connection = chromium.connection

        def prepare(inventory: Inventory) -> None:
            self._inventory = inventory
            inventory.kinds = KINDS
            inventory.on_tab = self._tab
            self._watch(chromium.connection)
            chromium.connection.root.on(target.AttachedToTarget, self._worker)

        return prepare

    def _watch(self, connection: Connection) -> None:
        if self._bodies is not None:
            self._bodies.watch(connection.root)

    def tabs(self) -> int:
        """See `NetworkGuard.tabs`."""
        return 0 if self._inventory is None else len(self._inventory.tabs())

    def protect(self, port: int) -> None:
        """See `NetworkGuard.protect`."""
        self._protected.add(port)

    async def reachable(self, href: str) -> bool:
        """Whether an intended navigation's name leads to addresses that it may go to."""
        ports = frozenset(self._protected | {self._proxy.port})
        return await leads_somewhere_allowed(href, self._everybody, self._resolver, lambda: ports)

    def close(self) -> None:
        """The browser ends: nothing of it goes out any more."""
        self._proxy.shut()

    # ---- bindings -----------------------------------------------------------------------------------

    def bind(self, tab: Tab, caller: Caller) -> bool:
        """From now on this tab is the grant's. False when it was already. Does not wait: what is sent to the
        tab after this is in order behind it."""
        bound = self._bound.get(tab.target_id)
        if bound is not None and bound.caller == caller:
            return False
        if bound is not None:
            bound.release()
        if self._connection is not None:
            rules = GrantRules(self._policy, caller)
            bodies = body_lane(self._bodies, caller)
            self._bound[tab.target_id] = _Bound(
                tab, caller, rules, self._on_refused, self._connection, self.release, bodies
            )
        return True

    def release(self, tab: Tab) -> None:
        """A person took the tab over, or nothing was done in it after all."""
        bound = self._bound.pop(tab.target_id, None)
        if bound is not None:
            bound.release()

    def bound_to(self, tab: Tab) -> Caller | None:
        """The grant that a tab is bound to."""
        bound = self._bound.get(tab.target_id)
        return None if bound is None else bound.caller

    @contextmanager
    def creating(self, caller: Caller) -> Iterator[None]:
        """Bind tabs that nobody opened to `caller`: one of them is the one that it asks for."""
        self._creating.append(caller)
        try:
            yield
        finally:
            self._creating.remove(caller)

    def opened_since(self, number: int) -> list[Tab]:
        """Tabs that bound tabs opened after `tabs_opened` was `number`, and that are still there."""
        return [tab for count, tab in self._opened if count > number and not tab.session.ended_for_good]

    def end(self, principal_id: str | None, *, but_generation: int | None = None) -> None:
        """A grant has ended: its tabs may load nothing more until a person takes them over."""
        for bound in self._bound.values():
            caller = bound.caller
            if caller.principal_id == principal_id and (
                but_generation is None or caller.generation != but_generation
            ):
                bound.rules = _ENDED

    def end_all(self) -> None:
        """All grants have ended."""
        for bound in self._bound.values():
            bound.rules = _ENDED

    def recheck(self) -> None:
        """See `NetworkGuard.recheck`."""
        self._proxy.recheck()
        if self._bodies is not None:
            self._bodies.follow()

    # ---- targets ------------------------------------------------------------------------------------

    def _tab(self, tab: Tab) -> None:
        self._bound = {key: one for key, one in self._bound.items() if not one.tab.session.ended_for_good}
        opener = self._bound.get(tab.opener_id or "")
        if opener is not None:
            self.tabs_opened += 1
            self._opened.append((self.tabs_opened, tab))
            self.bind(tab, opener.caller)
        elif self._creating:
            self.bind(tab, self._creating[-1])

    def _worker(self, event: target.AttachedToTarget) -> None:
        info = event.target_info
        if self._connection is None or info.type not in WORKERS:
            return
        session = self._connection.session(event.session_id)
        if session is None:
            return
        contained = self._serves_bound(info.url)
        if contained:
            # Whose it is nobody can say: an agent's tab and the person's may share it.
            RequestGuard(session, _Nothing(), self._connection.session, self._on_refused).begin(frames=False)
        if event.waiting_for_debugger:
            session.post(runtime.run_if_waiting_for_debugger())
        if not contained:
            self._connection.root.post(target.detach_from_target(session_id=event.session_id))

    def _serves_bound(self, script: str) -> bool:
        href = destination(script)
        return href is None or any(origin(href) in bound.bar.origins for bound in self._bound.values())
