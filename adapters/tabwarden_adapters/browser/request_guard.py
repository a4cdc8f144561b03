"""Every request of one CDP session, judged before it is sent (CDP domain Fetch), as long as a grant is bound.

This gives the refusal its reason and its frame, and stops it one hop earlier. It is not the wall: sockets,
preconnects, WebRTC and what a closed tab still sends never come by here. The wall is `egress_proxy`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tabwarden.errors import ContentClass

from tabwarden_adapters.browser.body_inspection import BodyLane
from tabwarden_adapters.browser.cdp import Session
from tabwarden_adapters.browser.cdp.generated import fetch, network, page, runtime, target
from tabwarden_adapters.browser.closing_bodies import EVERYTHING, Then
from tabwarden_adapters.browser.tab import DocumentJudge
from tabwarden_adapters.browser.urls import destination

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
    """One refused request. `kind` is CDP's `resourceType`, `main` the tab's own document. No path is kept.

    `content` is the class of what its body has; None when it may not go to that host at all.
    """

    host: str
    kind: str
    main: bool
    frame_id: str
    content: ContentClass | None = None


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
        bodies: BodyLane | None = None,
    ) -> None:
        """`find` gives the session of an attached frame; `refused` is told what was refused. With `bodies`,
        a request waits until its body was looked at."""
        self.judge: DocumentJudge | None = None
        self.released = False
        self._session = session
        self._rules = rules
        self._find = find
        self._refused = refused
        self._main_frame = main_frame
        self._bodies = bodies
        self._held: dict[str, fetch.RequestPaused] = {}  # by request id
        self._frames: list[RequestGuard] = []
        self._undo: list[Callable[[], None]] = []

    def begin(self, *, frames: bool) -> None:
        """Start, before the target runs. `frames`: it may have frames that run in other processes."""
        session = self._session
        self._undo = [
            session.on(fetch.RequestPaused, self._paused),
            session.on(fetch.AuthRequired, self._authenticate),
        ]
        if self._bodies is not None:
            self._undo.append(session.on(page.FrameAttached, lambda event: self._claim(event.frame_id)))
            session.on_lost_request = self._lost
            if self._main_frame is not None:
                self._claim(self._main_frame)
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
        self.released = True
        for undo in self._undo:
            undo()
        self._session.on_lost_request = lambda request_id: None
        for event in self._held.values():  # the domain's end would let them go
            self._fail(event)
        self._held.clear()
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
        frame = RequestGuard(session, self._rules, self._find, self._refused, bodies=self._bodies)
        frame.begin(frames=True)
        frame._claim(event.target_info.target_id)
        self._frames = [one for one in self._frames if not one._session.ended_for_good]
        self._frames.append(frame)
        if event.waiting_for_debugger:
            session.post(runtime.run_if_waiting_for_debugger())

    def _paused(self, event: fetch.RequestPaused) -> None:
        self._claim(event.frame_id)
        bodies = self._bodies
        if bodies is not None and bodies.wants(event.request) and self.allows(event):
            self._held[event.request_id] = event
            bodies.look(event.request, partial(self._looked, event))
        else:
            self._decide(event)

    def _claim(self, frame_id: str) -> None:
        if self._bodies is not None:
            self._bodies.claim(frame_id, self)

    def _lost(self, request_id: str) -> None:
        """A request so large that nothing is known of it but its id: nobody will have seen its body."""
        self._session.post(fetch.fail_request(request_id=request_id, error_reason="BlockedByClient"))

    def _looked(self, event: fetch.RequestPaused, content: ContentClass | None) -> None:
        if self._held.pop(event.request_id, None) is None or self._session.ended_for_good:
            return  # it has failed with the guard's end, or comes by once more behind it
        if content is None:
            if self._bodies is not None:
                self._bodies.passed(event)
            self._decide(event)  # as if it came now: what it may do may have changed
        else:
            self.note(event, content)
            self._fail(event)

    # ---- for what outlives the session: implements `Sender` -----------------------------------------

    def look(self, request: network.Request, then: Then) -> None:
        """See `Sender`."""
        if self._bodies is None:
            then(ContentClass.INCOMPLETE)
        else:
            self._bodies.look(request, then)

    def allows(self, event: fetch.RequestPaused) -> bool:
        """See `Sender`."""
        return self._allowed(event.request.url, main=self._main(event))

    def note(self, event: fetch.RequestPaused, content: ContentClass | None = None) -> None:
        """See `Sender`."""
        href = destination(event.request.url)
        host = "" if href is None else href.split("/")[2]
        main = self._main(event)
        self._refused(RefusedRequest(host, event.resource_type, main, event.frame_id, content))

    # ---- decisions ----------------------------------------------------------------------------------

    def _decide(self, event: fetch.RequestPaused) -> None:
        main = self._main(event)
        allowed = self._allowed(event.request.url, main=main)
        if not allowed:
            self.note(event)
        if main and self.judge is not None:
            self.judge.paused(event)  # it knows more: what the action may do, and what ends it
        elif allowed:
            self._session.post(fetch.continue_request(request_id=event.request_id))
        else:
            self._fail(event)

    def _main(self, event: fetch.RequestPaused) -> bool:
        return event.resource_type == "Document" and event.frame_id == self._main_frame

    def _fail(self, event: fetch.RequestPaused) -> None:
        # An aborted navigation leaves the tab as it was; a frame gets an error page instead of nothing.
        reason: network.ErrorReason = "Aborted" if self._main(event) else "BlockedByClient"
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

    def _authenticate(self, event: fetch.AuthRequired) -> None:
        if self.judge is not None:
            self.judge.authenticate(event)
            return
        answer = fetch.AuthChallengeResponse(response="Default")
        self._session.post(
            fetch.continue_with_auth(request_id=event.request_id, auth_challenge_response=answer)
        )
