"""One tab of somebody else's browser, for a host that can hand over a CDP session of it.

Electron's debugger, CEF, QtWebEngine or a plain Chromium: each has some way to send CDP messages to one page
and to hear its answers and events. That is all that is asked for here; the scripts, the captures and the
input events are the same ones that our own Chromium gets.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import trio
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser.acting import Actor
from tabwarden_adapters.browser.capture import Binding, Captures, ContextToken, TabContext
from tabwarden_adapters.browser.cdp import Connection, Transport
from tabwarden_adapters.browser.cdp.generated import page
from tabwarden_adapters.browser.contract import (
    Acted,
    CapturedContext,
    Deed,
    DestinationPolicy,
    Operation,
    SessionInfo,
)
from tabwarden_adapters.browser.inventory import TabInfo
from tabwarden_adapters.browser.navigation import Navigator, translating
from tabwarden_adapters.browser.reading import call_in_document
from tabwarden_adapters.browser.tab import Tab

ATTACH_S: Final = 10.0  # a page that is busy with its own start
InFront = Callable[[], bool]


class CdpTab:
    """Made by `attach`; ends with its channel. `session_id` is a new UUID, the tab's for its life.

    It needs a CDP session that nobody else uses: a domain has one switch for a session. Dialogs of the page
    are dismissed at once. Tabs that the page opens are the host's to find.
    """

    def __init__(self, connection: Connection, tab: Tab, in_front: InFront) -> None:
        self._connection = connection
        self._tab = tab
        self._tabs = _OneTab(tab, in_front)
        self._captures = Captures(self._tabs, _no_policy)
        self._actor = Actor(self._tabs, self._captures, tab.session)

    @classmethod
    async def attach(
        cls, nursery: trio.Nursery, channel: Transport, *, in_front: InFront = lambda: True
    ) -> Self:
        """Take over a CDP session of one page. Its two tasks run in `nursery`.

        `channel` carries whole CDP messages of this session, in order: `receive`, `send`, `aclose`. While the
        page says that it is visible, `in_front` is asked at each capture and check whether the tab is the one
        in front. Raises `ActionError` when the page does not answer.
        """
        connection = Connection(channel)
        await nursery.start(connection.run)
        with translating():
            frame = (await connection.root.call(page.get_frame_tree())).frame_tree.frame
        made = cls(connection, Tab(str(uuid.uuid4()), frame.id, connection.root, None), in_front)
        await made._tabs.known()
        if not made._tab.known:
            await connection.aclose()
            raise ActionError(Code.SESSION_GONE)
        return made

    @property
    def session_id(self) -> str:
        """The id by which agents name this tab."""
        return self._tab.id

    @property
    def in_front(self) -> bool:
        """True while it is visible, and the host says that it is in front."""
        return self._tabs.foreground is not None

    async def info(self) -> SessionInfo:
        """Its line of the inventory. Raises `ActionError` when it is gone."""
        with translating():
            history = await self._tab.session.call(page.get_navigation_history())
        entry = history.entries[history.current_index]
        return SessionInfo(self.session_id, entry.title, self.in_front, entry.url)

    def context(
        self,
        *,
        destination_allowed: DestinationPolicy,
        policy: object = None,
        policy_version: int | None = None,
        interactive: bool | None = None,
    ) -> CapturedContext:
        """Capture what it shows now. Its token is for `current`; a host that has more to say puts one of its
        own around it. Raises `ActionError` with `session-gone`."""
        captured = self._captures.capture(self._tab)
        return CapturedContext(
            session_id=captured.session_id,
            ready=captured.ready,
            foreground=captured.foreground,
            interactive=interactive,
            token=captured.token,
            policy=policy,
            policy_version=policy_version,
            page=_CdpPage(self, captured),
            destination_allowed=destination_allowed,
            dialogs_dismissed=self._tab.dialogs_dismissed,
        )

    def current(self, token: ContextToken) -> bool:
        """True while nothing has happened in this tab that makes the capture another one."""
        return self._captures.current(token)

    async def navigate(self, url: str, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        """A host's `navigate`: `captured` with the document that the tab has come to, and a new token."""
        return await self._go(captured, operation, lambda go, *rest: go.navigate(url, *rest))

    async def history(self, by: int, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        """A host's `history`."""
        return await self._go(captured, operation, lambda go, *rest: go.step(by, *rest))

    async def reload(self, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        """A host's `reload`."""
        return await self._go(captured, operation, lambda go, *rest: go.reload(*rest))

    async def aclose(self) -> None:
        """Let go of the tab and close the channel. What is under way ends with `session-gone`."""
        await self._connection.aclose()

    async def _go(
        self, captured: CapturedContext, operation: Operation, load: Callable[..., Awaitable[TabContext]]
    ) -> CapturedContext:
        navigator = Navigator(self.held(operation))
        fresh = await load(navigator, self._ours(captured), operation.allowed, operation)
        return replace(
            captured,
            ready=fresh.ready,
            foreground=fresh.foreground,
            token=fresh.token,
            page=_CdpPage(self, fresh),
            dialogs_dismissed=self._tab.dialogs_dismissed,
        )

    def _ours(self, captured: CapturedContext) -> TabContext:
        if not isinstance(captured.page, _CdpPage) or captured.page.tab is not self:
            raise ActionError(Code.FAILURE)
        return captured.page.captured

    # ---- for its pages ------------------------------------------------------------------------------

    def held(self, operation: Operation) -> Captures:
        """Captures that are also held to what the host says."""
        return _HeldCaptures(self._tabs, operation)

    async def run(
        self, captured: TabContext, script: str, arguments: Sequence[Any], operation: Operation
    ) -> object:
        """See `Page.run`."""
        with operation.trace.child("cdp.runtime"):
            binding = Binding(self.held(operation), captured.token, operation)
            return await call_in_document(binding, script, *arguments)

    async def act(self, captured: TabContext, deed: Deed, operation: Operation) -> Acted:
        """See `Page.act`."""
        with operation.trace.child("cdp.input"):
            return await self._actor.act(captured, deed, operation, captures=self.held(operation))


@dataclass(frozen=True, slots=True)
class _CdpPage:
    """Implements `Page`."""

    tab: CdpTab
    captured: TabContext

    @property
    def url(self) -> str:
        return self.captured.url

    async def run(self, script: str, arguments: Sequence[Any], operation: Operation, /) -> object:
        return await self.tab.run(self.captured, script, arguments, operation)

    async def act(self, deed: Deed, operation: Operation, /) -> Acted:
        # Whether something covers the page is the host's to say, and the adapters' to heed.
        return await self.tab.act(replace(self.captured, interactive=True), deed, operation)


class _HeldCaptures(Captures):
    """A capture is current when the tab and the host both say so."""

    def __init__(self, tabs: "_OneTab", operation: Operation) -> None:
        super().__init__(tabs, _no_policy)
        self._operation = operation

    def _why_not(self, token: ContextToken) -> Code | None:
        code = super()._why_not(token)
        if code is None and self._operation.captured is not None and not self._operation.current():
            return Code.STALE
        return code


class _OneTab:
    """Implements `Tabs` for a tab alone."""

    def __init__(self, tab: Tab, in_front: InFront) -> None:
        self._tab = tab
        self._in_front = in_front
        self._was_visible = False
        self._changes = trio.lowlevel.ParkingLot()
        tab.on_shown = self._shown
        tab.prepare(paused=False, ended=self._wake, ready=self._wake)

    async def known(self) -> None:
        """Return when the tab is known, has ended, or takes too long."""
        with trio.move_on_after(ATTACH_S):
            while not self._tab.known and self._tab.ended is None:
                await self._changes.park()

    @property
    def foreground(self) -> Tab | None:
        return self._tab if self._tab.ready and self._tab.visible and self._in_front() is True else None

    def tabs(self) -> list[Tab]:
        return [self._tab] if self._tab.ready else []

    async def infos(self) -> list[TabInfo]:
        return []

    def find(self, session_id: str | None) -> Tab:
        if session_id != self._tab.id or not self._tab.ready:
            raise ActionError(Code.UNKNOWN_SESSION)
        return self._tab

    def by_target(self, target_id: str) -> Tab | None:
        return self._tab if target_id == self._tab.target_id else None

    def may_act(self, tab: Tab) -> bool:
        return True

    async def opened(self, target_id: str) -> Tab:
        # A tab that the page opened is the host's, and never known here: nobody must wait for it.
        return self._tab

    async def change(self) -> None:
        await self._changes.park()

    def _shown(self, tab: Tab, came: bool, hidden: bool) -> None:
        if hidden or (tab.visible and not self._was_visible):
            tab.activation += 1
        self._was_visible = bool(tab.visible)
        self._wake()

    def _wake(self) -> None:
        self._changes.unpark_all()


def _no_policy() -> int:
    """The host's policy is held to by the operation."""
    return 0
