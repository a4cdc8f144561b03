"""Captured tabs: what an operation was allowed on, and whether that is still what is there.

Every operation goes capture -> check -> act -> check; `Binding` puts the checks around each await.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser.cdp import (
    CdpError,
    Command,
    ReplyTooLarge,
    SessionEnded,
    TooManyCommands,
)
from tabwarden_adapters.browser.inventory import Tabs
from tabwarden_adapters.browser.tab import Tab

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ContextToken:
    """Identity of a captured tab. `activation` is None when it was not in front when captured."""

    target_id: str
    loader_id: str
    navigation: int
    activation: int | None
    policy: int


@dataclass(frozen=True, slots=True)
class TabContext:
    """One captured tab. `url` is the address of its document, as Chromium reports it. `opened` names the tabs
    that came of an intended navigation."""

    session_id: str
    ready: bool
    foreground: bool
    interactive: bool
    url: str
    token: ContextToken
    policy_version: int
    opened: tuple[str, ...] = ()


class Captures:
    """Makes and judges tokens. `policy_version` changes whenever the policy does."""

    def __init__(self, inventory: Tabs, policy_version: Callable[[], int]) -> None:
        self._inventory = inventory
        self._policy_version = policy_version

    def capture(self, tab: Tab, *, keep: ContextToken | None = None) -> TabContext:
        """Pin what `tab` shows now. With `keep`, an intended navigation's token, its activation and policy
        generation stay: what switched away or was forbidden meanwhile does not become valid again.

        Raises `ActionError` with `session-gone`.
        """
        document = tab.document
        if document is None or not tab.ready:
            raise ActionError(Code.SESSION_GONE)
        foreground = tab is self._inventory.foreground
        policy = self._policy_version()
        if keep is None:
            activation = tab.activation if foreground else None
        else:
            activation, policy = keep.activation, keep.policy
        token = ContextToken(tab.target_id, document.loader_id, tab.navigation, activation, policy)
        return TabContext(tab.id, True, foreground, foreground, document.url, token, policy)

    def current(self, token: ContextToken) -> bool:
        """True while nothing has happened that makes the capture another one."""
        return self._why_not(token) is None

    def policy_holds(self, token: ContextToken) -> bool:
        """True while the policy is the captured one."""
        return self._policy_version() == token.policy

    def in_place(self, token: ContextToken, *, behind: bool) -> bool:
        """True while the tab shows the captured document under the captured policy, moved within it or not.
        With `behind`, it need not be in front any more: what a click does by itself."""
        tab = self._inventory.by_target(token.target_id)
        if tab is None or tab not in self._inventory.tabs() or tab.document is None:
            return False
        in_front = tab is self._inventory.foreground and tab.activation == token.activation
        same = tab.document.loader_id == token.loader_id and self.policy_holds(token)
        return same and (in_front or behind or token.activation is None)

    def require(self, token: ContextToken) -> Tab:
        """The captured tab. Raises `ActionError` with `session-gone` or `stale`."""
        code = self._why_not(token)
        tab = self._inventory.by_target(token.target_id)
        if code is not None or tab is None:
            raise ActionError(code or Code.SESSION_GONE)
        return tab

    def _why_not(self, token: ContextToken) -> Code | None:
        tab = self._inventory.by_target(token.target_id)
        if tab is None or tab not in self._inventory.tabs() or tab.document is None:
            return Code.SESSION_GONE
        if tab.document.loader_id != token.loader_id or tab.navigation != token.navigation:
            return Code.STALE
        in_front = tab is self._inventory.foreground and tab.activation == token.activation
        if token.activation is not None and not in_front:
            return Code.STALE
        if self._policy_version() != token.policy:
            return Code.STALE
        return None


class Checked(Protocol):
    """What may end while it goes on (`CallContext`)."""

    def check(self) -> None:
        """Raise `ActionError` when it is over."""
        ...


class Binding:
    """CDP calls of one operation: the call and the capture are checked before and after each."""

    def __init__(self, captures: Captures, token: ContextToken, context: Checked) -> None:
        self._captures = captures
        self._token = token
        self._context = context

    def check(self) -> Tab:
        """Raise `ActionError` when the call has ended or the capture is out of date."""
        self._context.check()
        return self._captures.require(self._token)

    async def call(self, command: Command[T]) -> T:
        """`Session.call` on the captured tab, with its errors translated."""
        tab = self.check()
        try:
            result = await tab.session.call(command)
        except CdpError as error:
            self.check()  # a document that has gone fails every command: say which it was
            raise translated(error) from None
        self.check()
        return result


@contextmanager
def claimed(tab: Tab) -> Iterator[None]:
    """Nothing else acts in the tab while the block runs. Raises `ActionError` with
    `browser-management-busy` when something does already."""
    if tab.claimed:
        raise ActionError(Code.BUSY)
    tab.claimed = True
    try:
        yield
    finally:
        tab.claimed = False


def translated(error: CdpError) -> ActionError:
    """The typed ending that stands for a CDP error. What side effects it had is not known here."""
    if isinstance(error, SessionEnded):
        return ActionError(Code.SESSION_GONE, committed=None)
    if isinstance(error, TooManyCommands):
        return ActionError(Code.BUSY)
    if isinstance(error, ReplyTooLarge):
        return ActionError(Code.RESULT_TOO_LARGE, committed=None)
    return ActionError(Code.FAILURE, committed=None)
