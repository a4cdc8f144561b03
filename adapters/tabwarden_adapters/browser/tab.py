"""One tab as Chromium reports it: its document, its navigations, whether it is shown.

Everything here is noted inside the connection's reader (`Session.on`, `Session.ask`), so that it is never
older than the answer to a call. Nothing here waits.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import msgspec
import trio

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.cdp import CdpError, EndReason, Session
from tabwarden_adapters.browser.cdp.generated import fetch, inspector, page, runtime

WORLD = "tabwarden"  # the name of our isolated world in every document
# What Chromium itself takes for an address (its `kMaxURLChars`). A page can give its document a longer one.
MAX_ADDRESS = 2 * 1024 * 1024
UNKNOWN = ""  # an address that no destination policy allows


@dataclass(slots=True)
class Document:
    """The main frame's committed document. What comes from the back/forward cache is
    loaded at once. `url` is `UNKNOWN` when it is too long."""

    loader_id: str
    url: str
    failed: bool = False
    loaded: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A navigation that started. `kind` is CDP's `navigationType`. `url` tells its address from others."""

    loader_id: str
    kind: str
    url: bytes


class DocumentJudge(Protocol):
    """Answers what Chromium asks about a tab's document while an action navigates it."""

    def paused(self, event: fetch.RequestPaused) -> None: ...

    def authenticate(self, event: fetch.AuthRequired) -> None: ...


class StandingGuard(Protocol):
    """Judges all requests of a tab as long as it is bound to a grant. `judge` is lent to it by an action."""

    judge: DocumentJudge | None


