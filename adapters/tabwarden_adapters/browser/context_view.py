"""What one grant sees of the open tabs: its own browser context, and what policy shows of the person's."""

from collections.abc import Callable
from dataclasses import replace

from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser.inventory import Inventory, TabInfo
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.urls import destination


class ContextView:
    """Implements `Tabs`. Agents read the person's tabs that `sees` allows, and act in their own only: what
    is done in a tab of the person would be sent round the grant's wall.

    The foreground is the tab in front in the grant's own windows: a person who works in others does not take
    it away.
    """

    def __init__(
        self,
        inventory: Inventory,
        context_id: str,
        person_context: str | None,
        sees: Callable[[str], bool],
    ) -> None:
        self._inventory = inventory
        self._context_id = context_id
        self._person_context = person_context
        self._sees = sees

    @property
    def foreground(self) -> Tab | None:
        """See the class."""
        return self._inventory.front(self._context_id)

    def own(self) -> list[Tab]:
        """Tabs of the grant's own context that answer."""
        return [tab for tab in self._inventory.tabs() if self.may_act(tab)]

    def tabs(self) -> list[Tab]:
        """Its own, and the person's at addresses that it may see; never those of another grant."""
        return [tab for tab in self._inventory.tabs() if self.may_act(tab) or self._shown(tab)]

    async def infos(self) -> list[TabInfo]:
        """See `Inventory.infos`."""
        ids, front = {tab.id for tab in self.tabs()}, self.foreground
        return [
            replace(info, foreground=front is not None and info.id == front.id)
            for info in await self._inventory.infos()
            if info.id in ids
        ]

    def find(self, session_id: str | None) -> Tab:
        """See `Inventory.find`."""
        tab = self.foreground
        if session_id is not None:
            tab = next((tab for tab in self.tabs() if tab.id == session_id), None)
        if tab is None:
            raise ActionError(Code.UNKNOWN_SESSION)
        return tab

    def by_target(self, target_id: str) -> Tab | None:
        """The tab of a target, ready or not."""
        return self._inventory.by_target(target_id)

    def may_act(self, tab: Tab) -> bool:
        """True for tabs of the grant's own context."""
        return tab.context_id == self._context_id

    async def opened(self, target_id: str) -> Tab:
        """See `Inventory.opened`."""
        return await self._inventory.opened(target_id)

    async def change(self) -> None:
        """See `Inventory.change`."""
        await self._inventory.change()

    def _shown(self, tab: Tab) -> bool:
        if self._person_context is None or tab.context_id != self._person_context or tab.document is None:
            return False
        href = destination(tab.document.url)
        return href is not None and self._sees(href) is True
