"""The host's terminal: one question at a time, what models were sent as it comes, and a few keys.

Only what was typed after a question was shown is an answer to it. A key counts with Enter.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

import trio

from tabwarden_adapters.approvals import Terminal, TerminalGone
from tabwarden_adapters.cli import host_screen as screen
from tabwarden_adapters.host import Question, QuestionEnd, Questions, Reply, SeenLog

SETTLE_S: Final = 1.0  # nobody reads a question faster: what is typed before was meant for something else
IN_FRONT_CHECK_S: Final = 1.0
NOTICES: Final = 64  # of ours, that wait to be shown


class Keys(Protocol):
    """What the person's keys do, besides answering."""

    def revoke(self) -> None: ...

    def quit(self) -> None: ...

    async def open_private(self) -> bool: ...


class HostFace:
    """Shows questions and log to the person at a terminal. `tell` is for lines of the host's own."""

    def __init__(
        self,
        questions: Questions,
        log: SeenLog,
        keys: Keys,
        facts: Sequence[tuple[str, str]] = (),
        *,
        terminal: str = "/dev/tty",
        settle_s: float = SETTLE_S,
    ) -> None:
        """`facts` are shown first. `settle_s`: what is typed in so many seconds after a question has appeared
        is thrown away."""
        self._questions = questions
        self._log = log
        self._keys = keys
        self._facts = facts
        self._path = terminal
        self._settle_s = settle_s
        self._shown = 0  # of the log
        self._unasked = 0  # as it was last told
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._told = trio.Event()

    def tell(self, text: str) -> None:
        """Show a line of ours, as soon as no question is open. It must hold no words of anybody else."""
        self._notices.append(text)
        self._told.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled, or the terminal is gone for good. While another job is in front of it, nobody is
        there to be asked.

        Raises `ConfigurationError` when there is no terminal; has started once there is one.
        """
        tty = Terminal(self._path)
        task_status.started()
        welcomed = False
        try:
            while True:
                # Nothing tells a job that it has come to the front.
                while not (tty.in_front or tty.hung_up):  # noqa: ASYNC110
                    await trio.sleep(IN_FRONT_CHECK_S)
                with self._questions.attending():
                    try:
                        if not welcomed:
                            await tty.write(screen.welcome(self._facts, tty.width))
                            welcomed = True
                        await self._attend(tty)
                    except TerminalGone:
                        if tty.hung_up or tty.in_front:
                            return
        finally:
            tty.close()

    async def _attend(self, tty: Terminal) -> None:
        while True:
            revision, self._told = self._questions.revision, trio.Event()
            waiting = self._questions.pending()
            if waiting:
                await self._ask(tty, waiting[0], len(waiting) - 1)
            elif (text := self._next(tty.width)) is not None:
                await tty.write(text)
            else:
                await self._listen(tty, revision)

    def _next(self, width: int) -> str | None:
        """What else is to be shown, one piece at a time: a question goes before the rest."""
        if self._notices:
            return screen.said(self._notices.popleft(), width)
        counts = self._questions.counts
        if counts.unasked >= max(1, 2 * self._unasked):
            # Not each time: that would be as tiresome as the questions.
            self._unasked = counts.unasked
            return screen.said(screen.counted(counts), width)
        kept = self._log.after(self._shown)
        if not kept:
            return None
        number, entry = kept[0]
        missed, self._shown = number - self._shown - 1, number
        lost = (
            screen.said(f"{missed} entries were not shown: they came faster than this.", width)
            if missed
            else ""
        )
        return lost + screen.entry(entry, self._log.counts.unclean, width)

    async def _listen(self, tty: Terminal, revision: int) -> None:
        """Until there is something to show, or one key was typed."""
        line = await self._line(
            tty,
            partial(self._questions.changed, revision),
            partial(self._log.wait, self._shown),
            self._told.wait,
        )
        word = "" if line is None else line.strip()
        if word == "p":
            opened = await self._keys.open_private()
            self.tell("A private window is open." if opened else "The browser did not open a window.")
        elif word and not self._command(word):
            self.tell("Nothing is asked. " + screen.HELP)

    async def _ask(self, tty: Terminal, question: Question, more: int) -> None:
        """From showing it until it is answered or withdrawn."""
        await tty.write(screen.question(question, more, tty.width))
        ended = partial(self._ended, question)
        said = await self._line(tty, ended, before=partial(tty.ignore_input, self._settle_s), prompt=True)
        while said is not None and self._questions.end_of(question) is None:
            word = said.strip()
            reply = screen.KEYS.get(word)
            if reply in question.replies and reply is not None:
                if self._questions.answer(question, reply):
                    await tty.write(screen.said(_DONE[reply], tty.width))
                    return
                break
            if not self._command(word):
                await tty.write(screen.said("That is none of the answers above.", tty.width))
            # The rest of something that was pasted is no answer either.
            said = await self._line(tty, ended, before=partial(tty.ignore_input, self._settle_s), prompt=True)
        end = self._questions.end_of(question) or QuestionEnd.WITHDRAWN
        await tty.write("\n" + screen.said(f"This question is gone: {end}.", tty.width))

    async def _line(
        self,
        tty: Terminal,
        *endings: Callable[[], Awaitable[None]],
        before: Callable[[], Awaitable[None]] | None = None,
        prompt: bool = False,
    ) -> str | None:
        """What is typed up to the next end of line, or None once one of `endings` has returned first.

        Raises `TerminalGone`.
        """
        line, gone = None, False
        async with trio.open_nursery() as nursery:

            async def stop_after(ending: Callable[[], Awaitable[None]]) -> None:
                await ending()
                nursery.cancel_scope.cancel()

            for ending in endings:
                nursery.start_soon(stop_after, ending)
            # Not through the nursery: it would come out as a group.
            try:
                if before is not None:
                    await before()
                if prompt:
                    await tty.write(screen.PROMPT)
                line = await tty.read_line()
            except TerminalGone:
                gone = True
            nursery.cancel_scope.cancel()
        if gone:
            raise TerminalGone
        return line

    def _command(self, word: str) -> bool:
        """Do what a key means that is no answer; False for none."""
        if word == "r":
            self._keys.revoke()
            self.tell(
                "Revoked: every engine is told no from now on. One that does not heed that still has the "
                "browser's debugging port; q ends the browser."
            )
        elif word == "q":
            self._keys.quit()
        else:
            return False
        return True

    async def _ended(self, question: Question) -> None:
        while self._questions.end_of(question) is None:
            await self._questions.changed(self._questions.revision)


_DONE = {
    Reply.YES: "Agreed.",
    Reply.CONFIRM: "Agreed; you are asked again before each risky action.",
    Reply.DONE: "The agent is told that it is done.",
    Reply.NO: "Denied.",
}
