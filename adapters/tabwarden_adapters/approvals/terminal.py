"""Asks at a terminal: one question at a time, and only what was typed after it was shown is an answer."""

import re
from typing import Final

import trio
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.approvals.board import Ending, NotPending, PendingApprovals, say
from tabwarden_adapters.approvals.screen import question, said
from tabwarden_adapters.approvals.tty import Terminal, TerminalGone

SETTLE_S: Final = 1.0  # nobody reads a question faster: what is typed before was meant for something else
IN_FRONT_CHECK_S: Final = 1.0
PROMPT: Final = "Your answer: "
_MINUTES = re.compile(r"o\s+([0-9]{1,4})")


class TerminalApprover:
    """Shows what waits on a board to the person at a terminal, and takes their answers.

    Whoever can write into that terminal's input can answer: a program of the same user that holds it is as
    good as the person. Agents have no part of it.
    """

    def __init__(
        self, board: PendingApprovals, terminal: str = "/dev/tty", *, settle_s: float = SETTLE_S
    ) -> None:
        """`settle_s`: what is typed in so many seconds after a question has appeared is thrown away."""
        self._board = board
        self._path = terminal
        self._settle_s = settle_s

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ask until cancelled; returns when the terminal is gone for good. While another job is in front of
        the terminal, nobody is there to be asked.

        Raises `ConfigurationError` when there is no terminal; has started once there is one.
        """
        tty = Terminal(self._path)
        task_status.started()
        try:
            while True:
                # Nothing tells a job that it has come to the front.
                while not (tty.in_front or tty.hung_up):  # noqa: ASYNC110
                    await trio.sleep(IN_FRONT_CHECK_S)
                with self._board.attending():
                    try:
                        await self._attend(tty)
                    except TerminalGone:
                        if tty.hung_up or tty.in_front:
                            return
        finally:
            tty.close()

    async def _attend(self, tty: Terminal) -> None:
        while True:
            revision = self._board.revision
            waiting = self._board.pending()
            if waiting:
                await self._ask(tty, waiting[0], len(waiting) - 1)
            else:
                await self._board.changed(revision)

    async def _ask(self, tty: Terminal, request: ApprovalRequest, more: int) -> None:
        """From showing it until it is answered, here or elsewhere, or withdrawn. Raises `TerminalGone`."""
        gone, answered = False, None
        async with trio.open_nursery() as nursery:

            async def stop_when_ended() -> None:
                await self._ended(request)
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_when_ended)
            # Not through the nursery: it would come out as a group.
            try:
                answered = await self._converse(tty, request, more)
            except TerminalGone:
                gone = True
            nursery.cancel_scope.cancel()
        if gone:
            raise TerminalGone
        if answered is None:
            ending = self._board.ending(request.ticket_id) or Ending.UNKNOWN
            answered = f"This question is gone: {say(ending)}."
        await tty.write(said(answered, tty.width))

    async def _converse(self, tty: Terminal, request: ApprovalRequest, more: int) -> str:
        """What to say of the answer that was given."""
        await tty.write(question(request, more, tty.width))
        await tty.ignore_input(self._settle_s)
        while True:
            await tty.write(PROMPT)
            answer = _answer(request, await tty.read_line())
            if answer is None:
                await tty.write(said("That is none of the answers above.", tty.width))
                # The rest of something that was pasted is no answer either.
                await tty.ignore_input(self._settle_s)
                continue
            try:
                self._board.answer(request.ticket_id, answer)
            except NotPending as late:
                return f"Too late: {late}."
            if answer.reach is None:
                return "Denied."
            return "Agreed, this once." if answer.reach is Reach.ONCE else "Agreed."

    async def _ended(self, request: ApprovalRequest) -> None:
        while True:
            revision = self._board.revision
            if self._board.ending(request.ticket_id) is not None:
                return
            await self._board.changed(revision)


def _answer(request: ApprovalRequest, line: str) -> ApprovalAnswer | None:
    """The answer that a line is, or None for anything that is not exactly one of those offered."""
    word = line.strip()
    try:
        if word == "n":
            return request.deny()
        if word == "y":
            return request.allow()
        if word == "s":
            return request.allow(Reach.SESSION)
        if minutes := _MINUTES.fullmatch(word):
            return request.allow(Reach.ORIGIN, int(minutes[1]))
    except ConfigurationError:
        pass
    return None
