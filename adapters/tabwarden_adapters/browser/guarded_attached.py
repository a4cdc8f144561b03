"""A Chromium that somebody else runs, with its guard and its actions, put together for a broker."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
import trio
from msgspec import UNSET
from tabwarden import actions
from tabwarden.actions import ACTIONS
from tabwarden.ports import ActionAdapter, CallContext, Inspector

from tabwarden_adapters.browser.attached import attached_chromium
from tabwarden_adapters.browser.attached_guard import AttachedGuard
from tabwarden_adapters.browser.attached_inventory import AttachedInventory, Excluding
from tabwarden_adapters.browser.attached_tabs import AttachedTabs
from tabwarden_adapters.browser.body_inspection import body_inspection
from tabwarden_adapters.browser.cdp import CdpError, Session
from tabwarden_adapters.browser.cdp.generated import browser
from tabwarden_adapters.browser.contract import AiGateway, AppControl
from tabwarden_adapters.browser.grant_rules import NetworkPolicy
from tabwarden_adapters.browser.guarded import GuardedBrowser
from tabwarden_adapters.browser.host import ChromiumHost
from tabwarden_adapters.browser.navigation import translating
from tabwarden_adapters.browser.shared import shared_adapters

# Internal scopes of what can make a page save a file. Nothing of it is text of a page.
_ACTS: Final = ("browser:navigate", "browser:interact", "tabs:")

LAST_S = 1.0  # for what is answered within a millisecond


@dataclass(frozen=True, slots=True)
class AttachedBrowser(GuardedBrowser):
    """As `GuardedBrowser`. `tabs` is for whoever asks people."""

    tabs: AttachedTabs

    async def wait_ended(self) -> None:
        """Return when its connection has ended."""
        await self.chromium.connection.root.wait_ended()


@asynccontextmanager
async def guarded_attached(
    nursery: trio.Nursery,
    port: int,
    excluding: Excluding,
    policy: NetworkPolicy,
    policy_version: Callable[[], int],
    *,
    app_controls: Mapping[str, AppControl] | None = None,
    inspect: Inspector | None = None,
    ai: AiGateway | None = None,
) -> AsyncIterator[AttachedBrowser]:
    """Attach to the Chromium at `port` while the block runs; agents act in the person's own tabs, less those
    that `excluding` names. Afterwards the tabs are as they are, and nothing of ours is in them.

    Raises `ConfigurationError` as `attached_chromium` and `create_agent_adapters` do, `ActionError` when the
    browser ends at once.
    """
    async with attached_chromium(nursery, port) as chromium:
        guard = AttachedGuard(policy, bodies=await body_inspection(nursery, inspect))
        inventory = AttachedInventory(chromium.connection, excluding)
        guard.attach(chromium)(inventory)
        with translating():
            await inventory.start()
        host = ChromiumHost(chromium, policy_version, inventory, reachable=guard.reachable)
        plain = shared_adapters(
            guard, host, policy.destination_allowed, app_controls=app_controls, inspect=inspect, ai=ai
        )
        attached = _Attached(plain, host, inventory, _Downloads(chromium.connection.root))
        made = {name: partial(attached.act, name) for name in plain}
        tabs = AttachedTabs(host, inventory, guard)
        nursery.start_soon(inventory.follow)
        try:
            yield AttachedBrowser(chromium, guard, made, tabs, tabs)
        finally:
            guard.close()
            # An answer to what is sent last: with the connection's end Chromium lets go what is still held.
            with trio.move_on_after(LAST_S, shield=True), suppress(CdpError):
                await chromium.connection.root.call(browser.get_version())


class _Attached:
    """Around the actions: which tabs there are is asked before each, and again before its result leaves."""

    def __init__(
        self,
        plain: Mapping[str, ActionAdapter],
        host: ChromiumHost,
        inventory: AttachedInventory,
        downloads: "_Downloads",
    ) -> None:
        self._plain = plain
        self._host = host
        self._inventory = inventory
        self._downloads = downloads

    async def act(self, name: str, arguments: Any, context: CallContext, /) -> object:
        spec = ACTIONS[name]
        captured = None
        if spec.needs_session:
            # What was decided about is what is there now: from here on it is this document of this tab.
            captured = self._host.get_context(None if arguments.session_id is UNSET else arguments.session_id)
            arguments = msgspec.structs.replace(arguments, session_id=captured.session_id)
        await self._inventory.refresh()
        context.check()
        if captured is not None:
            self._host.require_current(captured.token)
        if spec.internal_scope.startswith(_ACTS):
            with self._downloads.denied():
                return await self._plain[name](arguments, context)
        result = await self._plain[name](arguments, context)
        await self._inventory.refresh()
        context.check()
        if captured is None:
            return self._listed(result)
        self._host.tab(captured.session_id)  # it may have become private meanwhile
        return result

    def _listed(self, result: object) -> object:
        """Of `sessions`, without what was taken from agents meanwhile."""
        if not isinstance(result, list):
            return result
        still = {tab.id for tab in self._host.tabs()}
        return [one for one in result if not isinstance(one, actions.Session) or one.id in still]


class _Downloads:
    """No download begins anywhere in the person's profile while an action is under way: Chromium knows no
    narrower switch (CDP, Browser.setDownloadBehavior). In between, and afterwards, it is the person's."""

    def __init__(self, root: Session) -> None:
        self._root = root
        self._denying = 0

    @contextmanager
    def denied(self) -> Iterator[None]:
        self._denying += 1
        if self._denying == 1:
            self._root.post(browser.set_download_behavior(behavior="deny"))
        try:
            yield
        finally:
            self._denying -= 1
            if not self._denying:
                self._root.post(browser.set_download_behavior(behavior="default"))
