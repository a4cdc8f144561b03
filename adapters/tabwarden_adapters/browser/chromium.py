"""Finding, starting and ending Chromium. It answers on a pipe: there is no debugging port to connect to."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.browser.cdp import CdpError, Connection, pipe_pair
from tabwarden_adapters.browser.cdp.generated import browser
from tabwarden_adapters.browser.process import GroupProcess

VARIABLE = "TABWARDEN_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
START_S = 20.0  # a cold start from a slow disk takes some seconds
GRACE_S = 2.0  # an orderly end takes about 0.1 s
KILL_S = 10.0  # the kernel's part: milliseconds, but on a machine that is short of processor seconds
REMOVE_S = 5.0  # a new profile is a few MB

# Without these three WebRTC and QUIC would go round every proxy, and Chromium would call home.
FLAGS = (
    "--remote-debugging-pipe",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-breakpad",
)
# Everything else in our environment, tokens for telemetry for instance, is none of Chromium's business.
KEPT_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"),
        *("FONTCONFIG_FILE", "FONTCONFIG_PATH"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    )
)
KEPT_PREFIXES = ("LC_", "XDG_", "GTK_", "QT_")


@dataclass(frozen=True, slots=True)
class Chromium:
    """A running Chromium: `connection` speaks CDP with it, `product` is e.g. `Chrome/156.0.8078.114`. `pid`
    and `profile` are None when somebody else runs it."""

    connection: Connection
    product: str
    pid: int | None
    profile: Path | None


def find_chromium(environment: Mapping[str, str] | None = None) -> Path:
    """The Chromium to start: `TABWARDEN_CHROMIUM` (a path or a name), else the first known name on PATH.

    Raises `ConfigurationError` that says what to install or set.
    """
    variables = os.environ if environment is None else environment
    path = variables.get("PATH", os.defpath)
    chosen = variables.get(VARIABLE)
    if chosen:
        found = shutil.which(chosen, path=path)
        if found is None:
            raise ConfigurationError(
                f"{VARIABLE} does not name a program that can be run; correct or unset it"
            )
        return Path(found).absolute()
    for name in NAMES:
        if found := shutil.which(name, path=path):
            return Path(found).absolute()
    raise ConfigurationError(
        f"Chromium was not found: install it (Debian: apt install chromium) or set {VARIABLE} to its path"
    )


@asynccontextmanager
async def launch_chromium(
    nursery: trio.Nursery,
    *,
    executable: Path | None = None,
    headless: bool = True,
    extra_flags: tuple[str, ...] = (),
    start_timeout: float = START_S,
) -> AsyncIterator[Chromium]:
    """Run Chromium with a new, empty, private profile while the block runs.

    The connection's tasks run in `nursery`. At the end, also when cancelled, the whole process group is
    ended and the profile removed, in bounded time. Chromium's own death does not raise: its sessions end.
    Raises `ConfigurationError` when it is missing or does not start.
    """
    program = executable or find_chromium()
    folder = Path(tempfile.mkdtemp(prefix="tabwarden-chromium-"))  # 0700, ours
    try:
        process, connection = await _start(nursery, program, folder, headless, extra_flags)
        try:
            product = await _hello(connection, process, start_timeout)
            yield Chromium(connection, product, process.pid, folder)
        finally:
            gone = await process.end(grace_s=GRACE_S, kill_s=KILL_S)
            with trio.move_on_after(KILL_S, shield=True):
                await connection.aclose()
            if not gone:
                raise ConfigurationError("Chromium could not be ended; end its process group by hand")
    finally:
        with trio.move_on_after(REMOVE_S, shield=True):
            await trio.to_thread.run_sync(_remove, folder)


async def _start(
    nursery: trio.Nursery, program: Path, folder: Path, headless: bool, extra_flags: tuple[str, ...]
) -> tuple[GroupProcess, Connection]:
    profile, temporary = folder / "profile", folder / "tmp"
    profile.mkdir(mode=0o700)
    temporary.mkdir(mode=0o700)
    argv = [str(program), *FLAGS, *extra_flags, f"--user-data-dir={profile}"]
    if headless:
        argv.append("--headless")
    if os.geteuid() == 0:
        argv.append("--no-sandbox")  # Chromium refuses to run as root with it
    argv.append("about:blank")
    transport, child_read, child_write = pipe_pair()
    try:
        process = GroupProcess.start(argv, _environment(temporary), {3: child_read, 4: child_write})
    except OSError as error:
        await transport.aclose()
        raise ConfigurationError(f"Chromium could not be started: {os.strerror(error.errno or 0)}") from None
    finally:
        os.close(child_read)
        os.close(child_write)
    connection = Connection(transport)
    try:
        await nursery.start(connection.run)
    except BaseException:
        await process.end(grace_s=0, kill_s=KILL_S)
        raise
    return process, connection


async def _hello(connection: Connection, process: GroupProcess, timeout: float) -> str:
    with trio.move_on_after(timeout):
        try:
            return (await connection.root.call(browser.get_version())).product
        except CdpError:
            with trio.move_on_after(GRACE_S):
                status = await process.wait_exit()
                raise ConfigurationError(
                    f"Chromium ended at its start (status {status}); start it by hand to see why"
                ) from None
    raise ConfigurationError(f"Chromium did not answer within {timeout:g} s; start it by hand to see why")


def _environment(temporary: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
    # Chromium leaves sockets and files in the temporary folder: this one goes with the profile.
    return {**kept, "TMPDIR": str(temporary)}


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
