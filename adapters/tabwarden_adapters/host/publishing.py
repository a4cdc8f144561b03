"""Putting host.json there, and taking it away again only while it is still ours."""

import contextlib
import errno
import fcntl
import hmac
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from tabwarden.errors import ConfigurationError
from tabwarden.private_files import ensure_private_directory, open_private_directory, open_private_file
from tabwarden.private_files import replace_private_file as replace

from tabwarden_adapters.host.exchange import exchange
from tabwarden_adapters.host.host_file import NAME, HostFile, read_in
from tabwarden_adapters.host.problems import HostProblem, HostUnavailable

_LOCK = "host.lock"
_LOCK_WAIT_S = 3.0  # longer than another host takes to look and to write
_LOCK_POLL_S = 0.05
_PROBE_S = 1.0  # a host that does not answer its own engine for so long is of no use to it


async def publish(home: Path, mine: HostFile) -> None:
    """Write `mine` to host.json, atomically, unless another host lives.

    A file whose process is dead, whose process's id was given to another, or whose port does not answer to
    its own token is stale and is replaced. Raises `ConfigurationError` when a host is running, or when the
    folder or the file there is not this user's alone.
    """
    ensure_private_directory(home)
    directory = open_private_directory(home)
    try:
        async with _locked(directory):
            await _refuse_if_live(directory)
            replace(directory, NAME, mine.encode())
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigurationError(f"cannot write host.json: {reason}") from None
    finally:
        os.close(directory)


def withdraw(home: Path, mine: HostFile) -> bool:
    """Remove host.json if it is still `mine`, and return whether it was. Never waits and never raises."""
    try:
        directory = open_private_directory(home)
    except (OSError, ConfigurationError):
        return False
    try:
        # Whoever holds the lock is writing a file of its own: then there is nothing of ours to remove.
        with _lock_now(directory):
            found = read_in(directory)
            if found.pid != mine.pid or not hmac.compare_digest(found.token.encode(), mine.token.encode()):
                return False
            os.unlink(NAME, dir_fd=directory)
            return True
    except (OSError, ConfigurationError, HostUnavailable):
        return False
    finally:
        os.close(directory)


async def _refuse_if_live(directory: int) -> None:
    try:
        found = read_in(directory)
    except HostUnavailable as error:
        if error.problem is HostProblem.FILE_REFUSED:
            raise ConfigurationError(
                "host.json is a link, or not this user's alone: look who put it there, and remove it"
            ) from None
        return  # none there, or one that no engine could use
    if not found.alive:
        return
    try:
        # Should somebody else listen there by now, the token that they see opens nothing any more.
        await exchange(found, b"GET", b"/sensitive-overrides", b"", timeout_s=_PROBE_S)
    except HostUnavailable as error:
        # An error of its own, or silence, is still a host's. What knows another token, or nothing, is not.
        if error.problem not in (HostProblem.TIMEOUT, HostProblem.STATUS):
            return
    raise ConfigurationError(f"a host is running already (process {found.pid}): close it first")


@asynccontextmanager
async def _locked(directory: int) -> AsyncIterator[None]:
    with trio.move_on_after(_LOCK_WAIT_S) as scope:
        while True:
            held = _try_lock(directory)
            if held is not None:
                break
            await trio.sleep(_LOCK_POLL_S)
    if scope.cancelled_caught or held is None:
        raise ConfigurationError("another host is starting: try again")
    try:
        yield
    finally:
        os.close(held)


@contextlib.contextmanager
def _lock_now(directory: int) -> Iterator[None]:
    held = _try_lock(directory)
    if held is None:
        raise OSError(errno.EWOULDBLOCK, "locked")
    try:
        yield
    finally:
        os.close(held)


def _try_lock(directory: int) -> int | None:
    """The lock file's descriptor, locked (flock(2)), or None when another process holds it."""
    file = open_private_file(_LOCK, os.O_RDWR | os.O_CREAT, directory=directory)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except BaseException:
        os.close(file)
        raise
    return file
