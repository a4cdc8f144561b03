"""What a host that brings its own browser gives to `create_agent_adapters`, and gets back from it.

Every callback is a plain function of the host. None of them is believed: the adapters check each answer's
type, session, readiness and destination themselves. docs/embedding.md shows a whole host.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tabwarden import actions
from tabwarden.model import Caller
from tabwarden.ports import CallContext

Deed = actions.Click | actions.Type | actions.Select | actions.Check | actions.Scroll

PolicyVersion = Callable[[], int]  # the policy's current version; changes whenever the policy does


class DestinationPolicy(Protocol):
    """May `caller` see and reach `url_href`? Answers at once, from current policy; only True allows, and
    raising denies.

    `url_href` is an HTTP(S) URL in WHATWG normal form, without credentials or a trailing dot.
    """

    def __call__(self, caller: Caller, url_href: str, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Acted:
    """What came along with a completed action: dialogs dismissed, and the ids of tabs that it opened."""

    dialogs_dismissed: int
    opened_sessions: tuple[str, ...]


class Operation(CallContext, Protocol):
    """The call that a callback serves. Its `check` also raises `stale` once the policy has another version.

    Say `effects_begin` before the first side effect and `effects_done` when it has happened: every outcome
    tells the agent and the audit what is known of them.
    """

    @property
    def captured(self) -> "CapturedContext | None":
        """The tab that was captured for this call; None for an action without one."""
        ...

    def current(self) -> bool:
        """True while the host says that the capture is what is there (`context_current`)."""
        ...

    def allowed(self, url_href: str) -> bool:
        """What the captured context's destination predicate says of an address, for this caller."""
        ...


class Page(Protocol):
    """Exactly the document that a tab showed when it was captured; every other one is out of its reach."""

    @property
    def url(self) -> str:
        """The address of that document, as the browser has it."""
        ...

    async def run(self, script: str, arguments: Sequence[Any], operation: Operation, /) -> object:
        """Call a function in an isolated world of the document, and return its answer as JSON values.

        `script` is one of our fixed function expressions in JavaScript; `arguments` are JSON values, passed
        as values and never spliced into source; `this` is the document. Nothing of the page may be able to
        see or change that world. Raises `ActionError`: `stale` or `session-gone` when the document is no
        longer there.
        """
        ...

    async def act(self, deed: Deed, operation: Operation, /) -> Acted:
        """Scroll, click, type, select or check by real input events, as docs/acting.md promises it.

        Check `operation` and `operation.current()` around every step up to the first event. Raises
        `ActionError`; `not-available` when this browser cannot.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedContext:
    """One captured tab.

    `ready`: it can be worked on. `foreground`: it is the visible tab in front. `interactive`: False while
    something covers the page, which prevents what acts on it; None means that the host does not say.
    `token` and `policy` are the host's own and never looked into; `token` goes back to `context_current`.
    `policy_version` is that of the policy that this capture was made under. `dialogs_dismissed` counts
    those of this tab so far. `opened_sessions` are the ids of the tabs that a navigation made its page open;
    one of them may be in front then.
    """

    session_id: str
    ready: bool
    foreground: bool
    page: Page
    destination_allowed: DestinationPolicy
    token: object = field(repr=False)
    interactive: bool | None = None
    policy: object = field(default=None, repr=False)
    policy_version: int | None = None
    dialogs_dismissed: int = 0
    opened_sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One line of the inventory. `url` is the address of the document that has this title: it is for
    judging only, and a title without a right to its page is withheld."""

    id: str
    title: str = field(repr=False)
    foreground: bool
    url: str = field(repr=False)


class GetContext(Protocol):
    """Capture a tab: the one with this id, or the one in front for None. Answers at once, from what the host
    knows. None, or `ActionError` with `unknown-session`: there is no such tab."""

    def __call__(self, session_id: str | None, /) -> CapturedContext | None: ...


class GetSessions(Protocol):
    """The native inventory of tabs that agents may know of, in order."""

    async def __call__(self) -> Sequence[SessionInfo]: ...


class ContextCurrent(Protocol):
    """True while the capture with this token is what is there: the same native tab, no navigation since, in
    front without a break when it was captured there, under the same policy. Answers at once."""

    def __call__(self, token: Any, /) -> bool: ...


class Navigate(Protocol):
    """Load `url` in the captured tab, and return a fresh context of that tab when it has loaded.

    The host holds to the capture up to the load's beginning, judges every redirect by `operation.allowed`
    before it is followed, and keeps the captured activation: a tab that was switched away from meanwhile does
    not become current again. Raises `ActionError`: `navigation-failed`, `destination-denied`, `stale`.
    """

    async def __call__(
        self, url: str, captured: CapturedContext, operation: Operation, /
    ) -> CapturedContext: ...


class History(Protocol):
    """Go `by` entries (-1: back, 1: forward) in the captured tab's history. The entry's address is judged
    before anything is sent. As `Navigate`; raises `not-available` when there is no such entry."""

    async def __call__(
        self, by: int, captured: CapturedContext, operation: Operation, /
    ) -> CapturedContext: ...


class Reload(Protocol):
    """Load the captured document again, without sending a form again. As `Navigate`."""

    async def __call__(self, captured: CapturedContext, operation: Operation, /) -> CapturedContext: ...


class AiGateway(Protocol):
    """Ask the centrally configured model. `prompt` has been inspected; the answer will be."""

    async def __call__(self, prompt: str, captured: CapturedContext, operation: Operation, /) -> str: ...


class AppControl(Protocol):
    """One fixed operation of the application, e.g. `bookmarks:list`. `arguments` are of the action table's
    type; the answer is of its result type, or converts to it.

    The host enforces visibility, locks and revisions. When the policy is no longer at `policy_version` once
    the callback has returned, its answer is withheld.
    """

    async def __call__(self, arguments: Any, operation: Operation, policy_version: int, /) -> object: ...


@dataclass(frozen=True, slots=True)
class AdapterEvent:
    """What the adapters tell `audit`: a closed set, nothing of arguments, pages or results.

    `started` comes before the action's first effect. Exactly one other follows, with `committed` as
    `ActionError` has it. `session_id` is the tab that was captured, also when the agent named none.
    """

    action: str
    session_id: str | None
    outcome: Literal["started", "completed", "denied", "failed"]
    committed: bool | None = False


class AdapterAudit(Protocol):
    """Record one event. Raising prevents the action, or withholds its result."""

    async def __call__(self, event: AdapterEvent, /) -> None: ...