class Tab:
    """A page target. `navigation` counts commits, same-document ones too; `activation` counts showings."""

    def __init__(self, session_id: str, target_id: str, session: Session, opener_id: str | None) -> None:
        self.id = session_id
        self.target_id = target_id
        self.opener_id = opener_id
        self.session = session
        self.context_id: str | None = None  # the browser context, as CDP names it
        self.standing: StandingGuard | None = None
        self.document: Document | None = None
        self.navigation = 0
        self.in_flight: str | None = None  # the loader of a navigation that has started, not committed
        self.started: deque[Start] = deque(maxlen=32)  # longer than any redirect by script that ends well
        self.commits: deque[str] = deque(maxlen=32)
        self.given_up = False  # the last navigation that started ended without a commit
        self.refusals = 0  # times the page asked to stay (beforeunload) and so stayed
        self.visible: bool | None = None  # None until the first document has told
        self.shown = 0  # order of showings over all tabs; 0: never
        self.activation = 0
        self.dialogs_dismissed = 0
        self.version = 0
        self.claimed = False  # an action is changing this tab
        self.persons = False  # its dialogs are left to the person, unless an agent acts or has acted in it
        # Handles on our fixed scripts, made ready in the document of one loader: by their source.
        self._held: tuple[str, dict[str, str]] = ("", {})
        # Told with each report: has it just come to the front, and was it hidden since the last one?
        self.on_shown: Callable[[Tab, bool, bool], None] = lambda tab, came, hidden: None
        self._requested: deque[bytes] = deque(maxlen=32)  # addresses that the page asked for, as in `Start`
        self._watch = 0
        self._on_ended: Callable[[], None] = lambda: None
        self._on_ready: Callable[[], None] = lambda: None
        self._changes = trio.lowlevel.ParkingLot()

    @property
    def ready(self) -> bool:
        """True when its document is known and its target answers."""
        return self.document is not None and self.session.ended is None

    @property
    def known(self) -> bool:
        """True when it is also known whether it is shown."""
        return self.ready and self.visible is not None

    @property
    def ended(self) -> EndReason | None:
        """Why it answers no more."""
        return self.session.ended

    def by_page(self, loader_id: str) -> bool:
        """True when the page itself asked for this navigation.

        Told by its address: the page's event and the browser's may come in either order.
        """
        return any(start.loader_id == loader_id and start.url in self._requested for start in self.started)

    def held(self) -> dict[str, str]:
        """The handles in the current document; none of an older one is ever given."""
        loader_id = "" if self.document is None else self.document.loader_id
        if self._held[0] != loader_id:
            self._held = (loader_id, {})
        return self._held[1]

    async def change(self, seen: int) -> None:
        """Return once more has been noted here than `seen`, an earlier `version`."""
        while self.version == seen:
            await self._changes.park()

    def wake(self) -> None:
        """Let all who wait in `change` look again."""
        self.version += 1
        self._changes.unpark_all()

    def prepare(self, *, paused: bool, ended: Callable[[], None], ready: Callable[[], None]) -> None:
        """Ask for what this class notes, then let a new tab run.

        `ended` is called when its target crashes or is gone, `ready` when its first document is known.
        """
        session = self.session
        self._on_ended, self._on_ready = ended, ready
        session.on(page.FrameNavigated, self._committed)
        session.on(page.DocumentOpened, self._opened)
        session.on(page.NavigatedWithinDocument, self._moved)
        session.on(page.FrameRequestedNavigation, self._page_requested)
        session.on(page.FrameStartedNavigating, self._started)
        session.on(page.FrameStoppedLoading, self._stopped)
        session.on(page.LifecycleEvent, self._lifecycle)
        session.on(page.JavascriptDialogOpening, self._dialog)
        session.on(inspector.TargetCrashed, lambda _: self._gone())
        session.on_end = self._gone
        session.on_lost = self._lost
        session.post(page.enable())
        session.post(inspector.enable())
        session.post(page.set_lifecycle_events_enabled(enabled=True))
        session.post(
            page.add_script_to_evaluate_on_new_document(
                source=scripts.WATCH, world_name=WORLD, run_immediately=True
            )
        )
        # A prerendered page would become this tab under another target id.
        session.post(page.set_prerendering_allowed(is_allowed=False))
        session.ask(page.get_frame_tree(), self._first)
        if paused:
            session.post(runtime.run_if_waiting_for_debugger())

    def _main(self, frame_id: str) -> bool:
        return frame_id == self.target_id  # Chromium gives a page's main frame the target's id

    def _first(self, answer: page.GetFrameTreeResult | CdpError) -> None:
        if not isinstance(answer, CdpError) and self.document is None:
            frame = answer.frame_tree.frame
            self._commit(Document(frame.loader_id, _address(frame), failed=frame.unreachable_url is not None))

    def _committed(self, event: page.FrameNavigated) -> None:
        if not self._main(event.frame.id):
            return
        restored = event.type == "BackForwardCacheRestore"
        failed = event.frame.unreachable_url is not None
        self._commit(Document(event.frame.loader_id, _address(event.frame), failed, loaded=restored))

    def _commit(self, document: Document) -> None:
        first, self.document = self.document is None, document
        if first:
            self._on_ready()
        self.navigation += 1
        if document.loaded or document.loader_id == self.in_flight:
            self.in_flight = None  # else an older navigation was still on its way when this one started
        self.given_up = False
        self.commits.append(document.loader_id)
        self._watch_visibility(renew=False)
        self.wake()

    def _opened(self, event: page.DocumentOpened) -> None:
        # document.open() takes away every listener, and the caller's address may become this document's.
        if self._main(event.frame.id) and self.document is not None:
            self.document.url = _address(event.frame)
            self.navigation += 1
            self._watch_visibility(renew=True)
            self.wake()

    def _moved(self, event: page.NavigatedWithinDocument) -> None:
        if self._main(event.frame_id) and self.document is not None:
            self.document.url = _bounded(event.url)
            self.navigation += 1
            self.wake()

    def _lost(self, method: str) -> None:
        """An event that was too large: a dialog must not stay open, an address must not be taken for the old
        one. Whether it was the main frame's cannot be known."""
        if method == page.JavascriptDialogOpening.METHOD:
            self._dismiss()  # none that asks to stay: those have no text of a page's
        elif method in _MOVES and self.document is not None:
            self.document.url = UNKNOWN
            self.navigation += 1
            self.wake()

    def _page_requested(self, event: page.FrameRequestedNavigation) -> None:
        if self._main(event.frame_id) and event.disposition == "currentTab":
            self._requested.append(_mark(event.url))
            self.wake()

    def _started(self, event: page.FrameStartedNavigating) -> None:
        if not self._main(event.frame_id) or event.navigation_type in ("sameDocument", "historySameDocument"):
            return
        self.in_flight = event.loader_id
        self.given_up = False
        self.started.append(Start(event.loader_id, event.navigation_type, _mark(event.url)))
        self.wake()

    def _stopped(self, event: page.FrameStoppedLoading) -> None:
        if self._main(event.frame_id):
            self.given_up = self.in_flight is not None
            self.in_flight = None
            if self.document is not None:
                self.document.stopped = True
            self.wake()

    def _lifecycle(self, event: page.LifecycleEvent) -> None:
        document = self.document
        if event.name == "load" and document is not None and event.loader_id == document.loader_id:
            document.loaded = True
            self.wake()

    def _dialog(self, event: page.JavascriptDialogOpening) -> None:
        if event.type == "beforeunload":
            self.refusals += 1
        self._dismiss()

    def forget(self) -> None:
        """Make all that was captured or numbered here stale, as a navigation does."""
        self.navigation += 1
        self.activation += 1
        self._held = ("", {})

        def world(answer: page.CreateIsolatedWorldResult | CdpError) -> None:
            if not isinstance(answer, CdpError):
                self.session.post(
                    runtime.evaluate(expression=scripts.FORGET, context_id=answer.execution_context_id)
                )

        self.session.ask(page.create_isolated_world(frame_id=self.target_id, world_name=WORLD), world)
        self.wake()

    def _dismiss(self) -> None:
        if self.persons and not self.claimed and self.standing is None:
            return
        # An open dialog blocks every evaluate in this tab. Accepting could confirm anything.
        self.dialogs_dismissed += 1
        self.session.post(page.handle_java_script_dialog(accept=False))
        self.wake()

    def _gone(self) -> None:
        self.visible = False
        self._on_ended()
        self.wake()

    def _watch_visibility(self, *, renew: bool) -> None:
        """Ask the new document, and go on asking, when it is shown or hidden.

        An unanswered call is the only way that needs no `Runtime.enable` (which bindings need): that
        would bring every console message of the page along.
        """

        self._watch += 1
        watch = self._watch

        def world(answer: page.CreateIsolatedWorldResult | CdpError) -> None:
            if not isinstance(answer, CdpError):
                ask(answer.execution_context_id, None)

        def ask(context: int, last: _Shown | None) -> None:
            def told(answer: runtime.CallFunctionOnResult | CdpError) -> None:
                if isinstance(answer, CdpError) or answer.exception_details or watch != self._watch:
                    return
                now = msgspec.convert(answer.result.value, _Shown)
                was_visible, self.visible = self.visible, now.visible
                hidden = last is not None and now.hides > last.hides
                focused = last is not None and now.focuses > last.focuses
                came = now.visible and (not was_visible or hidden or focused)
                self.on_shown(self, came, bool(was_visible and now.visible and hidden))
                ask(context, now)

            if watch == self._watch:
                seen = -1 if last is None else last.changes
                self.session.ask(
                    runtime.call_function_on(
                        function_declaration=scripts.SHOWN,
                        execution_context_id=context,
                        arguments=[
                            runtime.CallArgument(value=seen),
                            runtime.CallArgument(value=renew and last is None),
                        ],
                        await_promise=True,
                        return_by_value=True,
                    ),
                    told,
                )

        self.session.ask(page.create_isolated_world(frame_id=self.target_id, world_name=WORLD), world)


class _Shown(msgspec.Struct):
    """What shown.js tells."""

    changes: int
    hides: int
    focuses: int
    visible: bool


# What changes a document's address.
_MOVES = (page.FrameNavigated.METHOD, page.DocumentOpened.METHOD, page.NavigatedWithinDocument.METHOD)


def _address(frame: page.Frame) -> str:
    return _bounded(frame.url + (frame.url_fragment or ""))


def _bounded(url: str) -> str:
    return url if len(url) <= MAX_ADDRESS else UNKNOWN


def _mark(url: str) -> bytes:
    """Stands for an address that is only compared: a page may ask for many, of megabytes each."""
    return blake2b(url.encode("utf-8", "replace"), digest_size=16).digest()
