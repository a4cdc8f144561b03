"""The browser's actions, each caller's in a browser context of its own."""

from collections.abc import Callable, Mapping
from functools import partial

from tabwarden.actions import ACTIONS
from tabwarden.model import Caller
from tabwarden.ports import ActionAdapter, CallContext, Inspector

from tabwarden_adapters.browser.chromium import Chromium
from tabwarden_adapters.browser.chromium_adapters import create_chromium_adapters
from tabwarden_adapters.browser.contract import AiGateway, AppControl, DestinationPolicy
from tabwarden_adapters.browser.host import BLANK, ChromiumHost
from tabwarden_adapters.browser.network_guard import GrantContext, NetworkGuard
from tabwarden_adapters.browser.opened import with_opened
from tabwarden_adapters.browser.whereabouts import Whereabouts, WhereIs, whereabouts


class _Isolated:
    def __init__(
        self,
        guard: NetworkGuard,
        chromium: Chromium,
        base: ChromiumHost,
        destination_allowed: DestinationPolicy,
        app_controls: Mapping[str, AppControl],
        inspect: Inspector | None = None,
        ai: AiGateway | None = None,
    ) -> None:
        self._guard = guard
        self._chromium = chromium
        self._base = base
        self._destination_allowed = destination_allowed
        self._app_controls = app_controls
        self._inspect = inspect
        self._ai = ai
        # What concerns no tab needs no browser context to be made for it.
        self._tabless = {name for name in app_controls if not ACTIONS[name].needs_session}
        self.plain = create_chromium_adapters(
            base, destination_allowed=destination_allowed, inspect=inspect, ai=ai, app_controls=app_controls
        )
        self._made: dict[GrantContext, tuple[ChromiumHost, Mapping[str, ActionAdapter]]] = {}

    async def act(self, name: str, arguments: object, context: CallContext, /) -> object:
        if not self._base.ready or name in self._tabless:
            # Without a browser it says in each case what that means.
            return await self.plain[name](arguments, context)
        with context.trace.child("cdp.target"):
            grant = await self._guard.context(context.caller)
        context.check()
        before = grant.tabs_opened
        result = await self._of(grant)[1][name](arguments, context)
        return await with_opened(result, lambda: grant.opened_since(before), self._base.tab_change)

    def where(self, caller: Caller, session_id: str | None, /) -> Whereabouts | None:
        """See `WhereIs`. Without a context yet there is a blank tab, for as long as there is none."""
        grant = self._guard.existing(caller)
        if grant is None:
            if session_id is not None:
                return None
            return Whereabouts(BLANK, lambda: self._guard.existing(caller) is None)
        return whereabouts(self._of(grant)[0], session_id)

    def _of(self, grant: GrantContext) -> tuple[ChromiumHost, Mapping[str, ActionAdapter]]:
        if grant not in self._made:
            self._made = {one: made for one, made in self._made.items() if not one.ended}
            host = self._guard.host(grant, self._chromium, lambda: self._base.policy_version)
            adapters = create_chromium_adapters(
                host,
                destination_allowed=self._destination_allowed,
                inspect=self._inspect,
                ai=self._ai,
                app_controls=self._app_controls,
            )
            self._made[grant] = (host, adapters)
        return self._made[grant]


async def create_isolated_adapters(
    guard: NetworkGuard,
    chromium: Chromium,
    *,
    policy_version: Callable[[], int],
    destination_allowed: DestinationPolicy,
    app_controls: Mapping[str, AppControl] | None = None,
    inspect: Inspector | None = None,
    ai: AiGateway | None = None,
) -> tuple[Mapping[str, ActionAdapter], WhereIs]:
    """Action name -> adapter, as `create_chromium_adapters` gives them, on a Chromium that `guard` guards;
    and what says where a caller's tabs are.

    A caller's context and its first tab are made by its first call. Raises `ActionError` when Chromium is
    gone.
    """
    base = await ChromiumHost.start(chromium, policy_version=policy_version, prepare=guard.prepare)
    isolated = _Isolated(guard, chromium, base, destination_allowed, app_controls or {}, inspect, ai)
    return {name: partial(isolated.act, name) for name in isolated.plain}, isolated.where
