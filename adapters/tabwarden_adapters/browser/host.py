"""The first host behind the adapters: a Chromium that this program runs, with its tabs."""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Self

import trio
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.browser.acting import Actor
from tabwarden_adapters.browser.capture import Binding, Captures, ContextToken, TabContext
from tabwarden_adapters.browser.cdp import SessionEnded
from tabwarden_adapters.browser.cdp.generated import browser, page, target
from tabwarden_adapters.browser.chromium import Chromium
from tabwarden_adapters.browser.contract import Acted, Deed
from tabwarden_adapters.browser.inventory import Inventory, TabInfo, Tabs
from tabwarden_adapters.browser.navigation import Allowed, Navigator, translating
from tabwarden_adapters.browser.popups import Popups
from tabwarden_adapters.browser.reading import call_in_document
from tabwarden_adapters.browser.screenshot import take_shot
from tabwarden_adapters.browser.shot import Shot
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.urls import web_href

Reachable = Callable[[str], Awaitable[bool]]
BLANK = "about:blank"
ASK_AGAIN_S = 1.0  # while an earlier question whether to leave is being answered, no other is heard
SWITCH_S = 0.5  # a switch is told within 20 ms; between two windows there is none


class ChromiumHost:
    """Tabs, captures and page operations of one Chromium. Made by `start`; ends with its Chromium.

    It owns no task: everything that it notes of the browser is noted in the connection's reader. When
    Chromium dies, its tabs are gone and every operation ends with `session-gone` or `unknown-session`.
    """

    def __init__(
        self,
        chromium: Chromium,
        policy_version: Callable[[], int],
        inventory: Tabs,
        *,
        context_id: str | None = None,
        reachable: Reachable | None = None,
    ) -> None:
        """With `context_id`, tabs are opened in that browser context. `reachable` judges where an intended
        navigation's name leads to, and only True lets it begin."""
        self._root = chromium.connection.root
        self._inventory = inventory
        self._captures = Captures(self._inventory, policy_version)
        self._navigator = Navigator(self._captures)
        self._actor = Actor(inventory, self._captures, self._root)
        self._policy_version = policy_version
        self._context_id = context_id
        self._reachable = reachable

    @classmethod
    async def start(
        cls,
        chromium: Chromium,
        *,
        policy_version: Callable[[], int],
        excluded_targets: AbstractSet[str] = frozenset(),
        prepare: Callable[[Inventory], None] = lambda inventory: None,
        reachable: Reachable | None = None,
    ) -> Self:
        """Attach to every tab, open now or later.

        `policy_version` is read at each capture and check; `excluded_targets` are CDP target ids that no
        agent may know of, and may be changed later; `prepare` gets the inventory before it attaches to
        anything. Raises `ActionError` when Chromium is gone.
        """
        inventory = Inventory(chromium.connection, excluded_targets)
        prepare(inventory)
        host = cls(chromium, policy_version, inventory, reachable=reachable)
        with translating():
            # A navigation that turns out to be a download must not leave a file.
            await chromium.connection.root.call(browser.set_download_behavior(behavior="deny"))
            await inventory.start()
        return host

    # ---- captures ---------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """True while Chromium answers."""
        return self._root.ended is None

    @property
    def policy_version(self) -> int:
        """The policy's current version."""
        return self._policy_version()

    async def get_sessions(self) -> list[TabInfo]:
        """The open tabs; none when Chromium is gone."""
        try:
            return await self._inventory.infos()
        except SessionEnded:
            return []

    def get_context(self, session_id: str | None) -> TabContext:
        """Capture a tab, or the foreground tab. Raises `ActionError` with `unknown-session`."""
        return self._captures.capture(self._inventory.find(session_id))

    def context_current(self, token: ContextToken) -> bool:
        """True while the capture is what is there."""
        return self._captures.current(token)

    def require_current(self, token: ContextToken) -> None:
        """Raise `ActionError` with `stale` or `session-gone` unless `context_current`."""
        self._captures.require(token)

    @property
    def captures(self) -> Captures:
        """Who captures, for those that look into a captured tab."""
        return self._captures

    def dialogs_dismissed(self, session_id: str) -> int:
        """Dialogs of a tab dismissed so far."""
        return self._inventory.find(session_id).dialogs_dismissed

    def may_act(self, captured: TabContext) -> bool:
        """True when agents may do more than read in this tab."""
        return self._inventory.may_act(self._inventory.find(captured.session_id))

    def tab(self, session_id: str | None) -> Tab:
        """An open tab, or the one in front. Raises `ActionError` with `unknown-session`."""
        return self._inventory.find(session_id)

    def tabs(self) -> list[Tab]:
        """The open tabs that answer."""
        return self._inventory.tabs()

    async def tab_change(self) -> None:
        """Return after the next opening, closing or showing of a tab."""
        await self._inventory.change()

    # ---- page operations ----------------------------------------------------------------------------

    async def navigate(
        self, url: str, captured: TabContext, allowed: Allowed, context: CallContext
    ) -> TabContext:
        """See `Navigator.navigate`."""
        with context.trace.child("cdp.page"):
            self._require_actable(captured)
            await self._require_reachable(url, allowed)
            return await self._go(captured, lambda: self._navigator.navigate(url, captured, allowed, context))

    async def reload(self, captured: TabContext, allowed: Allowed, context: CallContext) -> TabContext:
        """See `Navigator.reload`."""
        with context.trace.child("cdp.page"):
            return await self._go(captured, lambda: self._navigator.reload(captured, allowed, context))

    async def step(self, by: int, captured: TabContext, allowed: Allowed, context: CallContext) -> TabContext:
        """See `Navigator.step`."""
        with context.trace.child("cdp.page"):
            return await self._go(captured, lambda: self._navigator.step(by, captured, allowed, context))

    async def _go(self, captured: TabContext, load: Callable[[], Awaitable[TabContext]]) -> TabContext:
        """`load`, and name the tabs that the page has opened meanwhile. When one of them is in front of it
        now, that is no switch of tabs: the fresh capture is one in the background."""
        tab = self._require_actable(captured)
        popups = Popups(tab, self._inventory, self._root)
        try:
            fresh = await load()
            opened = await popups.opened()
        finally:
            popups.close()
        token, front = fresh.token, self._inventory.foreground
        if front is not None and front in opened:
            token = replace(token, activation=None)
        return replace(
            fresh, token=token, foreground=front is tab, opened=tuple(popup.id for popup in opened)
        )

    async def run(
        self, captured: TabContext, script: str, arguments: Sequence[Any], context: CallContext
    ) -> object:
        """See `reading.call_in_document`; the first argument is the captured address."""
        with context.trace.child("cdp.runtime"):
            binding = Binding(self._captures, captured.token, context)
            return await call_in_document(binding, script, *arguments)

    async def shot(self, captured: TabContext, texts: bool, context: CallContext) -> Shot:
        """See `screenshot.take_shot`."""
        with context.trace.child("cdp.page"):
            binding = Binding(self._captures, captured.token, context)
            return await take_shot(binding, captured.url, self._inventory.change, texts=texts)

    async def act(self, captured: TabContext, deed: Deed, context: CallContext) -> Acted:
        """See `Actor.act`."""
        with context.trace.child("cdp.input"):
            self._require_actable(captured)
            return await self._actor.act(captured, deed, context)

    # ---- tabs ---------------------------------------------------------------------------------------

    async def create_tab(self, url: str | None, allowed: Allowed, context: CallContext) -> str:
        """Open a tab, at `url` if given, and return its id. A tab whose load fails is closed again.

        Raises what `navigate` raises.
        """
        with context.trace.child("cdp.target"), translating():
            context.check()
            if url is not None:
                await self._require_reachable(url, allowed)
                context.check()
            before = self._inventory.foreground
            context.effects_begin()
            # A target that is created with its address sends the request before anybody can judge it.
            created = await self._root.call(
                target.create_target(url=BLANK, browser_context_id=self._context_id)
            )
            done = False
            try:
                tab = await self._inventory.opened(created.target_id)
                await self._gone_behind(before, tab)
                if url is not None:
                    await self._navigator.navigate(url, self._captures.capture(tab), allowed, context)
                context.effects_done()
                context.check()
                done = True
            finally:
                if not done:
                    self._root.post(target.close_target(target_id=created.target_id))
            return tab.id

    async def activate_tab(self, captured: TabContext, context: CallContext) -> None:
        """Bring a tab to the foreground and wait until it is there."""
        with context.trace.child("cdp.target"), translating():
            context.check()
            tab = self._require_actable(captured)
            before = self._inventory.foreground
            context.effects_begin()
            await self._root.call(target.activate_target(target_id=tab.target_id))
            context.check()
            while self._inventory.foreground is not tab:
                if tab.ended is not None:
                    raise ActionError(Code.SESSION_GONE, committed=None)
                await self._inventory.change()
            context.effects_done()
            await self._gone_behind(before, tab)

    async def close_tab(self, captured: TabContext, context: CallContext) -> None:
        """Close a tab and wait until it is gone.

        Raises `ActionError` with `conflict` for the last tab (its end would be the browser's) and for one
        whose page asks to stay.
        """
        with context.trace.child("cdp.target"), translating():
            context.check()
            tab = self._require_actable(captured)
            if len(self._inventory.tabs()) < 2:
                raise ActionError(Code.CONFLICT)
            refusals = tab.refusals
            was_in_front = tab is self._inventory.foreground
            context.effects_begin()
            # Not `Target.closeTarget`: that does not ask the page, and unsaved work would be lost. It is
            # not waited for either: the answer may never come, or come while the tab stays.
            tab.session.post(page.close())
            while not tab.session.ended_for_good:
                seen = tab.version
                if tab.refusals > refusals:
                    raise ActionError(Code.CONFLICT)
                with trio.move_on_after(ASK_AGAIN_S) as waited:
                    await tab.change(seen)
                if waited.cancelled_caught:
                    tab.session.post(page.close())
            context.effects_done()
            if was_in_front:
                # An opener may only now tell that it had gone behind, and then that it is back.
                with trio.move_on_after(SWITCH_S):
                    while (front := self._inventory.foreground) is None or front.shown < tab.shown:
                        await self._inventory.change()

    def _require_actable(self, captured: TabContext) -> Tab:
        tab = self._captures.require(captured.token)
        if not self._inventory.may_act(tab):
            raise ActionError(Code.TARGET_DENIED)
        return tab

    async def _require_reachable(self, url: str, allowed: Allowed) -> None:
        href = web_href(url)
        # No name is looked up that the agent may not go to: the look-up itself would tell somebody.
        if not allowed(href) or (self._reachable is not None and await self._reachable(href) is not True):
            raise ActionError(Code.DESTINATION_DENIED)

    async def _gone_behind(self, before: Tab | None, tab: Tab) -> None:
        """Wait until the tab that was in front has noticed: what it says later would look like news."""
        with trio.move_on_after(SWITCH_S):
            while before is not None and before is not tab and before.visible:
                await self._inventory.change()
