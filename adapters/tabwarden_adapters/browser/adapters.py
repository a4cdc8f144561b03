"""The actions of the browser, each as an `ActionAdapter`: capture, check, act, check.

The adapters know no CDP: they work on a `BrowserHost`, of which `ChromiumHost` is the first.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import UNSET
from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden.ports import ActionAdapter, CallContext

from tabwarden_adapters.browser.acting import Acted, Deed
from tabwarden_adapters.browser.capture import ContextToken, TabContext
from tabwarden_adapters.browser.inspecting import ControlWindow
from tabwarden_adapters.browser.inventory import TabInfo
from tabwarden_adapters.browser.reading import PageWindow
from tabwarden_adapters.browser.urls import destination, origin, web_href

Allowed = Callable[[str], bool]


class DestinationPolicy(Protocol):
    """May `caller` see and reach `url_href`? Answers at once, from current policy; only True allows.

    `url_href` is an HTTP(S) URL in WHATWG normal form, without credentials or a trailing dot.
    """

    def __call__(self, caller: Caller, url_href: str, /) -> bool: ...


class BrowserHost(Protocol):
    """What the adapters need of a browser. `ChromiumHost` documents each method."""

    @property
    def ready(self) -> bool: ...

    @property
    def policy_version(self) -> int: ...

    async def get_sessions(self) -> list[TabInfo]: ...

    def get_context(self, session_id: str | None) -> TabContext: ...

    def context_current(self, token: ContextToken) -> bool: ...

    def require_current(self, token: ContextToken) -> None: ...

    def dialogs_dismissed(self, session_id: str) -> int: ...

    async def navigate(
        self, url: str, captured: TabContext, allowed: Allowed, context: CallContext
    ) -> TabContext: ...

    async def reload(self, captured: TabContext, allowed: Allowed, context: CallContext) -> TabContext: ...

    async def step(
        self, by: int, captured: TabContext, allowed: Allowed, context: CallContext
    ) -> TabContext: ...

    async def read(self, captured: TabContext, offset: int, context: CallContext) -> PageWindow: ...

    async def inspect(self, captured: TabContext, cursor: int, context: CallContext) -> ControlWindow: ...

    async def act(self, captured: TabContext, deed: Deed, context: CallContext) -> Acted: ...

    async def create_tab(self, url: str | None, allowed: Allowed, context: CallContext) -> str: ...

    async def activate_tab(self, captured: TabContext, context: CallContext) -> None: ...

    async def close_tab(self, captured: TabContext, context: CallContext) -> None: ...


def create_agent_adapters(
    host: BrowserHost, *, destination_allowed: DestinationPolicy
) -> Mapping[str, ActionAdapter]:
    """Action name -> adapter, for every action that this browser can do.

    `destination_allowed` is asked for the captured tab, for each address that a navigation goes through
    and for where it ends.
    """
    adapters = _Adapters(host, destination_allowed)
    return {
        "sessions": adapters.sessions,
        "navigate": adapters.navigate,
        "back": adapters.back,
        "forward": adapters.forward,
        "reload": adapters.reload,
        "read": adapters.read,
        "inspect": adapters.inspect,
        "scroll": adapters.act,
        "click": adapters.act,
        "type": adapters.act,
        "select": adapters.act,
        "check": adapters.act,
        "application:state": adapters.application_state,
        "tabs:create": adapters.tabs_create,
        "tabs:activate": adapters.tabs_activate,
        "tabs:close": adapters.tabs_close,
    }


class _Adapters:
    def __init__(self, host: BrowserHost, destination_allowed: DestinationPolicy) -> None:
        self._host = host
        self._destination_allowed = destination_allowed

    async def sessions(self, arguments: actions.Arguments, context: CallContext) -> list[actions.Session]:
        """A title is text of its page: without the right to the page it is withheld."""
        allowed = self._for(context)
        with context.trace.child("cdp.target"):
            tabs = await self._host.get_sessions()
        context.check()
        return [
            actions.Session(
                id=tab.id,
                title=tab.title if self._reachable(tab.url, allowed) else "",
                foreground=tab.foreground,
            )
            for tab in tabs
        ]

    async def navigate(self, arguments: actions.Navigate, context: CallContext) -> actions.Completed:
        """Where the tab is now does not matter: nothing of it is told or kept."""
        href = web_href(arguments.url)
        allowed = self._for(context)
        if not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        captured = self._capture(arguments.session_id)
        dialogs = self._host.dialogs_dismissed(captured.session_id)
        fresh = await self._host.navigate(href, captured, allowed, context)
        return self._arrived(fresh, dialogs, context)

    async def back(self, arguments: actions.InSession, context: CallContext) -> actions.Completed:
        return await self._step(-1, arguments, context)

    async def forward(self, arguments: actions.InSession, context: CallContext) -> actions.Completed:
        return await self._step(1, arguments, context)

    async def _step(self, by: int, arguments: actions.InSession, context: CallContext) -> actions.Completed:
        captured = self._capture(arguments.session_id)
        dialogs = self._host.dialogs_dismissed(captured.session_id)
        fresh = await self._host.step(by, captured, self._for(context), context)
        return self._arrived(fresh, dialogs, context)

    async def reload(self, arguments: actions.InSession, context: CallContext) -> actions.Completed:
        captured = self._capture(arguments.session_id)
        dialogs = self._host.dialogs_dismissed(captured.session_id)
        fresh = await self._host.reload(captured, self._for(context), context)
        return self._arrived(fresh, dialogs, context)

    async def read(self, arguments: actions.Read, context: CallContext) -> actions.PageText:
        allowed = self._for(context)
        captured = self._capture(arguments.session_id)
        href = self._require_destination(captured.url, allowed)
        window = await self._host.read(captured, arguments.offset, context)
        context.check()
        self._host.require_current(captured.token)
        self._require_destination(captured.url, allowed)
        return actions.PageText(
            text=window.text,
            origin=origin(href),
            untrusted=True,
            next_offset=UNSET if window.next_offset is None else window.next_offset,
            frames_not_read=window.frames_not_read or UNSET,
        )

    async def inspect(self, arguments: actions.Inspect, context: CallContext) -> actions.Controls:
        allowed = self._for(context)
        captured = self._capture(arguments.session_id)
        href = self._require_destination(captured.url, allowed)
        window = await self._host.inspect(captured, arguments.cursor, context)
        context.check()
        self._host.require_current(captured.token)
        self._require_destination(captured.url, allowed)
        return actions.Controls(
            controls=window.controls,
            origin=origin(href),
            untrusted=True,
            next_cursor=UNSET if window.next_cursor is None else window.next_cursor,
            frames_not_read=window.frames_not_read or UNSET,
        )

    async def act(self, arguments: Deed, context: CallContext) -> actions.Completed:
        """Scroll, click, type, select, check. What the page does then is the network guard's to judge."""
        captured = self._capture(arguments.session_id)
        self._require_destination(captured.url, self._for(context))
        acted = await self._host.act(captured, arguments, context)
        context.check()
        return actions.Completed(
            completed=True,
            opened_sessions=list(acted.opened_sessions) or UNSET,
            dialogs_dismissed=acted.dialogs_dismissed or UNSET,
        )

    async def application_state(
        self, arguments: actions.Arguments, context: CallContext
    ) -> actions.ApplicationState:
        with context.trace.child("cdp.target"):
            tabs = await self._host.get_sessions()
        context.check()
        return actions.ApplicationState(
            ready=self._host.ready,
            policy_version=self._host.policy_version,
            active_tab_id=next((tab.id for tab in tabs if tab.foreground), None),
            tab_count=len(tabs),
        )

    async def tabs_create(self, arguments: actions.CreateTab, context: CallContext) -> actions.CompletedIn:
        """CDP has no tab groups, so one that is asked for cannot be given."""
        if arguments.group is not UNSET:
            raise ActionError(Code.NOT_AVAILABLE)
        allowed = self._for(context)
        href = None if arguments.url is UNSET else web_href(arguments.url)
        if href is not None and not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        session_id = await self._host.create_tab(href, allowed, context)
        context.check()
        return actions.CompletedIn(completed=True, session_id=session_id)

    async def tabs_activate(self, arguments: actions.OnSession, context: CallContext) -> actions.CompletedIn:
        captured = self._manageable(arguments.session_id, context)
        await self._host.activate_tab(captured, context)
        context.check()
        return actions.CompletedIn(completed=True, session_id=captured.session_id)

    async def tabs_close(self, arguments: actions.OnSession, context: CallContext) -> actions.Completed:
        captured = self._manageable(arguments.session_id, context)
        await self._host.close_tab(captured, context)
        context.check()
        return actions.Completed(completed=True)

    # ---- checks -------------------------------------------------------------------------------------

    def _for(self, context: CallContext) -> Allowed:
        return lambda href: self._destination_allowed(context.caller, href) is True

    def _capture(self, session_id: object) -> TabContext:
        captured = self._host.get_context(session_id if isinstance(session_id, str) else None)
        if not captured.ready:
            raise ActionError(Code.SESSION_GONE)
        return captured

    def _manageable(self, session_id: str, context: CallContext) -> TabContext:
        """A tab that shows a site is the business of those with a right to it; a blank one is anybody's."""
        captured = self._capture(session_id)
        if captured.url.startswith(("http:", "https:")):
            self._require_destination(captured.url, self._for(context))
        return captured

    def _arrived(self, fresh: TabContext, dialogs: int, context: CallContext) -> actions.Completed:
        context.check()
        if not self._host.context_current(fresh.token):
            raise ActionError(Code.STALE, committed=True)
        dismissed = self._host.dialogs_dismissed(fresh.session_id) - dialogs
        return actions.Completed(completed=True, dialogs_dismissed=dismissed or UNSET)

    @staticmethod
    def _reachable(url: str, allowed: Allowed) -> bool:
        href = destination(url)
        return href is not None and allowed(href)

    @staticmethod
    def _require_destination(url: str, allowed: Allowed) -> str:
        href = destination(url)
        if href is None or not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        return href
