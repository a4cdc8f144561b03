"""Isolated mode: each grant has a browser context of its own behind a filtering proxy of its own.

The proxy's port names the grant, whatever sent the request: a tab, a worker, a closed tab's last beacon or
the browser itself. What the wall is, what it was measured against and what it does not cover:
docs/network-guard.md.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import trio
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller

from tabwarden_adapters.browser.body_inspection import BodyInspection, body_lane
from tabwarden_adapters.browser.cdp import CdpError
from tabwarden_adapters.browser.cdp.generated import browser, runtime, target
from tabwarden_adapters.browser.chromium import Chromium
from tabwarden_adapters.browser.context_view import ContextView
from tabwarden_adapters.browser.egress_http import url_target
from tabwarden_adapters.browser.egress_proxy import (
    Egress,
    EgressCounters,
    EgressProxy,
    EndpointPolicy,
    HostCounts,
    Refused,
    judged_addresses,
)
from tabwarden_adapters.browser.grant_rules import GrantRules, NetworkPolicy
from tabwarden_adapters.browser.host import BLANK, ChromiumHost
from tabwarden_adapters.browser.inventory import Inventory
from tabwarden_adapters.browser.request_guard import RefusedRequest, RequestGuard
from tabwarden_adapters.browser.resolver import Resolver, SystemResolver
from tabwarden_adapters.browser.tab import Tab

OPEN_S = 10.0  # a context and its first tab take some 0.1 s
OPENED_REMEMBERED = 64  # tabs that one action may open and be told of
# Everything that sends requests by itself and has no tab. Attached at this one level only: attached below
# a page as well, one service worker comes up to five times.
WORKERS = ("service_worker", "shared_worker")
KINDS = [target.FilterEntry(type=kind) for kind in ("page", *WORKERS)]
_PORT = re.compile(r":[0-9]+$")
BYPASS_NOTHING = "<-loopback>"  # without it, 127.0.0.1 and localhost go round the proxy


@dataclass(slots=True, eq=False)
class GrantContext:
    """One grant's part of the browser. `opened` holds its newest tabs, with numbers that only go up."""

    caller: Caller
    rules: GrantRules
    proxy: EgressProxy
    context_id: str = ""
    view: ContextView | None = None
    opened: deque[tuple[int, Tab]] = field(default_factory=lambda: deque(maxlen=OPENED_REMEMBERED))
    tabs_opened: int = 0
    ended: bool = False

    def opened_since(self, number: int) -> list[Tab]:
        """Tabs opened after `tabs_opened` was `number`, and still there."""
        return [tab for count, tab in self.opened if count > number and not tab.session.ended_for_good]


@dataclass(slots=True, eq=False)
class _Opening:
    """A context on its way, and everybody who waits for it."""

    done: trio.Event = field(default_factory=trio.Event)
    result: GrantContext | None = None
    unwanted: bool = False


