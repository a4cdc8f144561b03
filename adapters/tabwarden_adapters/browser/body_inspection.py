"""Bodies of agents' requests, held until an inspector has looked at them, where policy asks for that.

Each tab has a lane. One body is looked at after the other, lane by lane, so a page that sends many waits for
itself. What cannot be looked through in time, or at all, is refused.
"""

from contextlib import suppress
from typing import Final, Protocol, runtime_checkable

import trio
from tabwarden.errors import ActionError, Code, ContentClass
from tabwarden.model import Caller
from tabwarden.ports import Inspector

from tabwarden_adapters.browser.cdp import Session
from tabwarden_adapters.browser.cdp.generated import fetch, network
from tabwarden_adapters.browser.closing_bodies import ClosingBodies, Sender, Then
from tabwarden_adapters.browser.request_bodies import MAX_BODY_BYTES, body_size, body_text, has_body

TO_SITE: Final = "to-site"
HELD_S: Final = 10.0  # as long as an action has; a catalogue that loads takes most of it
LANE_REQUESTS: Final = 64  # ten times what Chromium sends to one host at once
LANE_BYTES: Final = 2 * MAX_BODY_BYTES
INLINE_BYTES: Final = 4096  # a hop to a thread costs more than to decode these


@runtime_checkable
class BodyInspector(Inspector, Protocol):
    """An `Inspector` that says in which directions policy wants it to look. Bodies go `to-site`."""

    def looks_at(self, direction: str) -> bool:
        """Whether a rule in force names this direction. Answers at once; only False lets bodies go unseen."""
        ...


class BodyInspection:
    """Looks at bodies for all lanes. `await nursery.start(inspection.run)` first: without it, and after its
    end, every body is refused."""

    def __init__(self, inspector: BodyInspector) -> None:
        self._inspector = inspector
        self._nursery: trio.Nursery | None = None
        # One at a time for all lanes: actions keep a thread of the inspector's for themselves.
        self._turn = trio.Lock()
        self.closing: ClosingBodies | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    def watch(self, root: Session) -> None:
        """Look also at what is sent when its tab has closed; `root` is the browser's own session. All
        requests of the browser then come by, so this is for one that is ours."""
        self.closing = ClosingBodies(root, self.wanted)
        self.closing.follow()

    def follow(self) -> None:
        """The policy has changed."""
        if self.closing is not None:
            self.closing.follow()

    def wanted(self) -> bool:
        """Whether policy asks for bodies. An inspector that cannot say so wants them."""
        try:
            return self._inspector.looks_at(TO_SITE) is not False
        except Exception:
            return True

    def begin(self, lane: "BodyLane", request: network.Request, then: Then) -> bool:
        """Start a look whose end `then` is told. False when nobody looks any more."""
        if self._nursery is None:
            return False
        self._nursery.start_soon(self._look, lane, request, then)
        return True

    async def _look(self, lane: "BodyLane", request: network.Request, then: Then) -> None:
        found: ContentClass | None = ContentClass.INCOMPLETE
        try:
            with trio.move_on_after(HELD_S):
                async with lane.turn, self._turn:
                    text = await _text(request)
                    if text is not None:
                        found = await self._found(text, lane.caller)
                        # No await from here to `then`: what was decided is what holds.
        finally:
            lane.ended(request)
            # Whoever is told must not end the looks of others; a request that is not answered stays held.
            with suppress(Exception):
                then(found)

    async def _found(self, text: str, caller: Caller) -> ContentClass | None:
        try:
            said: object = await self._inspector.inspect(text, direction=TO_SITE, caller=caller)
        except ActionError as error:
            denied = error.content_class if error.code is Code.CONTENT_DENIED else None
            return denied or ContentClass.INCOMPLETE
        except Exception:
            return ContentClass.INCOMPLETE
        return None if said is None or type(said) is str else ContentClass.INCOMPLETE


class BodyLane:
    """The held requests of one tab."""

    def __init__(self, inspection: BodyInspection, caller: Caller) -> None:
        self.caller = caller
        self.turn = trio.Lock()
        self._inspection = inspection
        self._requests = self._bytes = 0

    def wants(self, request: network.Request) -> bool:
        """Whether this request must wait for `look`."""
        return has_body(request) and self._inspection.wanted()

    def look(self, request: network.Request, then: Then) -> None:
        """Tell `then`, once, None when the body may be sent, or the class of what it has; maybe at once."""
        size = body_size(request)
        full = self._requests >= LANE_REQUESTS or self._bytes + size > LANE_BYTES
        if size > MAX_BODY_BYTES or full or not self._inspection.begin(self, request, then):
            then(ContentClass.INCOMPLETE)
            return
        self._requests += 1
        self._bytes += size

    def claim(self, frame_id: str, sender: Sender) -> None:
        """Tell whose the requests of a frame are, also when its session has ended."""
        if self._inspection.closing is not None:
            self._inspection.closing.claim(frame_id, sender)

    def passed(self, event: fetch.RequestPaused) -> None:
        """This one goes on, and need not be looked at once more."""
        if self._inspection.closing is not None:
            self._inspection.closing.passed(event)

    def ended(self, request: network.Request) -> None:
        """For the inspection: this one is held no longer."""
        self._requests -= 1
        self._bytes -= body_size(request)


async def _text(request: network.Request) -> str | None:
    if body_size(request) <= INLINE_BYTES:
        return body_text(request)
    return await trio.to_thread.run_sync(body_text, request, abandon_on_cancel=True)


def body_lane(inspection: BodyInspection | None, caller: Caller) -> BodyLane | None:
    """For one tab or worker of `caller`, with the frames and workers within it."""
    return None if inspection is None else BodyLane(inspection, caller)


async def body_inspection(nursery: trio.Nursery, inspect: Inspector | None) -> BodyInspection | None:
    """One that runs in `nursery`; None for an inspector to whom bodies are nothing."""
    if not isinstance(inspect, BodyInspector):
        return None
    inspection = BodyInspection(inspect)
    await nursery.start(inspection.run)
    return inspection
