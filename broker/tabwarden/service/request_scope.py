"""The life of one call: its deadline and everything that can end it early, each with its cause on record.

A cause is recorded before the trio scope is cancelled, and the first one stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import trio

from tabwarden.errors import ActionError, Code
from tabwarden.limits import Limits
from tabwarden.model import TraceOutcome


class Cause(StrEnum):
    """Why a call was ended from outside."""

    DEADLINE = "deadline"
    REVOKED = "revoked"
    CLOSED = "closed"
    DISCONNECTED = "disconnected"
    POLICY_CHANGED = "policy-changed"


CAUSE_CODE = {
    Cause.DEADLINE: Code.DEADLINE,
    Cause.REVOKED: Code.REVOKED,
    Cause.CLOSED: Code.SHUTTING_DOWN,
    Cause.DISCONNECTED: Code.DISCONNECTED,
    # What was captured under another policy: its caller is told to look again, and nothing of it leaves.
    Cause.POLICY_CHANGED: Code.STALE,
}
CAUSE_TRACE = {
    Cause.DEADLINE: TraceOutcome.DEADLINE,
    Cause.REVOKED: TraceOutcome.REVOKED,
    Cause.CLOSED: TraceOutcome.CLOSED,
    Cause.DISCONNECTED: TraceOutcome.DISCONNECTED,
    Cause.POLICY_CHANGED: TraceOutcome.POLICY_CHANGED,
}


class RequestScope:
    """One trio cancel scope with a recorded cause. Enter `scope` in the task that does the work."""

    __slots__ = ("_cause", "_limits", "scope")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cause: Cause | None = None
        self.scope = trio.CancelScope(deadline=trio.current_time() + limits.action_deadline_s)

    @property
    def cause(self) -> Cause | None:
        """Why the call is over, or None while it may go on. Looks at the clock: a deadline needs no help."""
        if self._cause is None and self.scope.cancel_called:
            self._cause = Cause.DEADLINE
        return self._cause

    @property
    def hard_deadline(self) -> float:
        """When (trio time) the caller is answered even though the work does not stop."""
        return self.scope.deadline + self._limits.cancel_grace_s

    def cancel(self, cause: Cause) -> None:
        """End the call; the first cause stays."""
        if self.cause is None:
            self._cause = cause
        self.scope.cancel(reason=self._cause)

    def check(self) -> None:
        """Raise the typed ending of a call that is over. What a thread or a shield let run on stops here."""
        if self.cause is not None:
            raise ActionError(CAUSE_CODE[self.cause])

    @contextmanager
    def waiting_for_person(self) -> Iterator[None]:
        """While a person is asked, the action deadline stands still and the person's own limit runs.

        Only plain synchronous state changes around the block: nothing is awaited on the way out.
        """
        scope, limits = self.scope, self._limits
        left = max(0.0, scope.deadline - trio.current_time())
        scope.deadline = trio.current_time() + limits.person_wait_s
        try:
            yield
        finally:
            if not scope.cancel_called:
                scope.deadline = trio.current_time() + left
