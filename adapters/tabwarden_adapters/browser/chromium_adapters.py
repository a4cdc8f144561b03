"""Our own Chromium as a host: it comes through the same door as every other one (contract.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET
from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.ports import ActionAdapter, Inspector

from tabwarden_adapters.browser.adapters import create_agent_adapters
from tabwarden_adapters.browser.capture import TabContext
from tabwarden_adapters.browser.contract import (
    Acted,
    AdapterAudit,
    AiGateway,
    AppControl,
    CapturedContext,
    Deed,
    DestinationPolicy,
    Operation,
    SessionInfo,
)
from tabwarden_adapters.browser.host import ChromiumHost
from tabwarden_adapters.browser.shot import Shot
from tabwarden_adapters.browser.urls import web_href


def create_chromium_adapters(
    host: ChromiumHost,
    *,
    destination_allowed: DestinationPolicy,
    inspect: Inspector | None = None,
    ai: AiGateway | None = None,
    audit: AdapterAudit | None = None,
    app_controls: Mapping[str, AppControl] | None = None,
) -> Mapping[str, ActionAdapter]:
    """Action name -> adapter, for every action that this browser can do.

    `destination_allowed` is asked for the captured tab, for each address that a navigation goes through
    and for where it ends. `app_controls` are added to the tab operations of the browser itself. The rest, and
    what it raises: see `create_agent_adapters`.
    """
    callbacks = _Callbacks(host, destination_allowed)
    return create_agent_adapters(
        get_context=callbacks.get_context,
        get_sessions=callbacks.get_sessions,
        context_current=host.context_current,
        navigate=callbacks.navigate,
        history=callbacks.history,
        reload=callbacks.reload,
        shot=callbacks.shot,
        inspect=inspect,
        ai=ai,
        audit=audit,
        app_controls={
            "application:state": callbacks.application_state,
            "tabs:create": callbacks.tabs_create,
            "tabs:activate": callbacks.tabs_activate,
            "tabs:close": callbacks.tabs_close,
            **(app_controls or {}),
        },
        policy_version=lambda: host.policy_version,
    )


@dataclass(frozen=True, slots=True)
class _ChromiumPage:
    """Implements `Page`."""

    host: ChromiumHost
    captured: TabContext

    @property
    def url(self) -> str:
        return self.captured.url

    async def run(self, script: str, arguments: Sequence[Any], operation: Operation, /) -> object:
        return await self.host.run(self.captured, script, arguments, operation)

    async def act(self, deed: Deed, operation: Operation, /) -> Acted:
        return await self.host.act(self.captured, deed, operation)


class _Callbacks:
    """The contract's callbacks, each by one method of the host."""

    def __init__(self, host: ChromiumHost, destination_allowed: DestinationPolicy) -> None:
        self._host = host
        self._destination_allowed = destination_allowed

    def get_context(self, session_id: str | None, /) -> CapturedContext:
        return self._context(self._host.get_context(session_id))

    async def get_sessions(self) -> list[SessionInfo]:
        tabs = await self._host.get_sessions()
        return [SessionInfo(tab.id, tab.title, tab.foreground, tab.url) for tab in tabs]

    async def navigate(self, url: str, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        ours = _ours(captured)
        return self._context(await self._host.navigate(url, ours, operation.allowed, operation))

    async def history(self, by: int, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        return self._context(await self._host.step(by, _ours(captured), operation.allowed, operation))

    async def reload(self, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        return self._context(await self._host.reload(_ours(captured), operation.allowed, operation))

    async def shot(self, captured: CapturedContext, texts: bool, operation: Operation, /) -> Shot:
        return await self._host.shot(_ours(captured), texts, operation)

    async def application_state(
        self, arguments: actions.Arguments, operation: Operation, policy_version: int, /
    ) -> actions.ApplicationState:
        with operation.trace.child("cdp.target"):
            tabs = await self._host.get_sessions()
        return actions.ApplicationState(
            ready=self._host.ready,
            policy_version=policy_version,
            active_tab_id=next((tab.id for tab in tabs if tab.foreground), None),
            tab_count=len(tabs),
        )

    async def tabs_create(
        self, arguments: actions.CreateTab, operation: Operation, policy_version: int, /
    ) -> actions.CompletedIn:
        """CDP has no tab groups, so one that is asked for cannot be given."""
        if arguments.group is not UNSET:
            raise ActionError(Code.NOT_AVAILABLE)

        def allowed(href: str) -> bool:
            return self._destination_allowed(operation.caller, href) is True

        href = None if arguments.url is UNSET else web_href(arguments.url)
        if href is not None and not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        session_id = await self._host.create_tab(href, allowed, operation)
        return actions.CompletedIn(completed=True, session_id=session_id)

    async def tabs_activate(
        self, arguments: actions.OnSession, operation: Operation, policy_version: int, /
    ) -> actions.CompletedIn:
        await self._host.activate_tab(_ours(operation.captured), operation)
        return actions.CompletedIn(completed=True, session_id=arguments.session_id)

    async def tabs_close(
        self, arguments: actions.OnSession, operation: Operation, policy_version: int, /
    ) -> actions.Completed:
        await self._host.close_tab(_ours(operation.captured), operation)
        return actions.Completed(completed=True)

    def _context(self, captured: TabContext) -> CapturedContext:
        # A tab behind is not interactive either, but that it is behind is the better answer.
        covered = captured.foreground and not captured.interactive
        return CapturedContext(
            session_id=captured.session_id,
            ready=captured.ready,
            foreground=captured.foreground,
            interactive=self._host.may_act(captured) and not covered,
            token=captured.token,
            policy_version=captured.policy_version,
            page=_ChromiumPage(self._host, captured),
            destination_allowed=self._destination_allowed,
            dialogs_dismissed=self._host.dialogs_dismissed(captured.session_id),
            opened_sessions=captured.opened,
        )


def _ours(captured: CapturedContext | None) -> TabContext:
    page = None if captured is None else captured.page
    if not isinstance(page, _ChromiumPage):
        raise ActionError(Code.FAILURE)
    return page.captured
