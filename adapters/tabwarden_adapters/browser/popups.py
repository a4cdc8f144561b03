"""Tabs that an action makes its page open (CDP domains Page and Target)."""

from typing import Final

import trio

from tabwarden_adapters.browser.cdp import CdpError, Session
from tabwarden_adapters.browser.cdp.generated import page, target
from tabwarden_adapters.browser.inventory import PAGES, Tabs
from tabwarden_adapters.browser.tab import Tab

KNOWN_S: Final = 3.0  # a new tab is known within some 50 ms, on a busy machine too
BEHIND_S: Final = 0.3  # a tab that goes behind says so within 20 ms; one behind a window never does


class Popups:
    """Notes what `tab` opens until `close`. `root` is the browser's own session."""

    def __init__(self, tab: Tab, tabs: Tabs, root: Session) -> None:
        self._tab = tab
        self._tabs = tabs
        self._root = root
        self._before = frozenset(known.target_id for known in tabs.tabs())
        self.asked = False  # the page has asked for a window: it may come to the front at any moment
        self._undo = tab.session.on(page.WindowOpen, self._asked)

    def _asked(self, event: page.WindowOpen) -> None:
        self.asked = True

    def close(self) -> None:
        """Note nothing more."""
        self._undo()

    async def opened(self) -> list[Tab]:
        """The tabs that came of it, as far as agents may know of them, once they can be used."""
        if not self.asked:
            return []
        try:
            infos = (await self._root.call(target.get_targets(filter=PAGES))).target_infos
        except CdpError:
            return []
        found = [
            info.target_id
            for info in infos
            if info.opener_id == self._tab.target_id and info.target_id not in self._before
        ]
        with trio.move_on_after(KNOWN_S):
            for target_id in found:
                await self._tabs.opened(target_id)
        with trio.move_on_after(BEHIND_S):
            while self._tab.visible and self._in_front(found):
                await self._tabs.change()  # what it says later of going behind would look like news
        return [tab for tab in self._tabs.tabs() if tab.target_id in found]

    def _in_front(self, found: list[str]) -> bool:
        front = self._tabs.foreground
        return front is not None and front.target_id in found
