"""Navigating a captured tab on purpose, and following it to the end of its load (CDP domain Page).

Done means: the document that was asked for, or one that it led to by itself, has fired its load event (or
moved within itself, or came back from the back/forward cache), nothing more is on its way, and its address
was judged.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import trio
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.browser.capture import Captures, ContextToken, TabContext, translated
from tabwarden_adapters.browser.cdp import CdpError
from tabwarden_adapters.browser.cdp.generated import page
from tabwarden_adapters.browser.interception import DocumentGuard, judged
from tabwarden_adapters.browser.tab import Start, Tab
from tabwarden_adapters.browser.urls import destination, web_href

Allowed = Callable[[str], bool]

ERROR_PAGE_S = 2.0  # it is built in: it takes some 50 ms


@dataclass(frozen=True, slots=True)
class _Before:
    """What a tab had seen before a navigation of ours."""

    navigation: int
    refusals: int
    started: tuple[Start, ...]

    def loader(self, tab: Tab, kind: str | None) -> str | None:
        """The loader of the first navigation of `kind` since."""
        since = (start for start in tab.started if start not in self.started)
        return next((start.loader_id for start in since if start.kind == kind), None)


class Navigator:
    """Intended navigations. `allowed` judges a `web_href`; a `TabContext` that comes back is a fresh one."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures

    async def navigate(
        self, url: str, captured: TabContext, allowed: Allowed, context: CallContext
    ) -> TabContext:
        """Load an HTTP(S) URL.

        Raises `ActionError`: `invalid-arguments`, `destination-denied`, `navigation-failed` (net error,
        error page, download, nothing to show), `stale`, `session-gone`, `browser-management-busy`.
        """
        href = web_href(url)
        if not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        with self._claimed(captured.token) as tab, translating():
            async with judged(tab, allowed) as guard:
                before = self._begin(captured.token, context)
                reply = await tab.session.call(page.navigate(url=href))
                if guard.denied:
                    raise ActionError(Code.DESTINATION_DENIED, committed=None)
                if reply.error_text:
                    await self._failed(tab, guard, before, reply)
                # No loader: it stayed within the document, which then stays the captured one.
                await _settled(tab, guard, before, ours=reply.loader_id or captured.token.loader_id)
            return self._finish(tab, captured, allowed, context)

    async def reload(self, captured: TabContext, allowed: Allowed, context: CallContext) -> TabContext:
        """Load the same document again; a form is not sent again. Raises as `navigate` does."""
        href = destination(captured.url)
        if href is None or not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        with self._claimed(captured.token) as tab, translating():
            async with judged(tab, allowed, resending=True) as guard:
                before = self._begin(captured.token, context)
                await tab.session.call(page.reload(loader_id=captured.token.loader_id))
                await _settled(tab, guard, before, kind="reload")
            return self._finish(tab, captured, allowed, context)

    async def step(self, by: int, captured: TabContext, allowed: Allowed, context: CallContext) -> TabContext:
        """Go `by` entries (-1: back, 1: forward) in the tab's history.

        Raises as `navigate` does; `not-available` when there is no such entry, `navigation-failed` when
        the tab ended at another entry.
        """
        with self._claimed(captured.token) as tab, translating():
            entries = await tab.session.call(page.get_navigation_history())
            index = entries.current_index + by
            self._check(captured.token, context)
            if not 0 <= index < len(entries.entries):
                raise ActionError(Code.NOT_AVAILABLE)
            entry = entries.entries[index]
            href = destination(entry.url)
            if href is None or not allowed(href):
                raise ActionError(Code.DESTINATION_DENIED)

            async def arrived() -> bool:
                now = await tab.session.call(page.get_navigation_history())
                return now.entries[now.current_index].id == entry.id

            async with judged(tab, allowed, resending=True) as guard:
                before = self._begin(captured.token, context)
                await tab.session.call(page.navigate_to_history_entry(entry_id=entry.id))
                await _settled(tab, guard, before, arrived=arrived)
            if not await arrived():
                raise ActionError(Code.NAVIGATION_FAILED, committed=True)
            return self._finish(tab, captured, allowed, context)

    async def _failed(
        self, tab: Tab, guard: DocumentGuard, before: _Before, reply: page.NavigateResult
    ) -> NoReturn:
        """An aborted load leaves the tab as it was; every other one ends at an error page that is still to
        come, and that would make the next capture stale."""
        if reply.error_text != "net::ERR_ABORTED":
            with trio.move_on_after(ERROR_PAGE_S):
                await _settled(tab, guard, before, ours=reply.loader_id)
        raise ActionError(Code.NAVIGATION_FAILED, committed=None)

    @contextmanager
    def _claimed(self, token: ContextToken) -> Iterator[Tab]:
        tab = self._captures.require(token)
        if tab.claimed:
            raise ActionError(Code.BUSY)
        tab.claimed = True
        try:
            yield tab
        finally:
            tab.claimed = False

    def _check(self, token: ContextToken, context: CallContext) -> Tab:
        context.check()
        return self._captures.require(token)

    def _begin(self, token: ContextToken, context: CallContext) -> _Before:
        """The last check before the first side effect."""
        tab = self._check(token, context)
        context.effects_begin()
        tab.given_up = False
        return _Before(tab.navigation, tab.refusals, tuple(tab.started))

    def _finish(self, tab: Tab, captured: TabContext, allowed: Allowed, context: CallContext) -> TabContext:
        context.effects_done()
        context.check()
        fresh = self._captures.capture(tab, keep=captured.token)
        href = destination(fresh.url)
        if href is None or not allowed(href):
            raise ActionError(Code.DESTINATION_DENIED, committed=True)
        return fresh


async def _settled(
    tab: Tab,
    guard: DocumentGuard,
    before: _Before,
    *,
    ours: str | None = None,
    kind: str | None = None,
    arrived: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Wait for the end of a navigation that was just begun.

    Ours is known by its loader (`ours`), by its `kind`, or, when it may be without a load at all, by
    `arrived`, which is asked when the tab stops loading.
    """
    while True:
        seen = tab.version
        document = tab.document
        if guard.denied:
            raise ActionError(Code.DESTINATION_DENIED, committed=None)
        if tab.ended is not None or document is None:
            raise ActionError(Code.SESSION_GONE, committed=None)
        if tab.navigation > before.navigation:
            loader = ours or before.loader(tab, kind)
            if document.failed:
                raise ActionError(Code.NAVIGATION_FAILED, committed=None)
            if arrived is None and document.loader_id != loader and not tab.by_page(document.loader_id):
                raise ActionError(Code.STALE, committed=None)  # a person went elsewhere meanwhile
            here = arrived is not None or loader == document.loader_id or loader in tab.commits
            if here and tab.in_flight is None:
                if document.loaded:
                    return
                if document.stopped:
                    raise ActionError(Code.NAVIGATION_FAILED, committed=None)
        elif guard.unsafe or tab.refusals > before.refusals:
            raise ActionError(Code.NAVIGATION_FAILED, committed=None)
        elif tab.given_up and not (arrived and await arrived()):
            # Nothing came of it (204, a download); coming back from the cache, a tab stops before it commits.
            raise ActionError(Code.NAVIGATION_FAILED, committed=None)
        await tab.change(seen)


@contextmanager
def translating() -> Iterator[None]:
    """CDP errors as typed endings. Every `ActionError` passes."""
    try:
        yield
    except CdpError as error:
        raise translated(error) from None
