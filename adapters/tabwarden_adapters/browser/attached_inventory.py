"""The tabs of somebody else's Chromium, less those that its owner keeps from agents (CDP domain Target).

Nothing is attached by itself: Chromium tells of each new target, the owner is asked, and only what it does
not exclude is attached to. Of the others nothing is kept but their ids, and nothing is ever sent to them.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Protocol

import trio
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser.cdp import CdpError, Connection
from tabwarden_adapters.browser.cdp.generated import target
from tabwarden_adapters.browser.inventory import ATTACH_S, PAGES, Inventory
from tabwarden_adapters.browser.tab import Tab

NEW_S = 0.5  # a tab is attached and known within some 20 ms


class Excluding(Protocol):
    """Asks for the CDP target ids that no agent may ever know of. None: nobody can say, so all of them."""

    async def __call__(self) -> Container[str] | None: ...


class Everything:
    """Every target."""

    def __contains__(self, target_id: object, /) -> bool:
        return True


class AttachedInventory(Inventory):
    """`await start()`, then run `follow` in a nursery. Before the owner has answered, there are no tabs."""

    def __init__(self, connection: Connection, excluding: Excluding) -> None:
        super().__init__(connection, Everything())
        self._excluding = excluding
        self._existing: dict[str, None] = {}  # target ids, in the order in which they came
        self._attaching: set[str] = set()
        self._hidden: set[str] = set()
        self._news = trio.Event()
        self._asking = trio.Lock()

    async def start(self) -> None:
        """Find the open tabs. Raises `CdpError`."""
        root = self._connection.root
        root.on(target.AttachedToTarget, self._attached)
        root.on(target.TargetCreated, self._created)
        root.on(target.TargetDestroyed, self._destroyed)
        root.on_end = self._over
        await root.call(target.set_discover_targets(discover=True, filter=PAGES))
        await self.refresh()
        with trio.move_on_after(ATTACH_S):
            # A tab whose renderer hangs must not keep the others from being served.
            while self._attaching or any(not tab.known for tab in self._tabs.values()):
                await self._changes.park()

    async def follow(self) -> None:
        """Ask about each later tab as it comes, until the connection ends."""
        while True:
            await self._news.wait()
            if self._connection.root.ended is not None:
                return
            self._news = trio.Event()
            await self.refresh()

    async def refresh(self) -> None:
        """Ask the owner anew, and attach to what it lets agents know of. Never raises but for cancellation.

        While it cannot say, all tabs are unknown to agents; those that agents act in stay guarded.
        """
        async with self._asking:
            try:
                excluded = await self._excluding()
            except Exception:
                excluded = None  # its own failure is no reason to show anything
            self._excluded = Everything() if excluded is None else excluded
            if excluded is not None:
                for tab in list(self._tabs.values()):
                    if tab.target_id in excluded and tab.session.id is not None:
                        self._connection.root.post(target.detach_from_target(session_id=tab.session.id))
                new = [one for one in self._existing if one not in excluded and self._attach(one)]
                self._settle()
                with trio.move_on_after(NEW_S):  # what came just now is there for whoever asks next
                    while any(self._coming(target_id) for target_id in new):
                        await self._changes.park()
            self._settle()

    def _coming(self, target_id: str) -> bool:
        tab = self._tabs.get(target_id)
        return target_id in self._attaching or (tab is not None and not tab.known and tab.ended is None)

    def _attach(self, target_id: str) -> bool:
        if target_id in self._tabs or target_id in self._attaching:
            return False
        self._attaching.add(target_id)

        def answered(answer: target.AttachToTargetResult | CdpError) -> None:
            # Attached or gone: its event came before this.
            self._attaching.discard(target_id)
            self._wake()

        # Not awaited: a call that is cancelled must not leave a session that nobody knows of.
        self._connection.root.ask(target.attach_to_target(target_id=target_id, flatten=True), answered)
        return True

    def _created(self, event: target.TargetCreated) -> None:
        info = event.target_info
        if info.type == "page" and not info.subtype:
            self._existing[info.target_id] = None
            self._news.set()

    def _over(self) -> None:
        self._news.set()

    def _destroyed(self, event: target.TargetDestroyed) -> None:
        self._existing.pop(event.target_id, None)

    def exists(self, session_id: str) -> bool:
        """Whether the tab with this id is still open, whoever may know of it."""
        return any(tab.id == session_id for tab in self._tabs.values() if not tab.session.ended_for_good)

    # ---- tabs that a person has to herself ----------------------------------------------------------

    @contextmanager
    def hidden(self, tab: Tab) -> Iterator[None]:
        """Agents know nothing of `tab`, nor of what it opens, while the block runs; afterwards all that they
        captured or numbered there is stale. Raises `ActionError` with `browser-management-busy`."""
        if tab.target_id in self._hidden or tab.claimed:
            raise ActionError(Code.BUSY)
        self._hidden.add(tab.target_id)
        self._settle()
        tab.wake()
        try:
            yield
        finally:
            self._hidden.discard(tab.target_id)
            tab.forget()
            self._settle()

    def _secret(self, tab: Tab) -> bool:
        return super()._secret(tab) or tab.target_id in self._hidden or tab.opener_id in self._hidden
