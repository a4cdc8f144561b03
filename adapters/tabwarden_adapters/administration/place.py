"""The socket's file: where it is, that nobody else put it there, and that one broker uses it."""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from tabwarden.errors import ConfigurationError
from tabwarden.private_files import open_private_directory, open_private_file

BACKLOG = 16
_SUN_PATH = 107  # bytes of an address (unix(7)), without the final zero
_UCRED = struct.Struct("3i")  # pid, uid, gid: unix(7), SO_PEERCRED


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A listening socket (0600) at `path`, in a private folder that is made when absent; removed at the end.

    What a broker that was killed has left is replaced. Raises `ConfigurationError`.
    """
    directory = open_private_directory(path.parent, create=True)
    try:
        with _alone(directory, path), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            try:
                _clear(directory, path)
                listener.bind(_address(directory, path))  # nobody else can come as far as this folder
                os.chmod(path.name, 0o600, dir_fd=directory)
                listener.listen(BACKLOG)
                made = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
            except OSError as error:
                raise _cannot(path, error) from None
            try:
                yield listener
            finally:
                _remove(directory, path.name, made)
    finally:
        os.close(directory)


@contextlib.contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    """A connection to the broker of this user at `path`. Raises `ConfigurationError` saying what to do."""
    try:
        directory = open_private_directory(path.parent)
    except FileNotFoundError:
        raise _nobody(path) from None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            try:
                stream.connect(_address(directory, path))
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
                    raise _nobody(path) from None
                raise _cannot(path, error) from None
            if not same_user(stream):
                raise ConfigurationError(f"{path} belongs to another user: name your own broker's")
            yield stream
    finally:
        os.close(directory)


class Socket(Protocol):
    """What is needed of one, the standard library's or trio's."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


def same_user(stream: Socket) -> bool:
    """Whether the other end is a process of this user. Where the system does not tell, the private folder
    alone says so."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(credentials)
    return bool(uid == os.geteuid())


def _address(directory: int, path: Path) -> str:
    """By the open folder where that can be said, so that what was checked is what is used."""
    through = f"/proc/self/fd/{directory}/{path.name}"
    address = through if os.path.isdir("/proc/self/fd") else str(path)
    if len(os.fsencode(address)) > _SUN_PATH:
        raise ConfigurationError(f"{path}: the name is too long for a socket: choose a shorter one")
    return address


@contextlib.contextmanager
def _alone(directory: int, path: Path) -> Iterator[None]:
    name = f"{path.name}.lock"
    lock = open_private_file(name, os.O_RDWR | os.O_CREAT, directory=directory)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                f"another broker is administered at {path}: stop it, or choose another --admin"
            ) from None
        yield
    finally:
        os.close(lock)


def _clear(directory: int, path: Path) -> None:
    """Remove a socket that nobody listens at any more: who listens holds the lock."""
    try:
        state = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(state.st_mode) or state.st_uid != os.geteuid():
        raise ConfigurationError(f"{path} is there already and is no socket of yours: choose another --admin")
    os.unlink(path.name, dir_fd=directory)


def _remove(directory: int, name: str, made: os.stat_result) -> None:
    with contextlib.suppress(OSError):
        state = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if (state.st_dev, state.st_ino) == (made.st_dev, made.st_ino):
            os.unlink(name, dir_fd=directory)


def _cannot(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cannot use the socket {path}: {os.strerror(error.errno or 0)}")


def _nobody(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"no broker is administered at {path}: start `tabwarden serve`, or give --admin"
    )
