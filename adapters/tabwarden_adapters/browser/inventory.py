"""The open tabs that agents may know of, each under a UUID for its life, and which one is shown."""

import uuid
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import trio
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser.cdp import CommandFailed, Connection, ReplyUnreadable, Session
from tabwarden_adapters.browser.cdp.generated import runtime, target
from tabwarden_adapters.browser.tab import MAX_ADDRESS, Tab
from tabwarden_adapters.browser.text import TITLE_CHARACTERS, cut_title

ATTACH_S = 10.0  # the first tabs of a starting browser
TITLES = 16_000  # characters of all titles: so that 200 tabs with long ones can still be listed in one reply
TOGETHER = 1_000_000  # characters: of so much, and no more, Chromium's answer may be made at once
PAGES = [target.FilterEntry(type="page")]  # no workers, no `browser_ui`, no tab or browser targets


@dataclass(frozen=True, slots=True)
class TabInfo:
    """What is listed of a tab. `url` is for judging only and never goes to an agent."""

    id: str
    title: str
    foreground: bool
    url: str


class Tabs(Protocol):
    """Tabs as an agent's operations see them: the whole `Inventory`, or a part of it."""

    @property
    def foreground(self) -> Tab | None: ...

    def tabs(self) -> list[Tab]: ...

    async def infos(self) -> list[TabInfo]: ...

    def find(self, session_id: str | None) -> Tab: ...

    def by_target(self, target_id: str) -> Tab | None: ...

    def may_act(self, tab: Tab) -> bool: ...

    async def opened(self, target_id: str) -> Tab: ...

    async def change(self) -> None: ...


