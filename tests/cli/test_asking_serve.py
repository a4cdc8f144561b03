"""A person is asked: through `tabwarden approvals`, or at the terminal that `serve` runs at."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.no_browser import without_tabs
from tests.cli.running import LIMIT_S, environment, here, serving, tabwarden

UPDATE = json.dumps({"action": "settings:update", "args": {"appearance": {"mode": "dark"}}})
SETTINGS = """
timeout_s = 120.0
scopes = ["settings:get", "settings:update"]
ask = ["settings:update"]
[application]
visible = ["appearance"]
store = "private/application.db"
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "tabwarden.toml"
    path.write_text(SETTINGS)
    return str(path)


@contextmanager
def calling(home: Path) -> Iterator[dict[str, Any]]:
    """`settings:update`, begun before the block and ended after it; its answer is then in the dict."""
    answer: dict[str, Any] = {}
    command = [sys.executable, "-m", "tabwarden_adapters.cli", "call", "--wait", "320", "--request", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment(home)
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(UPDATE)
            process.stdin.close()
            process.stdin = None
            yield answer
            out, err = process.communicate(timeout=LIMIT_S)
            answer.update(json.loads(out) if process.returncode == 0 else json.loads(err)["error"])
        finally:
            process.kill()


def asked(home: Path) -> dict[str, Any]:
    """The one open question, as soon as there is one."""
    for _ in range(LIMIT_S):
        pending = tabwarden(home, "approvals", "list").result["pending"]
        if pending:
            (question,) = pending
            return dict(question)
    raise AssertionError("nothing was asked")


def test_the_command_asks_and_answers(tmp_path: Path, config: str) -> None:
    arguments = ("--config", config, "--approver", "command")
    with serving(tmp_path, *arguments, variables=without_tabs(tmp_path)) as (ready, _):
        assert ready["approver"] == "command"
        with calling(tmp_path) as refused:
            question = asked(tmp_path)
            assert (question["action"], question["agent"]) == ("settings:update", None)
            fact = {"label": "appearance: mode", "text": '"dark"', "by_agent": True}
            assert question["facts"] == [fact]
            assert question["reaches"] == ["once"]
            wrong = here(tmp_path, "approvals", "answer", question["ticket"], "session")
            assert (wrong.status, wrong.failure["code"]) == (1, "configuration")
            assert here(tmp_path, "approvals", "answer", question["ticket"], "deny").status == 0
        assert refused["code"] == "user-denied"
        late = here(tmp_path, "approvals", "answer", question["ticket"], "once")
        assert (late.status, late.failure["code"]) == (1, "configuration")
        assert "answered already" in late.failure["message"]


def test_a_yes_is_done(tmp_path: Path, config: str) -> None:
    arguments = ("--config", config, "--approver", "command")
    with serving(tmp_path, *arguments, variables=without_tabs(tmp_path)):
        with calling(tmp_path) as done:
            assert here(tmp_path, "approvals", "answer", asked(tmp_path)["ticket"], "once").status == 0
        assert done["appearance"]["mode"] == "dark"
        assert here(tmp_path, "approvals", "list").result["remembered"] == []
        unknown = here(tmp_path, "approvals", "forget", "nothing")
        assert (unknown.status, unknown.result["forgotten"]) == (1, False)


def test_without_anybody_it_is_not_done(tmp_path: Path, config: str) -> None:
    with serving(tmp_path, "--config", config, variables=without_tabs(tmp_path)) as (ready, _):
        assert ready["approver"] == "none"  # this process has no terminal that it prints to
        with calling(tmp_path) as refused:
            pass
        assert refused["code"] == "no-approver"
        answer = here(tmp_path, "approvals", "answer", "ticket", "deny")
        assert 'approver = "command"' in answer.failure["message"]


def test_at_the_terminal_of_serve_and_nowhere_else(tmp_path: Path, config: str) -> None:
    main, end = pty.openpty()
    shown: list[bytes] = []
    variables = {**environment(tmp_path), **without_tabs(tmp_path), "TERM": "dumb"}
    command = [sys.executable, "-m", "tabwarden_adapters.cli", "serve", "--headless", "--config", config]
    process = subprocess.Popen(
        [sys.executable, "-c", "import os,sys,fcntl,termios;os.setsid();"
         "fcntl.ioctl(0,termios.TIOCSCTTY,0);os.execv(sys.argv[1],sys.argv[1:])", *command],
        stdin=end, stdout=subprocess.PIPE, stderr=end, env=variables,
    )  # fmt: skip
    os.close(end)
    more = threading.Condition()

    def read() -> None:
        try:
            while data := os.read(main, 4096):
                with more:
                    shown.append(data)
                    more.notify_all()
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def wait_for(text: bytes) -> None:
        with more:
            assert more.wait_for(lambda: text in b"".join(shown), LIMIT_S), b"".join(shown)

    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["approver"] == "terminal"
        with calling(tmp_path) as done:
            wait_for(b"Your answer:")
            ticket = asked(tmp_path)["ticket"]
            elsewhere = here(tmp_path, "approvals", "answer", ticket, "once")
            assert 'approver = "command"' in elsewhere.failure["message"]
            os.write(main, b"y\n")
        assert done["appearance"]["mode"] == "dark"
        wait_for(b"Agreed, this once.")
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT_S)
        os.close(main)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("approvals", "answer", "t", "once", "--minutes", "5"), "--minutes goes with origin"),
        (("approvals", "answer", "t", "origin"), "--minutes goes with origin"),
        (("approvals", "answer", "t", "origin", "--minutes", "500"), "from 1 to 480"),
        (("approvals", "list"), "no broker is administered"),
        (("call", "sessions", "--wait", "0"), "--wait takes seconds"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = here(tmp_path, *arguments)
    assert done.status == 1
    assert said in done.failure["message"]
