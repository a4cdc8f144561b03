"""Runs the real command as a user does: a process of its own, its own folders, bounded."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tabwarden_adapters.cli.app import app

LIMIT_S = 60
PATIENT = "timeout_s = 120.0\n"


class Finished:
    """What a command left behind."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def result(self) -> Any:
        return json.loads(self.out)

    @property
    def failure(self) -> dict[str, Any]:
        """The one line of JSON on stderr."""
        (line,) = self.err.splitlines()
        error: dict[str, Any] = json.loads(line)["error"]
        return error


def environment(home: Path) -> dict[str, str]:
    """A home of its own, so that no file of the user's is read or written."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "COVERAGE_PROCESS_START", "TABWARDEN_CHROMIUM", "COVERAGE_PROCESS_CONFIG")
    }
    return {**kept, "HOME": str(home)}


def tabwarden(home: Path, *arguments: str, text: str | None = None) -> Finished:
    """Run one command to its end. A call waits for as long as the test would."""
    patience = ("--wait", "300") if arguments[:1] == ("call",) and "--wait" not in arguments else ()
    command = [sys.executable, "-m", "tabwarden_adapters.cli", *arguments, *patience]
    return Finished(
        subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment(home),
            check=False,
        )
    )


def here(home: Path, *arguments: str) -> Finished:
    """As `tabwarden`, in this process: starting one takes longer than most commands do. Not for commands that
    pair (they close the process to others) or that read input."""
    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment(home))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            app(list(arguments))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    else:
        status = 0
    finally:
        os.environ.clear()
        os.environ.update(before)
    return Finished(subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue()))


@contextmanager
def serving(
    home: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> Iterator[tuple[dict[str, Any], "subprocess.Popen[str]"]]:
    """`tabwarden serve --headless` while the block runs: its ready line and its process. Without settings
    of their own, actions have the time that loading the detectors takes on a busy machine."""
    if "--config" not in arguments:
        settings = home / "patient.toml"
        settings.write_text(PATIENT)
        arguments = (*arguments, "--config", str(settings))
    command = [sys.executable, "-m", "tabwarden_adapters.cli", "serve", "--headless", *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(home), **(variables or {})},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(f"serve did not start: {process.communicate()[1]}")
        yield json.loads(line), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