class Inventory:
    """Attaches to every page target, popups before they run. `excluded`: target ids that do not exist for
    agents; the owner may change the set."""

    def __init__(self, connection: Connection, excluded: Container[str]) -> None:
        self._connection = connection
        self._excluded = excluded
        self._tabs: dict[str, Tab] = {}  # by target id
        self._showings = 0
        self._foreground: Tab | None = None
        self._fronts: dict[str | None, Tab] = {}  # by browser context: each has windows of its own
        self._changes = trio.lowlevel.ParkingLot()
        self.kinds = PAGES  # what is attached to; the owner may add more, and look after those itself
        # Told of each new tab before anything of it runs.
        self.on_tab: Callable[[Tab], None] = lambda tab: None

    async def start(self) -> None:
        """Find the open tabs and follow all later ones. Raises `CdpError`."""
        root = self._connection.root
        root.on(target.AttachedToTarget, self._attached)
        await root.call(
            target.set_auto_attach(
                auto_attach=True, wait_for_debugger_on_start=True, flatten=True, filter=self.kinds
            )
        )
        with trio.move_on_after(ATTACH_S):
            # A tab whose renderer hangs must not keep the others from being served.
            while any(not tab.known for tab in self._tabs.values()):
                await self._changes.park()

    def tabs(self) -> list[Tab]:
        """Open tabs that answer, in the order in which they were opened."""
        return [tab for tab in self._tabs.values() if tab.ready and not self._secret(tab)]

    def _secret(self, tab: Tab) -> bool:
        """True for a tab that agents may not know of."""
        return tab.target_id in self._excluded

    async def infos(self) -> list[TabInfo]:
        """What `sessions` answers with. Raises `CdpError`.

        Titles are asked for: Chromium tells no change of them (`Target.targetInfoChanged` comes before the
        title is read). The browser itself answers, however busy the pages are.
        """
        titles = await self._titles()
        front = self.foreground
        return [
            TabInfo(tab.id, titles.get(tab.target_id, ""), tab is front, tab.document.url)
            for tab in self.tabs()
            if tab.document is not None
        ]

    async def _titles(self) -> dict[str, str]:
        """By target id. Addresses of up to 2 MB come along: where they are long, one after another."""
        root = self._connection.root
        most = min(TITLE_CHARACTERS, TITLES // max(1, len(self._tabs)))
        lengths = (len(tab.document.url) or MAX_ADDRESS for tab in self.tabs() if tab.document is not None)
        if sum(lengths) < TOGETHER:
            try:
                found = await root.call(target.get_targets(filter=PAGES))
            except ReplyUnreadable:
                pass  # tabs that agents may not know of
            else:
                return {info.target_id: cut_title(info.title, most) for info in found.target_infos}
        told = []
        for tab in self.tabs():
            with suppress(CommandFailed, ReplyUnreadable):  # closed meanwhile
                one = await root.call(target.get_target_info(target_id=tab.target_id))
                told.append((tab, tab.navigation, cut_title(one.target_info.title, most)))
        # A title must not be judged by the address of a later document.
        return {tab.target_id: title for tab, seen, title in told if tab.navigation == seen}

    @property
    def foreground(self) -> Tab | None:
        """The tab in front, or None when that is none of ours to know."""
        front = self._foreground
        return front if front is not None and front in self.tabs() else None

    def front(self, context_id: str | None) -> Tab | None:
        """The tab in front among those of one browser context."""
        tab = self._fronts.get(context_id)
        return tab if tab is not None and tab in self.tabs() else None

    def may_act(self, tab: Tab) -> bool:
        """True when agents may do more than read there: here, everywhere."""
        return True

    def find(self, session_id: str | None) -> Tab:
        """The tab with this id, or the foreground tab.

        Raises `ActionError` with `unknown-session`: closed, never known, excluded, or nothing in front.
        """
        if session_id is None:
            front = self.foreground
            if front is None:
                raise ActionError(Code.UNKNOWN_SESSION)
            return front
        for tab in self.tabs():
            if tab.id == session_id:
                return tab
        raise ActionError(Code.UNKNOWN_SESSION)

    def by_target(self, target_id: str) -> Tab | None:
        """The tab of a target, ready or not."""
        return self._tabs.get(target_id)

    async def opened(self, target_id: str) -> Tab:
        """Wait until a target that was just created is attached and known."""
        while (tab := self._tabs.get(target_id)) is None or not tab.known:
            await self._changes.park()
        return tab

    async def change(self) -> None:
        """Return after the next opening, closing or showing of a tab."""
        await self._changes.park()

    def _attached(self, event: target.AttachedToTarget) -> None:
        info = event.target_info
        session = self._connection.session(event.session_id)
        if session is None or info.type != "page" or info.subtype:
            return
        if info.target_id in self._excluded:
            self._let_go(session, event)
            return
        tab = Tab(str(uuid.uuid4()), info.target_id, session, info.opener_id)
        tab.on_shown = self._shown
        tab.context_id = info.browser_context_id
        self.on_tab(tab)
        self._tabs[info.target_id] = tab
        tab.prepare(paused=event.waiting_for_debugger, ended=lambda: self._ended(tab), ready=self._wake)

    def _let_go(self, session: Session, event: target.AttachedToTarget) -> None:
        if event.waiting_for_debugger:
            session.post(runtime.run_if_waiting_for_debugger())
        self._connection.root.post(target.detach_from_target(session_id=event.session_id))

    def _ended(self, tab: Tab) -> None:
        if tab.session.ended_for_good and self._tabs.get(tab.target_id) is tab:
            del self._tabs[tab.target_id]
        self._settle()

    def _shown(self, tab: Tab, came: bool, hidden: bool) -> None:
        if came:
            self._showings += 1
            tab.shown = self._showings
        if hidden and tab is self._fronts.get(tab.context_id):
            tab.activation += 1  # away and back between two reports
        self._settle()

    def _settle(self) -> None:
        """Of all visible tabs (there may be several windows) the one shown last is the foreground."""
        shown = sorted((tab for tab in self._tabs.values() if tab.visible), key=lambda tab: tab.shown)
        self._foreground = shown[-1] if shown else None
        fronts = {tab.context_id: tab for tab in shown}
        for context_id, front in fronts.items():
            if front is not self._fronts.get(context_id):
                front.activation += 1
        self._fronts = fronts
        self._wake()

    def _wake(self) -> None:
        self._changes.unpark_all()
