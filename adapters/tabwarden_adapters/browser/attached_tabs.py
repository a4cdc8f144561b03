"""Tabs of somebody else's Chromium, for whoever asks people about what agents want to do there."""

from collections.abc import Iterator
from contextlib import contextmanager

from tabwarden.errors import ActionError
from tabwarden.model import Caller

from tabwarden_adapters.browser.attached_guard import AttachedGuard
from tabwarden_adapters.browser.attached_inventory import AttachedInventory
from tabwarden_adapters.browser.capture import TabContext
from tabwarden_adapters.browser.host import ChromiumHost
from tabwarden_adapters.browser.prospect import Prospect, Prospects
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.whereabouts import Whereabouts, whereabouts


class AttachedTabs:
    """Captures tabs, as an agent may know of them at this moment. Implements `WhereIs`."""

    def __init__(self, host: ChromiumHost, inventory: AttachedInventory, guard: AttachedGuard) -> None:
        self._host = host
        self._inventory = inventory
        self._guard = guard
        self._prospects = Prospects(host.captures)

    def __call__(self, caller: Caller, session_id: str | None, /) -> Whereabouts | None:
        return whereabouts(self._host, session_id)

    async def refresh(self) -> None:
        """Have the owner asked anew which tabs agents may know of."""
        await self._inventory.refresh()

    def tab(self, session_id: str | None) -> "AttachedTab | None":
        """The tab with this id, or the one in front for None; None when there is none."""
        try:
            captured = self._host.get_context(session_id)
            tab = self._host.tab(captured.session_id)
        except ActionError:
            return None
        return AttachedTab(self, captured, tab)

    def every(self) -> "list[AttachedTab]":
        """All that answer, as agents may know of them at this moment."""
        captured = (self.tab(tab.id) for tab in self._host.tabs())
        return [one for one in captured if one is not None]

    def exists(self, session_id: str) -> bool:
        """Whether the tab with this id is still open, whoever may know of it."""
        return self._inventory.exists(session_id)

    def current(self, captured: TabContext) -> bool:
        """For its tabs: True while the capture is what is there."""
        return self._host.context_current(captured.token)

    @property
    def prospects(self) -> Prospects:
        """For its tabs."""
        return self._prospects

    @contextmanager
    def alone(self, tab: Tab) -> Iterator[None]:
        """For its tabs: see `AttachedTab.alone`."""
        with self._inventory.hidden(tab):
            # Where a person signs in is no business of the grant that the tab was bound to.
            self._guard.release(tab)
            yield


class AttachedTab:
    """One captured tab. What is looked up there is the page's word; None is not known."""

    def __init__(self, tabs: AttachedTabs, captured: TabContext, tab: Tab) -> None:
        self._tabs = tabs
        self._captured = captured
        self._tab = tab

    @property
    def url(self) -> str:
        """The captured address."""
        return self._captured.url

    @property
    def session_id(self) -> str:
        """By which agents name it."""
        return self._captured.session_id

    def current(self) -> bool:
        """True while the same document is there, in front without a break if it was."""
        return self._tabs.current(self._captured)

    async def element(self, selector: str) -> Prospect:
        """See `Prospects.element`."""
        return await self._tabs.prospects.element(self._captured, selector)

    async def entry(self, by: int) -> str | None:
        """See `Prospects.entry`."""
        return await self._tabs.prospects.entry(self._captured, by)

    async def secrets(self) -> bool | None:
        """See `Prospects.secrets`."""
        return await self._tabs.prospects.secrets(self._captured)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No agent knows of the tab while the block runs, no grant binds it, and all that was captured of it
        is stale afterwards. Raises `ActionError` with `browser-management-busy`."""
        with self._tabs.alone(self._tab):
            yield
