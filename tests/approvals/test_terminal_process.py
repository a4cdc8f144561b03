"""A controlling terminal with its signals: Ctrl-C, and another job in front."""

import fcntl
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from tests.approvals.screens import Screen

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def process(mode: str, screen: Screen) -> Iterator["subprocess.Popen[str]"]:
    slave = screen._slave

    def take_the_terminal() -> None:
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [sys.executable, "-m", "tests.approvals.terminal_process", mode],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=take_the_terminal,  # noqa: PLW1509
        pass_fds=(slave,),
    ) as running:
        try:
            yield running
        finally:
            running.kill()


async def said(running: "subprocess.Popen[str]") -> str:
    assert running.stdout is not None
    with trio.fail_after(60):
        line: str = await trio.to_thread.run_sync(running.stdout.readline, abandon_on_cancel=True)
    return line.strip()


async def test_ctrl_c_ends_the_broker_and_answers_nothing() -> None:
    screen = Screen()
    try:
        with process("interrupted", screen) as running:
            await screen.shows("Your answer: ")
            screen.type("y")  # not finished
            screen.type("\x03")
            # The interrupt comes out wherever the process is just then: at the question or at its terminal.
            lines = [await said(running)]
            if lines == ["no-approver"]:
                lines = [await said(running)]
            assert [*lines, await said(running)] == ["withdrawn", "interrupted"]
            assert running.wait(30) == 0
    finally:
        screen.close()


async def test_another_job_in_front_is_nobody_there_and_stops_nothing() -> None:
    screen = Screen()
    try:
        with process("background", screen) as running:
            assert await said(running) == "no-approver"
            screen.type("y\n")  # for the other job
            await screen.shows("asked by rule: in front")
            await screen.shows("Your answer: ")
            screen.type("n\n")
            assert await said(running) == "no"
            await screen.shows("asked by rule: behind again")
            await screen.shows("Your answer: ")
            assert running.stdin is not None
            running.stdin.write("\n")
            running.stdin.flush()
            assert await said(running) == "behind"
            screen.type("y\n")  # again for the other job: SIGTTIN would stop who reads it
            assert await said(running) == "no-approver"
            assert await said(running) == "not stopped"
            assert running.wait(30) == 0
    finally:
        screen.close()
