"""Document requests of a tab, judged one by one before they are sent (CDP domain Fetch).

This names the frame and stops a redirect early. It is not the wall: preconnects, workers and sockets go past
it, and the network guard's proxy is there for those.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tabwarden_adapters.browser.cdp.generated import fetch, network, page
from tabwarden_adapters.browser.tab import StandingGuard, Tab
from tabwarden_adapters.browser.urls import destination

DOCUMENTS = [fetch.RequestPattern(url_pattern="*", resource_type="Document", request_stage="Request")]
SAFE_METHODS = ("GET", "HEAD")


class DocumentGuard:
    """Judges while it is open. `denied`: a request of the main frame was refused; `unsafe`: one that would
    have sent a form again was."""

    def __init__(self, tab: Tab, allowed: Callable[[str], bool], *, resending: bool) -> None:
        self._tab = tab
        self._allowed = allowed
        self._resending = resending
        self._open = True
        self.denied = False
        self.unsafe = False

    def paused(self, event: fetch.RequestPaused) -> None:
        """Let one request go, or fail it before a byte of it leaves."""
        session = self._tab.session
        main = event.frame_id == self._tab.target_id
        if self._judge(event.request.url, event.request.method, main=main):
            session.post(fetch.continue_request(request_id=event.request_id))
            return
        # An aborted navigation leaves the tab as it was; a frame gets an error page instead of nothing.
        reason: network.ErrorReason = "Aborted" if main else "BlockedByClient"
        session.post(fetch.fail_request(request_id=event.request_id, error_reason=reason))
        self._tab.wake()

    def _judge(self, url: str, method: str, *, main: bool) -> bool:
        if not self._open:
            return False
        if main and self._resending and method not in SAFE_METHODS:
            self.unsafe = True
            return False
        href = destination(url)
        try:
            allowed = href is not None and self._allowed(href) is True
        except Exception:  # a policy that cannot answer allows nothing
            allowed = False
        if main and not allowed:
            self.denied = True
        return allowed

    def authenticate(self, event: fetch.AuthRequired) -> None:
        """Answer a demand for a password with none: the tab must not wait for a person."""
        answer = fetch.AuthChallengeResponse(response="CancelAuth")
        self._tab.session.post(
            fetch.continue_with_auth(request_id=event.request_id, auth_challenge_response=answer)
        )

    def close(self) -> None:
        """From now on refuse everything."""
        self._open = False


@asynccontextmanager
async def judged(
    tab: Tab, allowed: Callable[[str], bool], *, resending: bool = False
) -> AsyncIterator[DocumentGuard]:
    """Judge every document request of `tab` while the block runs, redirect hops included.

    `resending` says that the block repeats an earlier request, which must then not be a POST. A block that
    raises, or is cancelled, leaves no navigation running. Raises `CdpError`.
    """
    guard = DocumentGuard(tab, allowed, resending=resending)
    session = tab.session
    if tab.standing is not None:
        # The domain has one switch for a session, and there it is on already.
        async with _lent(tab, tab.standing, guard):
            yield guard
        return
    undo = [session.on(fetch.RequestPaused, guard.paused), session.on(fetch.AuthRequired, guard.authenticate)]
    done = False
    try:
        await session.call(fetch.enable(patterns=DOCUMENTS, handle_auth_requests=True))
        yield guard
        done = True
    finally:
        guard.close()
        if not done:
            # Before the domain is switched off: that lets paused requests go.
            session.post(page.stop_loading())
        session.post(fetch.disable())
        for remove in undo:
            remove()


@asynccontextmanager
async def _lent(tab: Tab, standing: StandingGuard, guard: DocumentGuard) -> AsyncIterator[None]:
    standing.judge = guard
    done = False
    try:
        yield
        done = True
    finally:
        guard.close()
        if not done:
            tab.session.post(page.stop_loading())
        standing.judge = None
