"""What other programs of the same user can see of a process that closed itself to them."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}

# Says that it is ready, then waits for its stdin to end. Where we are root it becomes somebody else first, as
# does the one who looks: root may look at everything.
CLOSED = """
import ctypes, os, resource, subprocess, sys
from tabwarden_adapters.credentials import close_process_to_others
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(54321); os.setuid(54321)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program that this user started; setuid took that away
if sys.argv[1] == "close":
    assert close_process_to_others()
    assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
# What the rest of the program does: its own descriptors, its own /proc, and children.
assert os.listdir("/proc/self/fd")
limits = subprocess.run(["sh", "-c", "ulimit -c; cat /proc/self/environ"], capture_output=True, check=True)
assert sys.argv[1] != "close" or limits.stdout.startswith(b"0")
assert b"PATH" in limits.stdout
print("ready", flush=True)
sys.stdin.read()
"""

LOOK = """
import os, sys
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(54321); os.setuid(54321)
for name in ("environ", "mem", "maps", "fd/0", "cwd", "auxv"):
    try:
        path = f"/proc/{sys.argv[1]}/{name}"
        os.readlink(path) if name in ("fd/0", "cwd") else open(path, "rb").close()
        print(name, "seen")
    except PermissionError:
        print(name, "refused")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl is Linux's")
@pytest.mark.parametrize("mode", ["open", "close"])
def test_programs_of_the_same_user_are_kept_out(mode: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CLOSED, mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path if os.geteuid() != 0 else "/",
        env=ENVIRONMENT,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        looked = subprocess.run(
            [sys.executable, "-c", LOOK, str(child.pid)],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            check=True,
        )
        child.stdin.close()
        assert child.wait(30) == 0
    seen = dict(line.split() for line in looked.stdout.splitlines())
    if mode == "close":
        assert set(seen.values()) == {"refused"}
    else:  # without it, the same look succeeds (some systems keep /proc/<pid>/mem closed all the same)
        assert seen["environ"] == seen["fd/0"] == "seen"


def test_no_core_file(tmp_path: Path) -> None:
    program = (
        "import os, resource, tabwarden_adapters.credentials as c;"
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1];"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard));"
        "c.close_process_to_others(); os.abort()"
    )
    before = resource.getrlimit(resource.RLIMIT_CORE)
    child = os.posix_spawn(
        sys.executable, [sys.executable, "-c", program], {**os.environ, "HOME": str(tmp_path)}
    )
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert not os.WCOREDUMP(status)
    assert resource.getrlimit(resource.RLIMIT_CORE) == before
