"""Who is asked in a served broker, and what an administrator sees of it."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError
from tabwarden.model import Caller
from tabwarden.ports import AuditSink, Authorizer

from tabwarden_adapters.administration import AnswerApproval
from tabwarden_adapters.approvals import (
    AgreementEnds,
    ApprovalBook,
    ApprovalRequest,
    ApprovingAuthorizer,
    Ending,
    PendingApprovals,
    Place,
    Reach,
    Remembered,
    TerminalApprover,
    origin_of,
    say,
)
from tabwarden_adapters.browser import WhereIs
from tabwarden_adapters.cli.settings import ApproverName


class Consent:
    """The questions of one broker. Only one channel answers: with the terminal, the socket does not."""

    def __init__(
        self,
        policy: Authorizer,
        policy_version: Callable[[], int],
        where: WhereIs,
        approver: ApproverName | None,
    ) -> None:
        """`approver` None: the terminal, if this process has one."""
        self._clock = SystemClock()
        self._book = ApprovalBook()
        self._board = PendingApprovals(self._book, self._clock, policy_version)
        self.approver: Final[ApproverName] = approver or ("terminal" if _has_terminal() else "none")

        def place(caller: Caller, session_id: str | None, /) -> Place | None:
            there = where(caller, session_id)
            return None if there is None else Place(origin_of(there.url), there.current)

        self.authorize: Final = ApprovingAuthorizer(
            policy,
            self._board,
            book=self._book,
            clock=self._clock,
            policy_version=policy_version,
            place=place,
        )

    def audit(self, sink: AuditSink) -> AuditSink:
        """`sink`, through which agreements end with the rights of the agent that they were given to."""
        return AgreementEnds(sink, self._book)

    @asynccontextmanager
    async def attended(self) -> AsyncIterator[None]:
        """Somebody can be asked while the block runs; nobody with the approver `none`.

        Raises `ConfigurationError` when there is no terminal to ask at.
        """
        if self.approver == "none":
            yield
        elif self.approver == "command":
            with self._board.attending():
                yield
        else:
            async with trio.open_nursery() as nursery:
                await nursery.start(TerminalApprover(self._board).run)
                yield
                nursery.cancel_scope.cancel()

    def listed(self) -> dict[str, Any]:
        """What is open, and what was agreed to for longer than once."""
        now = self._clock.boottime_ms()
        return {
            "approver": self.approver,
            "pending": [_asked(one, now) for one in self._board.pending()],
            "remembered": [_agreed(one, now) for one in self._board.remembered()],
        }

    def answer(self, answer: AnswerApproval) -> dict[str, Any]:
        """Raises `ConfigurationError`."""
        if self.approver != "command":
            raise ConfigurationError(
                'this broker does not take answers from here: start it with approver = "command"'
            )
        request = next((one for one in self._board.pending() if one.ticket_id == answer.ticket), None)
        if request is None:
            ending = self._board.ending(answer.ticket) or Ending.UNKNOWN
            raise ConfigurationError(f"{say(ending)}: see `tabwarden approvals list`")
        if answer.answer == "deny":
            given = request.deny()
        else:
            given = request.allow(Reach(answer.answer), answer.minutes)
        self._board.answer(answer.ticket, given)
        return {"ticket": answer.ticket, "answer": answer.answer}

    def forget(self, agreed: str) -> dict[str, Any]:
        """Take an agreement back."""
        return {"id": agreed, "forgotten": self._board.forget(agreed)}


def _has_terminal() -> bool:
    """Whether this process can talk with a person: it has a controlling terminal that it prints to."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return os.isatty(2)


def _asked(request: ApprovalRequest, now: int) -> dict[str, Any]:
    return {
        "ticket": request.ticket_id,
        "agent": request.caller.principal_id,
        "action": request.action,
        "scope": request.policy_scope,
        "session": request.session_id,
        "origin": request.origin,
        "summary": request.summary,
        "facts": [
            {"label": fact.label, "text": fact.text, "by_agent": fact.by_agent} for fact in request.facts
        ],
        "reaches": sorted(reach.value for reach in request.reaches),
        "seconds_left": max(0, request.expires_at_ms - now) // 1000,
    }


def _agreed(one: Remembered, now: int) -> dict[str, Any]:
    return {
        "id": one.id,
        "agent": one.caller.principal_id,
        "scope": one.policy_scope,
        "reach": one.reach.value,
        "session": one.session_id,
        "origin": one.origin,
        "minutes_left": max(0, one.expires_at_ms - now) // 60_000,
    }
