"""The browser's actions in the person's own tabs, which they bind to the caller's grant."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET
from tabwarden.actions import ACTIONS
from tabwarden.errors import ActionError
from tabwarden.ports import ActionAdapter, CallContext, Inspector

from tabwarden_adapters.browser.chromium import Chromium
from tabwarden_adapters.browser.chromium_adapters import create_chromium_adapters
from tabwarden_adapters.browser.contract import AiGateway, AppControl, DestinationPolicy
from tabwarden_adapters.browser.host import ChromiumHost
from tabwarden_adapters.browser.opened import with_opened
from tabwarden_adapters.browser.shared_guard import SharedGuard
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.urls import destination
from tabwarden_adapters.browser.whereabouts import WhereIs, whereabouts


class _Shared:
    def __init__(
        self,
        guard: SharedGuard,
        base: ChromiumHost,
        destination_allowed: DestinationPolicy,
        app_controls: Mapping[str, AppControl] | None = None,
        inspect: Inspector | None = None,
        ai: AiGateway | None = None,
    ) -> None:
        self._guard = guard
        self._base = base
        self._destination_allowed = destination_allowed
        self.plain = create_chromium_adapters(
            base, destination_allowed=destination_allowed, inspect=inspect, ai=ai, app_controls=app_controls
        )

    async def act(self, name: str, arguments: Any, context: CallContext, /) -> object:
        spec = ACTIONS[name]
        if name == "tabs:create":
            with self._guard.creating(context.caller):
                return await self.plain[name](arguments, context)
        # A model is asked about a tab, and nothing is done in it.
        if spec.effect != "act" or not spec.needs_session or name == "ai":
            return await self.plain[name](arguments, context)
        tab = self._base.tab(None if arguments.session_id is UNSET else arguments.session_id)
        # The tab that is bound and the one that is acted in must be the same: what is in front may change.
        arguments = msgspec.structs.replace(arguments, session_id=tab.id)
        bound = self._concerned(tab, arguments, context) and self._guard.bind(tab, context.caller)
        before = self._guard.tabs_opened
        try:
            result = await self.plain[name](arguments, context)
        except ActionError as error:
            if bound and error.committed is False:
                self._guard.release(tab)  # nothing was done in it: it stays the person's
            raise
        return await with_opened(result, lambda: self._guard.opened_since(before), self._base.tab_change)

    def _concerned(self, tab: Tab, arguments: Any, context: CallContext) -> bool:
        """Whether the action gets past its first check: a tab must not be bound for being asked about."""
        address = getattr(arguments, "url", None)
        if address is None and tab.document is not None:
            address = tab.document.url
        href = destination(address or "")
        return href is not None and self._destination_allowed(context.caller, href) is True


async def create_shared_adapters(
    guard: SharedGuard,
    chromium: Chromium,
    *,
    policy_version: Callable[[], int],
    destination_allowed: DestinationPolicy,
    app_controls: Mapping[str, AppControl] | None = None,
    inspect: Inspector | None = None,
    ai: AiGateway | None = None,
) -> tuple[Mapping[str, ActionAdapter], WhereIs]:
    """Action name -> adapter, as `create_chromium_adapters` gives them, on a Chromium started with
    `guard.flags()`; and what says where tabs are. Raises `ActionError` when Chromium is gone."""
    base = await ChromiumHost.start(
        chromium,
        policy_version=policy_version,
        prepare=guard.attach(chromium),
        reachable=guard.reachable,
    )
    actions = shared_adapters(
        guard, base, destination_allowed, app_controls=app_controls, inspect=inspect, ai=ai
    )
    return actions, lambda caller, session_id: whereabouts(base, session_id)


def shared_adapters(
    guard: SharedGuard,
    base: ChromiumHost,
    destination_allowed: DestinationPolicy,
    *,
    app_controls: Mapping[str, AppControl] | None = None,
    inspect: Inspector | None = None,
    ai: AiGateway | None = None,
) -> Mapping[str, ActionAdapter]:
    """Action name -> adapter, on a host whose tabs are guarded by `guard`."""
    shared = _Shared(guard, base, destination_allowed, app_controls, inspect, ai)
    return {name: partial(shared.act, name) for name in shared.plain}