class NetworkGuard:
    """Owns the contexts and their proxies. `await nursery.start(guard.run)` first, then give `prepare` to
    `ChromiumHost.start`.

    `counters` is told of every connection and refusal of the proxies, of all grants together; `on_refused` of
    what was stopped before it got there. Neither may block or raise.
    """

    def __init__(
        self,
        chromium: Chromium,
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
        self._connection = chromium.connection
        self._policy = policy
        self._resolver = resolver or SystemResolver()
        self._grants: dict[Caller, GrantContext] = {}
        self._opening: dict[Caller, _Opening] = {}
        self._by_context: dict[str, GrantContext] = {}
        self._person_context: str | None = None
        self._protected: set[int] = set()
        self._inventory: Inventory | None = None
        self._nursery: trio.Nursery | None = None
        self._closed = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the proxies' tasks until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self.end_all()

    def prepare(self, inventory: Inventory) -> None:
        """Have tabs and workers guarded from their first moment: before the inventory attaches."""
        self._inventory = inventory
        inventory.kinds = KINDS
        inventory.on_tab = self._tab
        if self._bodies is not None:
            self._bodies.watch(self._connection.root)
        self._connection.root.on(target.AttachedToTarget, self._worker)

    def tabs(self) -> int:
        """How many tabs are open, less those that are kept from all agents."""
        return 0 if self._inventory is None else len(self._inventory.tabs())

    def protect(self, port: int) -> None:
        """Refuse this loopback port to every page, whatever policy says: it is the broker's own."""
        self._protected.add(port)

    def own_ports(self) -> frozenset[int]:
        """Loopback ports that no page may reach: those protected, and all proxies'."""
        return frozenset(self._protected | {grant.proxy.port for grant in self._grants.values()})

    # ---- contexts -----------------------------------------------------------------------------------

    def existing(self, caller: Caller) -> GrantContext | None:
        """The caller's context, if there is one."""
        return self._grants.get(caller)

    async def context(self, caller: Caller) -> GrantContext:
        """The caller's context with its first tab; made when it does not exist.

        Raises `ActionError`: `session-gone` without Chromium, `shutting-down` after `end_all`, `failure`.
        """
        grant = self._grants.get(caller)
        if grant is not None:
            return grant
        opening = self._opening.get(caller)
        if opening is None:
            if self._closed or self._nursery is None or self._inventory is None:
                raise ActionError(Code.SHUTTING_DOWN)
            opening = self._opening[caller] = _Opening()
            # Not in the caller's task: a call that is cancelled half-way must not leave a context that
            # nobody knows of.
            self._nursery.start_soon(self._open, caller, opening, self._nursery, self._inventory)
        await opening.done.wait()
        if opening.result is None:
            raise ActionError(Code.FAILURE if self._connection.root.ended is None else Code.SESSION_GONE)
        return opening.result

    async def _open(
        self, caller: Caller, opening: _Opening, nursery: trio.Nursery, inventory: Inventory
    ) -> None:
        rules = GrantRules(self._policy, caller)
        proxy = EgressProxy(rules, self._resolver, self.counters, own_ports=self.own_ports)
        grant = GrantContext(caller, rules, proxy)
        try:
            with trio.move_on_after(OPEN_S):
                await nursery.start(proxy.run)
                await self._fill(grant, inventory)
                if not opening.unwanted and not self._closed:
                    self._grants[caller] = opening.result = grant
        except (CdpError, OSError):
            pass  # told by there being no result
        finally:
            if opening.result is None:
                self._end(grant)
            self._opening.pop(caller, None)
            opening.done.set()

    async def _fill(self, grant: GrantContext, inventory: Inventory) -> None:
        root = self._connection.root
        if self._person_context is None:
            found = await root.call(target.get_targets(filter=[target.FilterEntry(type="page")]))
            others = (info.browser_context_id for info in found.target_infos)
            self._person_context = next((one for one in others if one not in self._by_context), None)
        made = await root.call(
            target.create_browser_context(
                dispose_on_detach=True,
                proxy_server=f"http://127.0.0.1:{grant.proxy.port}",
                proxy_bypass_list=BYPASS_NOTHING,
            )
        )
        grant.context_id = made.browser_context_id
        grant.view = ContextView(inventory, grant.context_id, self._person_context, grant.rules.page)
        self._by_context[grant.context_id] = grant
        await root.call(browser.set_download_behavior(behavior="deny", browser_context_id=grant.context_id))
        first = await root.call(target.create_target(url=BLANK, browser_context_id=grant.context_id))
        await inventory.opened(first.target_id)

    def end(self, principal_id: str | None, *, but_generation: int | None = None) -> None:
        """A grant has ended: cut its connections, close its tabs, delete what it stored. Does not wait.

        With `but_generation`, only the contexts of its other generations end.
        """
        callers = [*self._grants, *self._opening]
        for caller in callers:
            if caller.principal_id == principal_id and (
                but_generation is None or caller.generation != but_generation
            ):
                self._forget(caller)

    def end_all(self) -> None:
        """All grants have ended, for good."""
        self._closed = True
        for caller in [*self._grants, *self._opening]:
            self._forget(caller)

    def recheck(self) -> None:
        """The policy has changed: cut the connections that it would not allow now. Requests to come are
        judged by it anyway. Does not wait."""
        for grant in self._grants.values():
            grant.proxy.recheck()
        if self._bodies is not None:
            self._bodies.follow()

    def _forget(self, caller: Caller) -> None:
        opening = self._opening.get(caller)
        if opening is not None:
            opening.unwanted = True
        grant = self._grants.pop(caller, None)
        if grant is not None:
            self._end(grant)

    def _end(self, grant: GrantContext) -> None:
        grant.ended = True
        grant.rules.end()
        grant.proxy.shut()  # first: what the closing tabs still want to send goes nowhere
        if grant.context_id:
            self._by_context.pop(grant.context_id, None)
            self._connection.root.post(target.dispose_browser_context(browser_context_id=grant.context_id))

    # ---- targets ------------------------------------------------------------------------------------

    def _tab(self, tab: Tab) -> None:
        grant = self._by_context.get(tab.context_id or "")
        if grant is None:
            return
        guard = RequestGuard(
            tab.session,
            grant.rules,
            self._connection.session,
            self._on_refused,
            tab.target_id,
            body_lane(self._bodies, grant.caller),
        )
        guard.begin(frames=True)
        tab.standing = guard
        grant.tabs_opened += 1
        grant.opened.append((grant.tabs_opened, tab))

    def _worker(self, event: target.AttachedToTarget) -> None:
        info = event.target_info
        session = self._connection.session(event.session_id)
        if session is None or info.type not in WORKERS:
            return
        grant = self._by_context.get(info.browser_context_id or "")
        if grant is not None:
            bodies = body_lane(self._bodies, grant.caller)
            guard = RequestGuard(
                session, grant.rules, self._connection.session, self._on_refused, bodies=bodies
            )
            guard.begin(frames=False)
        if event.waiting_for_debugger:
            session.post(runtime.run_if_waiting_for_debugger())
        if grant is None:
            self._connection.root.post(target.detach_from_target(session_id=event.session_id))

    # ---- hosts --------------------------------------------------------------------------------------

    def host(
        self, grant: GrantContext, chromium: Chromium, policy_version: Callable[[], int]
    ) -> ChromiumHost:
        """The browser as this grant's adapters see it."""
        if grant.view is None:
            raise ActionError(Code.FAILURE)

        async def reachable(href: str) -> bool:
            return await leads_somewhere_allowed(href, grant.rules, self._resolver, self.own_ports)

        return ChromiumHost(
            chromium, policy_version, grant.view, context_id=grant.context_id, reachable=reachable
        )


def counting(
    counters: EgressCounters, tell: Callable[[RefusedRequest], None]
) -> Callable[[RefusedRequest], None]:
    """`tell`, and `counters` of what the proxies never see: requests that failed for their contents."""

    def refused(request: RefusedRequest) -> None:
        if request.content is not None:
            counters.count(_PORT.sub("", request.host), Egress.CONTENT)
        tell(request)

    return refused


async def leads_somewhere_allowed(
    href: str, rules: EndpointPolicy, resolver: Resolver, own_ports: Callable[[], frozenset[int]]
) -> bool:
    """False when the host is not allowed or one of its addresses may not be reached. A name that does not
    exist is left to the navigation to fail at."""
    try:
        await judged_addresses(url_target(href), rules, resolver, own_ports)
    except Refused as refused:
        return refused.outcome is Egress.UNRESOLVED
    return True
