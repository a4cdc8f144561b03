"""One call on one captured tab, with every check that the adapters make around a host's callbacks."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, TypeGuard

from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller, Role
from tabwarden.ports import CallContext, RequestTrace

from tabwarden_adapters.browser.contract import (
    CapturedContext,
    ContextCurrent,
    DestinationPolicy,
    GetContext,
    PolicyVersion,
)
from tabwarden_adapters.browser.urls import destination

BROKEN: Final = "host-contract"  # the audit's rule when a callback answered what the contract does not know


def broken(committed: bool | None = False) -> ActionError:
    """The host answered what the contract does not know."""
    return ActionError(Code.FAILURE, rule=BROKEN, committed=committed)


class HostOperation:
    """Implements `Operation`, and with it `CallContext`."""

    def __init__(
        self,
        call: CallContext,
        policy_version: PolicyVersion | None,
        why_gone: Callable[[], Code] | None = None,
    ) -> None:
        self._call = call
        self._policy_version = policy_version
        self._pinned = None if policy_version is None else checked_version(policy_version())
        self._context_current: ContextCurrent = lambda token: False
        self._why_gone = why_gone
        self.captured: CapturedContext | None = None
        self.url = ""
        self.committed: bool | None = False

    # ---- CallContext --------------------------------------------------------------------------------

    @property
    def caller(self) -> Caller:
        """See `CallContext`."""
        return self._call.caller

    @property
    def action(self) -> str:
        """See `CallContext`."""
        return self._call.action

    @property
    def role(self) -> Role:
        """See `CallContext`."""
        return self._call.role

    @property
    def scopes(self) -> frozenset[str]:
        """See `CallContext`."""
        return self._call.scopes

    @property
    def trace(self) -> RequestTrace:
        """See `CallContext`."""
        return self._call.trace

    def effects_begin(self) -> None:
        """See `CallContext`."""
        if self.committed is False:
            self.committed = None
            self._call.effects_begin()

    def effects_done(self) -> None:
        """See `CallContext`."""
        if self.committed is not True:
            self.committed = True
            self._call.effects_done()

    def waiting_for_person(self) -> AbstractContextManager[None]:
        """See `CallContext`."""
        return self._call.waiting_for_person()

    def check(self) -> None:
        """Raise `ActionError` when the call is over, or `stale` when its policy is."""
        self._call.check()
        if not self.policy_holds:
            raise ActionError(Code.STALE, committed=self.committed)

    # ---- the capture --------------------------------------------------------------------------------

    def pin(
        self, captured: CapturedContext, get_context: GetContext, context_current: ContextCurrent
    ) -> None:
        """From now on this is the captured tab. Raises `ActionError` unless it is ready and current."""
        self.captured = captured
        self.url = captured.page.url
        self._context_current = context_current
        self._why_gone = lambda: why_gone(get_context, captured.session_id)
        if self._policy_version is not None and captured.policy_version is not None:
            self._pinned = captured.policy_version
        if not captured.ready:
            raise ActionError(Code.SESSION_GONE)
        self.require_current()

    @property
    def context(self) -> CapturedContext:
        """The captured tab of an action that has one."""
        if self.captured is None:
            raise broken(self.committed)
        return self.captured

    @property
    def session_id(self) -> str | None:
        """Its id."""
        return None if self.captured is None else self.captured.session_id

    @property
    def policy_version(self) -> int:
        """The version that this call is held to; 0 when the host has none."""
        return self._pinned or 0

    @property
    def policy_known(self) -> bool:
        """True when the host tells when its policy changes."""
        return self._policy_version is not None

    @property
    def policy_holds(self) -> bool:
        """True while the policy is the captured one, as far as the host tells."""
        return self._policy_version is None or checked_version(self._policy_version()) == self._pinned

    def current(self) -> bool:
        """See `Operation`."""
        return self.captured is not None and self._context_current(self.captured.token) is True

    def require_current(self) -> None:
        """`check`, and raise `stale` or `session-gone` unless `current`."""
        self.check()
        if not self.current():
            code = Code.STALE if self._why_gone is None else self._why_gone()
            raise ActionError(code, committed=self.committed)

    def allowed(self, url_href: str) -> bool:
        """See `Operation`."""
        return self.captured is not None and permits(self.captured, self.caller, url_href)

    def require_destination(self) -> str:
        """The normal form of the captured address. Raises `destination-denied`."""
        href = destination(self.url)
        if href is None or not self.allowed(href):
            raise ActionError(Code.DESTINATION_DENIED, committed=self.committed)
        return href


def permits(context: CapturedContext, caller: Caller, url_href: str) -> bool:
    """What a context's predicate says. Only True allows; one that cannot answer allows nothing."""
    predicate: DestinationPolicy = context.destination_allowed
    try:
        return predicate(caller, url_href) is True
    except Exception:
        return False


def why_gone(get_context: GetContext, session_id: str) -> Code:
    """Whether a tab whose capture is out of date is still there at all."""
    try:
        again = get_context(session_id)
    except ActionError:
        again = None
    return Code.SESSION_GONE if again is None else Code.STALE


def checked_version(version: object) -> int:
    """A policy version, if it is one. Raises `ActionError`."""
    if not is_count(version):
        raise broken(None)
    return version


def checked_context(captured: object, session_id: str | None) -> CapturedContext:
    """What a host captured, if it is a context of the tab that was asked for. Raises `ActionError`."""
    if captured is None:
        raise ActionError(Code.UNKNOWN_SESSION)
    if type(captured) is not CapturedContext or not _well_typed(captured):
        raise broken()
    # Without an id, the tab in front was asked for.
    if (session_id is None and not captured.foreground) or session_id not in (None, captured.session_id):
        raise broken()
    return captured


def _well_typed(context: CapturedContext) -> bool:
    return (
        type(context.session_id) is str
        and type(context.ready) is bool
        and type(context.foreground) is bool
        and type(context.interactive) in (bool, type(None))
        and (context.policy_version is None or is_count(context.policy_version))
        and is_count(context.dialogs_dismissed)
        and type(context.opened_sessions) is tuple
        and all(type(one) is str for one in context.opened_sessions)
        and callable(context.destination_allowed)
        and type(getattr(context.page, "url", None)) is str
    )


def is_count(value: object) -> TypeGuard[int]:
    """True for an integer from 0 on, which a bool is not."""
    return type(value) is int and value >= 0
