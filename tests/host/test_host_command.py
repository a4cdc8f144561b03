"""`tabwarden host` in a process of its own, on a real Chromium, with a person on a pseudo-terminal."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import termios
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from tabwarden_adapters.host import (
    AllTargets,
    Answer,
    ApprovalKind,
    HostPolicy,
    HostProblem,
    LogEntry,
    SiteMode,
)

from tests.approvals.screens import Screen
from tests.cli.running import LIMIT_S, environment
from tests.host.support import private_home

SHOP, OFF = "https://shop.test", "https://off.test"
CARD = "4111111111111111"
PROMPT = "Your answer: "


@contextmanager
def hosting(home: Path, *arguments: str, screen: Screen | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    """The command, without a terminal or as the job in front of one. Nothing of it is left."""
    command = [sys.executable, "-m", "tabwarden_adapters.cli", "host", "--headless", "--home", str(home)]
    end = subprocess.PIPE if screen is None else screen._slave

    def take_the_terminal() -> None:
        if screen is not None:
            fcntl.ioctl(screen._slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL if screen is None else end,
        stdout=end,
        stderr=end,
        env=environment(home),
        start_new_session=True,
        preexec_fn=take_the_terminal,  # noqa: PLW1509
        pass_fds=() if screen is None else (screen._slave,),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)


def chromium_of(process: "subprocess.Popen[bytes]") -> tuple[int, Path]:
    """A descriptor of its Chromium's first process (pidfd_open(2)), and the folder of the profile."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in map(int, children):
        for argument in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            if argument.startswith(b"--user-data-dir="):
                return os.pidfd_open(pid), Path(argument.partition(b"=")[2].decode()).parent
    raise AssertionError("no Chromium")


async def line_of(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return await trio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)


async def pages(port: int) -> set[str]:
    """The ids of the pages that the debugging port lists, as an engine asks for them."""

    def ask() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=LIMIT_S) as reply:
            return list(json.load(reply))

    return {one["id"] for one in await trio.to_thread.run_sync(ask) if one["type"] == "page"}


async def test_a_session_with_a_person_at_the_terminal(tmp_path: Path) -> None:
    home, screen = private_home(tmp_path), Screen()
    policy = HostPolicy(home, answer_s=LIMIT_S)
    answers: list[object] = []

    async def approve() -> None:
        answers.append(await policy.approve(ApprovalKind.SITE, SHOP, "Find blue shoes"))

    async def hand_over() -> None:
        answers.append(await policy.wait_for_user("Please log in", SHOP))

    try:
        with trio.fail_after(110), hosting(home, "--ask", "shop.test", screen=screen) as process:
            assert "asked about: shop.test" in await screen.shows("q ends the host")
            assert await policy.site_mode(SHOP) is SiteMode.ASK
            assert await policy.site_mode(OFF) is SiteMode.OFF
            assert await policy.approve(ApprovalKind.SITE, OFF, "x") is Answer.NO  # and nobody is asked
            assert await policy.open_tab(f"http://{SHOP}/") is False

            async with trio.open_nursery() as nursery:
                nursery.start_soon(approve)
                shown = await screen.shows(PROMPT)
                assert '│ "Find blue shoes"' in shown
                assert f"site, as the engine names it: {SHOP}" in shown
                screen.type("c\n")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hand_over)
                assert "Please log in" in await screen.shows(PROMPT)
                screen.type("d\n")
            assert answers == [Answer.CONFIRM, True]

            assert await policy.log(LogEntry("prompt", SHOP, f"pay with {CARD}", 7, 1)) is True
            await screen.shows('sent to a model: "prompt"  7 tokens')

            port = policy.attach().cdp_port
            (ordinary,) = await pages(port)
            screen.type("p\n")
            await screen.shows("A private window is open.")
            (private,) = await pages(port) - {ordinary}
            excluded = await policy.excluded_targets()
            assert private in excluded
            assert ordinary not in excluded

            assert await policy.open_tab(f"{SHOP}/") is True
            (opened,) = await pages(port) - {ordinary, private}
            assert opened not in await policy.excluded_targets()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(approve)
                await screen.shows(PROMPT)
                process.send_signal(signal.SIGTERM)
            assert await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True) == 0
        assert answers[2] is Answer.NO
        assert not (home / "host.json").exists()
        assert CARD not in screen.raw
        assert await policy.site_mode(SHOP) is SiteMode.OFF
        assert policy.problem is HostProblem.NO_FILE
    finally:
        screen.close()


async def test_without_a_terminal_everything_is_no_and_a_kill_ends_all_of_it(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    policy = HostPolicy(home, answer_s=LIMIT_S)
    with trio.fail_after(110), hosting(home, "--allow", "shop.test") as process:
        ready = json.loads(await line_of(process))
        assert ready["ready"] is True
        assert ready["questions"] == "no-terminal: every question is answered no"
        assert ready["host_file"] == str(home / "host.json")
        file = policy.attach()
        assert ready["cdp_port"] == file.cdp_port
        assert file.token not in json.dumps(ready)

        assert await policy.site_mode(SHOP) is SiteMode.ALLOWED
        assert await policy.approve(ApprovalKind.RISK, SHOP, "Buy") is Answer.NO
        assert await policy.wait_for_user("Please log in", SHOP) is False
        assert await policy.log(LogEntry("prompt", SHOP, f"pay with {CARD}", 7, 1)) is True
        said, counts = b"", {"answered_no": 0, "logged": 0}
        while (counts["answered_no"], counts["logged"]) != (2, 1):
            line = await line_of(process)
            said, counts = said + line, json.loads(line)
        assert set(counts) == {"logged", "unclean", "withheld", "dropped", "answered_no"}
        assert b"pay" not in said
        assert b"prompt" not in said

        chromium, folder = chromium_of(process)
        try:
            process.kill()
            await trio.lowlevel.wait_readable(chromium)  # it ends by itself, and its port with it
        finally:
            os.close(chromium)
            shutil.rmtree(folder, ignore_errors=True)
        assert await policy.site_mode(SHOP) is SiteMode.OFF
        assert policy.problem in (HostProblem.DEAD, HostProblem.UNREACHABLE)
        assert isinstance(await policy.excluded_targets(), AllTargets)
        assert (home / "host.json").exists()  # of a dead process: nobody believes it
