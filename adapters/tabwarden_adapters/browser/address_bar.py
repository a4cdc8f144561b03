"""Tells a person's navigation by the address bar from a page's and from ours (CDP domains Page, Network).

Measured (see network-guard.md in the design): it starts as `differentDocument`, no page asked for it, no
action of ours is under way in the tab, the request has a user gesture, and its history entry is `typed`. The
first four are known before the request leaves, the last one when the document is there. Back and reload
look like ours and are never taken for it.
"""

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from tabwarden_adapters.browser.cdp import CdpError, Event
from tabwarden_adapters.browser.cdp.generated import network, page
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.urls import destination, origin

REMEMBERED = 64


class RequestWillBeSent(Event, frozen=True, kw_only=True):
    """What is needed of `Network.requestWillBeSent`, which also carries whole requests."""

    METHOD: ClassVar[str] = "Network.requestWillBeSent"

    request_id: str
    loader_id: str
    has_user_gesture: bool = False


class AddressBar:
    """Watches one tab until `end`; calls `taken_over` once a person's navigation has arrived.

    `origins` are those of the documents that were here meanwhile.
    """

    def __init__(self, tab: Tab, taken_over: Callable[[], None]) -> None:
        self.origins: deque[str] = deque(maxlen=REMEMBERED)
        self._tab = tab
        self._taken_over = taken_over
        self._gestures: deque[str] = deque(maxlen=REMEMBERED)  # loaders
        self._fresh: deque[str] = deque(maxlen=REMEMBERED)  # loaders that no action of ours started
        self._undo: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Start watching."""
        session = self._tab.session
        self._undo = [
            session.on(page.FrameStartedNavigating, self._started),
            session.on(RequestWillBeSent, self._sent),
            session.on(page.FrameNavigated, self._committed),
        ]
        session.post(
            network.enable(max_total_buffer_size=0, max_resource_buffer_size=0, max_post_data_size=0)
        )
        # Else what a worker sends for the tab is nobody's.
        session.post(network.set_bypass_service_worker(bypass=True))
        if self._tab.document is not None:
            self._here(self._tab.document.url)

    def end(self) -> None:
        """Stop watching."""
        for undo in self._undo:
            undo()
        self._tab.session.post(network.set_bypass_service_worker(bypass=False))
        self._tab.session.post(network.disable())

    @property
    def navigating(self) -> bool:
        """True while the document on its way is, by all that can be known yet, one that a person typed."""
        return self._tab.in_flight is not None and self._typed_so_far(self._tab.in_flight)

    def _typed_so_far(self, loader_id: str) -> bool:
        return loader_id in self._fresh and loader_id in self._gestures and not self._tab.by_page(loader_id)

    def _started(self, event: page.FrameStartedNavigating) -> None:
        main = event.frame_id == self._tab.target_id
        # Our own `Page.navigate` may be answered after this: `claimed` says that one is under way.
        if main and event.navigation_type == "differentDocument" and not self._tab.claimed:
            self._fresh.append(event.loader_id)

    def _sent(self, event: RequestWillBeSent) -> None:
        if event.has_user_gesture and event.request_id == event.loader_id:
            self._gestures.append(event.loader_id)

    def _committed(self, event: page.FrameNavigated) -> None:
        if event.frame.id != self._tab.target_id:
            return
        self._here(event.frame.url)
        loader_id = event.frame.loader_id
        if not self._typed_so_far(loader_id):
            return

        def entries(answer: page.GetNavigationHistoryResult | CdpError) -> None:
            document = self._tab.document
            if isinstance(answer, CdpError) or document is None or document.loader_id != loader_id:
                return
            if answer.entries[answer.current_index].transition_type == "typed":
                self._taken_over()

        self._tab.session.ask(page.get_navigation_history(), entries)

    def _here(self, url: str) -> None:
        href = destination(url)
        if href is not None:
            self.origins.append(origin(href))
