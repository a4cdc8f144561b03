"""A Chromium with its guard and its actions, put together for a broker."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import trio
from tabwarden.model import AgentEvent, AuditEvent, LifecycleEvent
from tabwarden.ports import ActionAdapter, AuditSink, AuditTicket, Inspector

from tabwarden_adapters.browser.body_inspection import body_inspection
from tabwarden_adapters.browser.chromium import Chromium, launch_chromium
from tabwarden_adapters.browser.contract import AiGateway, AppControl
from tabwarden_adapters.browser.egress_proxy import EgressCounters
from tabwarden_adapters.browser.grant_rules import NetworkPolicy
from tabwarden_adapters.browser.isolated import create_isolated_adapters
from tabwarden_adapters.browser.network_guard import NetworkGuard
from tabwarden_adapters.browser.shared import create_shared_adapters
from tabwarden_adapters.browser.shared_guard import SharedGuard
from tabwarden_adapters.browser.whereabouts import WhereIs

BrowserContext = Literal["isolated", "shared"]


class Guard(Protocol):
    """What a broker tells its browser's guard."""

    def protect(self, port: int) -> None: ...

    def end(self, principal_id: str | None, *, but_generation: int | None = None) -> None: ...

    def end_all(self) -> None: ...

    def recheck(self) -> None: ...

    def tabs(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GuardedBrowser:
    """A running one. Give `actions` to the broker, the broker's port to `guard.protect`, and its audit
    through `GrantEnds`. `where` captures a caller's tab as it is now, for whoever asks a person about it."""

    chromium: Chromium
    guard: Guard
    actions: Mapping[str, ActionAdapter]
    where: WhereIs


@asynccontextmanager
async def guarded_chromium(
    nursery: trio.Nursery,
    policy: NetworkPolicy,
    policy_version: Callable[[], int],
    *,
    context: BrowserContext = "isolated",
    headless: bool = True,
    extra_flags: tuple[str, ...] = (),
    counters: EgressCounters | None = None,
    app_controls: Mapping[str, AppControl] | None = None,
    inspect: Inspector | None = None,
    ai: AiGateway | None = None,
) -> AsyncIterator[GuardedBrowser]:
    """Run Chromium with a guard while the block runs. Their tasks run in `nursery`. `app_controls` are added
    to what the browser itself can do; `inspect` and `ai` as for `create_agent_adapters`.

    Raises `ConfigurationError` as `launch_chromium` and `create_agent_adapters` do, `ActionError` when
    Chromium ends at once.
    """
    bodies = await body_inspection(nursery, inspect)
    if context == "isolated":
        async with launch_chromium(nursery, headless=headless, extra_flags=extra_flags) as chromium:
            guard = NetworkGuard(chromium, policy, counters=counters, bodies=bodies)
            await nursery.start(guard.run)
            actions, where = await create_isolated_adapters(
                guard,
                chromium,
                policy_version=policy_version,
                destination_allowed=policy.destination_allowed,
                app_controls=app_controls,
                inspect=inspect,
                ai=ai,
            )
            try:
                yield GuardedBrowser(chromium, guard, actions, where)
            finally:
                guard.end_all()
        return
    shared = SharedGuard(policy, counters=counters, bodies=bodies)
    await nursery.start(shared.run)
    flags = (*extra_flags, *shared.flags())  # the last word on the proxy is ours
    try:
        async with launch_chromium(nursery, headless=headless, extra_flags=flags) as chromium:
            actions, where = await create_shared_adapters(
                shared,
                chromium,
                policy_version=policy_version,
                destination_allowed=policy.destination_allowed,
                app_controls=app_controls,
                inspect=inspect,
                ai=ai,
            )
            try:
                yield GuardedBrowser(chromium, shared, actions, where)
            finally:
                shared.close()  # before Chromium ends: it lets go what is still held in its tabs
    finally:
        shared.close()


class GrantEnds:
    """An `AuditSink` around another that tells `guard` when grants end. The end is told even when it cannot
    be recorded: whoever was revoked must not keep a connection because a disk is full."""

    def __init__(self, audit: AuditSink, guard: Guard) -> None:
        self._audit = audit
        self._guard = guard

    def admit(self, event: AgentEvent) -> AuditTicket:
        """See `AuditSink`."""
        return self._audit.admit(event)

    def note(self, event: AuditEvent) -> None:
        """See `AuditSink`."""
        if isinstance(event, LifecycleEvent):
            self._tell(event)
        self._audit.note(event)

    async def flush(self) -> None:
        """See `AuditSink`."""
        await self._audit.flush()

    def _tell(self, event: LifecycleEvent) -> None:
        if event.event in ("revoked", "closed"):
            self._guard.end_all()
        elif event.event in ("principal-revoked", "principal-expired"):
            self._guard.end(event.principal_id)
        elif event.event == "principal-issued":
            self._guard.end(event.principal_id, but_generation=event.generation)
