"""A process with a controlling terminal: asks there, and says on standard output what came of it."""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator

import trio
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.clock import SystemClock
from tabwarden.errors import ActionError
from tabwarden_adapters.approvals import PendingApprovals, TerminalApprover
from tabwarden_adapters.approvals import terminal as terminal_module

from tests.approvals.support import request
from tests.attacks.serving import until

PR_SET_PDEATHSIG = 1
TERMINAL = -1  # the controlling one
terminal_module.IN_FRONT_CHECK_S = 0.02  # type: ignore[misc]


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Asker:
    def __init__(self) -> None:
        clock = SystemClock()
        self.board = PendingApprovals(ApprovalBook(), clock, lambda: 1)
        self.clock = clock

    async def ask(self, ticket_id: str) -> str:
        now = self.clock.boottime_ms()
        try:
            answer = await self.board.ask(
                request(ticket_id, rule=ticket_id, asked_at_ms=now, expires_at_ms=now + 300_000)
            )
        except ActionError as error:
            return error.code.value
        return "no" if answer.reach is None else answer.reach.value

    async def attended(self, wanted: bool) -> None:
        await until(lambda: bool(self.board._attending) is wanted, seconds=60)


@contextlib.contextmanager
def another_job() -> Iterator[int]:
    """A process in a group of its own, to be put in front of the terminal."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    os.setpgid(pid, pid)
    try:
        yield pid
    finally:
        os.close(writing)
        os.waitpid(pid, 0)


async def interrupted(asker: Asker) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(TerminalApprover(asker.board, settle_s=0).run)
        await asker.attended(True)
        try:
            tell(await asker.ask("first"))
        finally:
            tell("withdrawn" if not asker.board.pending() else "still open")


async def in_the_background(asker: Asker) -> None:
    with another_job() as job:
        async with trio.open_nursery() as nursery:
            os.tcsetpgrp(TERMINAL, job)
            nursery.start_soon(TerminalApprover(asker.board, settle_s=0).run)
            tell(await asker.ask("while in the background"))
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(TERMINAL, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            await asker.attended(True)
            tell(await asker.ask("in front"))

            async def go_back() -> None:
                """It shows, and then somebody puts the broker behind another job and types there."""
                await trio.to_thread.run_sync(sys.stdin.readline)
                os.tcsetpgrp(TERMINAL, job)
                tell("behind")

            nursery.start_soon(go_back)
            tell(await asker.ask("behind again"))
            nursery.cancel_scope.cancel()
    tell("not stopped")


def run(mode: str) -> None:
    try:
        trio.run({"interrupted": interrupted, "background": in_the_background}[mode], Asker())
    except* KeyboardInterrupt:
        tell("interrupted")


def under_a_shell(mode: str) -> None:
    """As a job of a shell. Without one in its session a process group is orphaned, and the terminal's signals
    do not stop it (POSIX.1-2017, 11.1.4)."""
    pid = os.fork()
    if pid == 0:
        # Whoever reads what we say would wait for us, if the shell alone were killed (prctl(2)).
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever these tests were started by
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setpgid(0, 0)
        while os.tcgetpgrp(TERMINAL) != os.getpgrp():
            pass
        run(mode)
        os._exit(0)
    with contextlib.suppress(PermissionError):
        os.setpgid(pid, pid)
    os.tcsetpgrp(TERMINAL, pid)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        tell("stopped")
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    TERMINAL = os.open("/dev/tty", os.O_RDWR)
    under_a_shell(sys.argv[1])
