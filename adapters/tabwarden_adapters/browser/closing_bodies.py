"""Bodies that outlive their tab: beacons and `keepalive` requests, which Chromium sends when it has closed.

With its session a tab's guard ends, and what it held goes on. It comes by once more, at the browser itself
(CDP domain Fetch on the browser's session, behind those of all tabs), with the frame that it is from.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from tabwarden.errors import ContentClass

from tabwarden_adapters.browser.cdp import Session
from tabwarden_adapters.browser.cdp.generated import fetch, network
from tabwarden_adapters.browser.request_bodies import has_body

EVERYTHING: Final = [fetch.RequestPattern(url_pattern="*", request_stage="Request")]
FRAMES: Final = 4096  # of agents' tabs, the newest; also some of tabs that are no more
PASSED: Final = 256  # let go by a tab's guard, and not yet come by here

Then = Callable[[ContentClass | None], None]


class Sender(Protocol):
    """The guard of the tab, frame or worker that a request is from. It may outlive its session."""

    released: bool

    def look(self, request: network.Request, then: Then) -> None:
        """Look at a body. See `BodyLane.look`."""
        ...

    def allows(self, event: fetch.RequestPaused) -> bool:
        """Whether this may be sent to where it goes, as of now."""
        ...

    def note(self, event: fetch.RequestPaused, content: ContentClass | None) -> None:
        """It was refused."""
        ...


class ClosingBodies:
    """Stands behind all tabs while `wanted`. Requests of frames that nobody has claimed are the person's and
    go on at once, and so does what has no body."""

    def __init__(self, root: Session, wanted: Callable[[], bool]) -> None:
        self._root = root
        self._wanted = wanted
        self._senders: OrderedDict[str, Sender] = OrderedDict()  # by frame id
        self._passed: OrderedDict[bytes, int] = OrderedDict()
        self._held: dict[str, tuple[Sender, fetch.RequestPaused]] = {}  # by request id
        self._on = False
        root.on(fetch.RequestPaused, self._paused)
        # Too large to be a beacon or `keepalive` (64 KiB, Fetch Standard): its tab is there, and judged it.
        root.on_lost_request = self._continue

    def follow(self) -> None:
        """Begin or end as policy wants it now. What was let go under another policy is looked at again."""
        self._passed.clear()
        wanted = self._wanted()
        if wanted and not self._on:
            self._root.post(fetch.enable(patterns=EVERYTHING))
        elif self._on and not wanted:
            for request_id in self._held:  # the domain's end would let them go
                self._fail(request_id)
            self._held.clear()
            self._root.post(fetch.disable())
        self._on = wanted

    def claim(self, frame_id: str, sender: Sender) -> None:
        """From now on requests of this frame are this guard's."""
        self._senders[frame_id] = sender
        self._senders.move_to_end(frame_id)
        if len(self._senders) > FRAMES:
            self._senders.popitem(last=False)

    def passed(self, event: fetch.RequestPaused) -> None:
        """A guard has looked at this one: let it go by, once."""
        if not self._on:
            return
        key = _key(event)
        self._passed[key] = self._passed.pop(key, 0) + 1
        if len(self._passed) > PASSED:
            self._passed.popitem(last=False)

    def _paused(self, event: fetch.RequestPaused) -> None:
        sender = self._senders.get(event.frame_id) if has_body(event.request) else None
        if sender is None or sender.released or self._take(event):
            self._continue(event.request_id)
            return
        self._held[event.request_id] = (sender, event)
        sender.look(event.request, partial(self._looked, event.request_id))

    def _looked(self, request_id: str, content: ContentClass | None) -> None:
        held = self._held.pop(request_id, None)
        if held is None:
            return  # it has failed
        sender, event = held
        if content is None and sender.allows(event):
            self._continue(request_id)
        else:
            sender.note(event, content)
            self._fail(request_id)

    def _take(self, event: fetch.RequestPaused) -> bool:
        key = _key(event)
        times = self._passed.pop(key, 0)
        if times > 1:
            self._passed[key] = times - 1
        return times > 0

    def _continue(self, request_id: str) -> None:
        self._root.post(fetch.continue_request(request_id=request_id))

    def _fail(self, request_id: str) -> None:
        self._root.post(fetch.fail_request(request_id=request_id, error_reason="BlockedByClient"))


def _key(event: fetch.RequestPaused) -> bytes:
    request = event.request
    parts = [event.frame_id, request.method, request.url]
    parts += [entry.bytes or "-" for entry in request.post_data_entries or ()]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()
