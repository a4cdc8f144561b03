"""Every request of one CDP session, judged before it is sent (CDP domain Fetch), as long as a grant is bound.

This gives the refusal its reason and its frame, and stops it one hop earlier. It is not the wall: sockets,
preconnects, WebRTC and what a closed tab still sends never come by here. The wall is `egress_proxy`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tabwarden_adapters.browser.cdp import Session
from tabwarden_adapters.browser.cdp.generated import fetch, network, runtime, target
from tabwarden_adapters.browser.tab import DocumentJudge
from tabwarden_adapters.browser.urls import destination

EVERYTHING = [fetch.RequestPattern(url_pattern="*", request_stage="Request")]
# What a page starts in other processes or threads. A dedicated worker's requests pause on its page's session;
# it is attached only because Chromium holds it back, attached or not, and somebody must let it go.
CHILDREN = [target.FilterEntry(type="iframe"), target.FilterEntry(type="worker")]
LOCAL_SCHEMES = ("about:", "blob:", "data:")  # nothing of these leaves the browser


class RequestRules(Protocol):
    """Two lists: where documents of a tab may come from, and what these may load. Only True allows."""

    def page(self, href: str, /) -> bool: ...

    def resource(self, href: str, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """One refused request. `kind` is CDP's `resourceType`, `main` the tab's own document. No path is kept."""

    host: str
    kind: str
    main: bool
    frame_id: str


class RequestGuard:
    """Guards one session until `release`. Made for a tab's (`main_frame` is its target id), a cross-site
    frame's or a worker's session; frames within it that run elsewhere are guarded too."""

    def __init__(
        self,
        session: Session,
        rules: RequestRules,
        find: Callable[[str], Session | None],
        refused: Callable[[RefusedRequest], None],
        main_frame: str | None = None,
    ) -> None:
        """`find` gives the session of an attached frame; `refused` is told what was refused."""
        self.judge: DocumentJudge | None = None
        self._session = session
        self._rules = rules
        self._find = find
        self._refused = refused
        self._main_frame = main_frame
        self._frames: list[RequestGuard] = []
        self._undo: list[Callable[[], None]] = []

    def begin(self, *, frames: bool) -> None:
        """Start, before the target runs. `frames`: it may have frames that run in other processes."""
        session = self._session
        self._undo = [
            session.on(fetch.RequestPaused, self._paused),
            session.on(fetch.AuthRequired, self._authenticate),
        ]
        session.post(fetch.enable(patterns=EVERYTHING, handle_auth_requests=True))
        if frames:
            self._undo.append(session.on(target.AttachedToTarget, self._attached))
            session.post(
                target.set_auto_attach(
                    auto_attach=True, wait_for_debugger_on_start=True, flatten=True, filter=CHILDREN
                )
            )

    def release(self) -> None:
        """Let everything go that comes from now on: the tab is no longer the grant's."""
        for undo in self._undo:
            undo()
        self._session.post(fetch.disable())
        for frame in self._frames:
            frame.release()

    def _attached(self, event: target.AttachedToTarget) -> None:
        session = self._find(event.session_id)
        if session is None:
            return
        if event.target_info.type != "iframe":
            session.post(runtime.run_if_waiting_for_debugger())
            self._session.post(target.detach_from_target(session_id=event.session_id))
            return
        frame = RequestGuard(session, self._rules, self._find, self._refused)
        frame.begin(frames=True)
        self._frames = [one for one in self._frames if not one._session.ended_for_good]
        self._frames.append(frame)
        if event.waiting_for_debugger:
            session.post(runtime.run_if_waiting_for_debugger())

    def _paused(self, event: fetch.RequestPaused) -> None:
        main = event.resource_type == "Document" and event.frame_id == self._main_frame
        allowed = self._allowed(event.request.url, main=main)
        if not allowed:
            self._note(event, main=main)
        if main and self.judge is not None:
            self.judge.paused(event)  # it knows more: what the action may do, and what ends it
        elif allowed:
            self._session.post(fetch.continue_request(request_id=event.request_id))
        else:
            # An aborted navigation leaves the tab as it was; a frame gets an error page instead of nothing.
            reason: network.ErrorReason = "Aborted" if main else "BlockedByClient"
            self._session.post(fetch.fail_request(request_id=event.request_id, error_reason=reason))

    def _allowed(self, url: str, *, main: bool) -> bool:
        if url.startswith(LOCAL_SCHEMES):
            return True
        href = destination(url)
        if href is None:
            return False
        try:
            return (self._rules.page(href) if main else self._rules.resource(href)) is True
        except Exception:  # a policy that cannot answer allows nothing
            return False

    def _note(self, event: fetch.RequestPaused, *, main: bool) -> None:
        href = destination(event.request.url)
        host = "" if href is None else href.split("/")[2]
        self._refused(RefusedRequest(host, event.resource_type, main, event.frame_id))

    def _authenticate(self, event: fetch.AuthRequired) -> None:
        if self.judge is not None:
            self.judge.authenticate(event)
            return
        answer = fetch.AuthChallengeResponse(response="Default")
        self._session.post(
            fetch.continue_with_auth(request_id=event.request_id, auth_challenge_response=answer)
        )
