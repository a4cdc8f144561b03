"""Real key stores of this machine's own, each for one test: nothing of the user's is touched."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LIMIT_S = 30


def needs(*programs: str) -> None:
    """Skip where such programs cannot exist; fail where they are only missing."""
    if not sys.platform.startswith("linux"):
        pytest.skip(f"{programs[0]} exists on Linux only")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.fail(f"{', '.join(missing)} missing: run .ci/ensure keystores", pytrace=False)


@contextmanager
def session_bus(home: Path) -> Iterator[dict[str, str]]:
    """A session bus of its own (dbus-run-session) while the block runs: the variables that lead to it."""
    needs("dbus-run-session", "gnome-keyring-daemon")
    home.mkdir(mode=0o700, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    variables = {**kept, "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "XDG_DATA_HOME": str(home / "data")}
    # It ends when its program does, and that ends when we close its stdin.
    bus = subprocess.Popen(
        ["dbus-run-session", "--", "sh", "-c", 'echo "$DBUS_SESSION_BUS_ADDRESS"; exec cat'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables,
    )
    assert bus.stdin is not None
    assert bus.stdout is not None
    try:
        address = bus.stdout.readline().decode().strip()
        assert address
        yield {**variables, "DBUS_SESSION_BUS_ADDRESS": address}
    finally:
        bus.stdin.close()
        bus.wait(LIMIT_S)
        bus.stdout.close()


@contextmanager
def gnome_keyring(variables: dict[str, str], password: bytes | None = b"login") -> Iterator[None]:
    """gnome-keyring on that bus, its login keyring made and open; with None: nothing made, nothing open."""
    options = ["--unlock"] if password is not None else []
    daemon = subprocess.Popen(
        ["gnome-keyring-daemon", "--foreground", "--components=secrets", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables,
    )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    try:
        daemon.stdin.write(password or b"")
        daemon.stdin.close()
        _owned(variables, "org.freedesktop.secrets")
        yield
    finally:
        daemon.terminate()
        daemon.wait(LIMIT_S)
        daemon.stdout.close()


def _owned(variables: dict[str, str], name: str) -> None:
    """Return when somebody owns `name` on the bus: it says so itself."""
    from jeepney import DBus, MatchRule, message_bus
    from jeepney.io.blocking import Proxy, open_dbus_connection

    with open_dbus_connection(variables["DBUS_SESSION_BUS_ADDRESS"]) as bus:
        rule = MatchRule(
            type="signal",
            sender=message_bus.bus_name,
            interface=message_bus.interface,
            member="NameOwnerChanged",
        )
        rule.add_arg_condition(0, name)
        proxy = Proxy(DBus(), bus)
        proxy.AddMatch(rule)
        with bus.filter(rule) as changes:
            if not proxy.NameHasOwner(name)[0]:
                bus.recv_until_filtered(changes, timeout=LIMIT_S)


@contextmanager
def silent_bus(folder: Path) -> Iterator[dict[str, str]]:
    """A bus that never says a word."""
    with socket.socket(socket.AF_UNIX) as listener:
        path = folder / "silent"
        listener.bind(str(path))
        listener.listen()
        yield {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={path}"}


@contextmanager
def simulated_tpm(folder: Path) -> Iterator[str]:
    """swtpm while the block runs: its address for tpm2-tools. The state stays in `folder`."""
    needs("swtpm", "tpm2_createprimary")
    folder.mkdir(mode=0o700, exist_ok=True)
    sockets, pid_file = folder / "tpm", folder / "pid"
    for path in (sockets, Path(f"{sockets}.ctrl")):
        path.unlink(missing_ok=True)
    subprocess.run(
        [
            "swtpm", "socket", "--tpm2", "--daemon", "--pid", f"file={pid_file}",
            "--tpmstate", f"dir={folder}", "--flags", "not-need-init,startup-clear",
            "--server", f"type=unixio,path={sockets}", "--ctrl", f"type=unixio,path={sockets}.ctrl",
        ],
        check=True,
        timeout=LIMIT_S,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"swtpm:path={sockets}"
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGTERM)
