"""The questions that wait for a person, for whoever shows them: a terminal, an administration socket."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

import trio
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Remembered
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.errors import ActionError, Code, ConfigurationError, TabwardenError
from tabwarden.ports import Clock
from tabwarden.protocol.primitives import equal

_ENDED_KEPT = 64  # of how many questions it can be told how they ended


class Ending(StrEnum):
    """Why a question is not open any more. A closed set, safe to show."""

    ANSWERED = "answered"
    TIMED_OUT = "timed-out"
    POLICY_CHANGED = "policy-changed"
    REVOKED = "revoked"
    DISCONNECTED = "disconnected"
    CLOSED = "closed"
    WITHDRAWN = "withdrawn"
    NOBODY_THERE = "nobody-there"
    UNKNOWN = "unknown"


# What a scope may have been cancelled with; other reasons are words of somebody and not repeated.
_OF_REASONS: dict[str, Ending] = {
    one.value: one for one in (Ending.POLICY_CHANGED, Ending.REVOKED, Ending.DISCONNECTED, Ending.CLOSED)
}
_SAYS = {
    Ending.ANSWERED: "it was answered already",
    Ending.TIMED_OUT: "nobody answered in time",
    Ending.POLICY_CHANGED: "the policy changed meanwhile",
    Ending.REVOKED: "the agent's rights ended",
    Ending.DISCONNECTED: "the agent left",
    Ending.CLOSED: "the broker is closing",
    Ending.WITHDRAWN: "the agent left, or its rights ended",
    Ending.NOBODY_THERE: "nobody was there to answer",
    Ending.UNKNOWN: "there is no such request",
}


def say(ending: Ending) -> str:
    """The ending in words for people."""
    return _SAYS[ending]


class NotPending(TabwardenError):
    """The request that was to be answered is not open (any more). `ending` says why; nothing was changed."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(say(ending))
        self.ending = ending


class _Entry:
    __slots__ = ("answer", "ended", "ending", "request")

    def __init__(self, request: ApprovalRequest) -> None:
        self.request = request
        self.ended = trio.Event()
        self.ending: Ending | None = None
        self.answer: ApprovalAnswer | None = None


class PendingApprovals:
    """Implements `tabwarden.ports.Approver`: holds each question until somebody answers it.

    While nobody is `attending`, there is nobody to ask: questions end with `no-approver`. All methods are for
    the event loop's own thread. Nothing here is for agents: give it to people's channels only.
    """

    def __init__(self, book: ApprovalBook, clock: Clock, policy_version: Callable[[], int]) -> None:
        """`book` and `policy_version` are those of the `ApprovingAuthorizer`."""
        self._book = book
        self._clock = clock
        self._policy_version = policy_version
        self._entries: dict[str, _Entry] = {}
        self._endings: OrderedDict[str, Ending] = OrderedDict()
        self._attending = 0
        self._revision = 0
        self._changed = trio.Event()

    async def ask(self, request: ApprovalRequest, /) -> ApprovalAnswer:
        """See `Approver`. Cancelling it withdraws the request."""
        if not self._attending:
            raise ActionError(Code.NO_APPROVER, rule=request.rule)
        if request.ticket_id in self._entries:
            raise ValueError("this ticket is open already")
        entry = self._entries[request.ticket_id] = _Entry(request)
        self._tell()
        try:
            await entry.ended.wait()
        except trio.Cancelled as cancelled:
            self._end(entry, _ending_of(cancelled))
            raise
        finally:
            self._end(entry, Ending.WITHDRAWN)
        if entry.answer is not None:
            return entry.answer
        timed_out = entry.ending is Ending.TIMED_OUT
        raise ActionError(Code.APPROVAL_TIMEOUT if timed_out else Code.NO_APPROVER, rule=request.rule)

    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The open requests, the oldest first."""
        self._end_expired()
        return tuple(entry.request for entry in self._entries.values())

    def answer(self, ticket_id: str, answer: ApprovalAnswer) -> None:
        """Answer a request: exactly once, the first answer wins.

        Raises `NotPending`, and `ConfigurationError` for an answer that is none to this request, which then
        stays open. A yes is no promise that the action happens: policy and page are looked at once more.
        """
        self._end_expired()
        entry = self._entries.get(ticket_id)
        if entry is None:
            raise NotPending(self._endings.get(ticket_id, Ending.UNKNOWN))
        if not equal(answer.digest, entry.request.digest):
            raise ConfigurationError("digest: this answers another request; look at the open ones again")
        if answer.reach is not None and answer.reach not in entry.request.reaches:
            raise ConfigurationError(f"reach: {answer.reach.value} is not possible for this request")
        entry.answer = answer
        self._end(entry, Ending.ANSWERED)

    def ending(self, ticket_id: str) -> Ending | None:
        """How a request ended, or None while it is open. Of old ones only `unknown` is known."""
        return None if ticket_id in self._entries else self._endings.get(ticket_id, Ending.UNKNOWN)

    def remembered(self) -> tuple[Remembered, ...]:
        """The agreements that reach further than one call and still hold, the oldest first."""
        return self._book.remembered(self._policy_version(), self._clock.boottime_ms())

    def forget(self, agreed_id: str) -> bool:
        """Take an agreement back, at once. False when there is none with this id."""
        found = self._book.forget(agreed_id)
        self._tell()
        return found

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Say that questions can reach a person while the block runs. When the last one leaves, what is open
        ends with `no-approver`."""
        self._attending += 1
        try:
            yield
        finally:
            self._attending -= 1
            if not self._attending:
                for entry in list(self._entries.values()):
                    self._end(entry, Ending.NOBODY_THERE)

    @property
    def revision(self) -> int:
        """A number that goes up with each change of what is open."""
        return self._revision

    async def changed(self, after: int) -> int:
        """Return the revision as soon as it is higher than `after`."""
        while self._revision <= after:
            await self._changed.wait()
        await trio.lowlevel.checkpoint()
        return self._revision

    def _end_expired(self) -> None:
        # The caller's own limit stands still while the machine sleeps; the ticket's does not.
        now = self._clock.boottime_ms()
        for entry in list(self._entries.values()):
            if now >= entry.request.expires_at_ms:
                self._end(entry, Ending.TIMED_OUT)

    def _end(self, entry: _Entry, ending: Ending) -> None:
        """The first ending stays."""
        ticket_id = entry.request.ticket_id
        if self._entries.get(ticket_id) is not entry:
            return
        del self._entries[ticket_id]
        entry.ending = self._endings[ticket_id] = ending
        if len(self._endings) > _ENDED_KEPT:
            self._endings.popitem(last=False)
        entry.ended.set()
        self._tell()

    def _tell(self) -> None:
        self._revision += 1
        self._changed.set()
        self._changed = trio.Event()


def _ending_of(cancelled: trio.Cancelled) -> Ending:
    if cancelled.source == "deadline":
        return Ending.TIMED_OUT
    return _OF_REASONS.get(cancelled.reason or "", Ending.WITHDRAWN)
