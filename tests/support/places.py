"""What may be at a file's place instead of a file."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

Place = Callable[[Path], None]


def directory(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    """Opening it to read waits for a writer that never comes."""
    os.mkfifo(path, 0o600)


def device(path: Path) -> None:
    """Endless zeros."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no device can be made here")


def socket(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFSOCK)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def sparse(path: Path) -> None:
    """A terabyte that takes no room."""
    path.touch(0o600)
    os.truncate(path, 2**40)


def open_to_others(path: Path) -> None:
    path.touch()
    path.chmod(0o644)


PUBLIC: dict[Place, str] = {
    **dict.fromkeys((directory, pipe, device, link_to_a_device), "is not a regular file"),
    socket: "cannot read",
    loop: "Too many levels of symbolic links",
    dangling: "No such file or directory",
    sparse: "is larger than",
}
"""What is said of each where a file may be anybody's."""

PRIVATE: dict[Place, str] = {
    **dict.fromkeys((directory, pipe, device, socket), "is not a regular file: remove it"),
    **dict.fromkeys((link_to_a_device, loop, dangling), "is a symbolic link: put the file itself there"),
    open_to_others: "is open to other users: chmod 600 it",
}
"""The same where it has to be this user's alone; what is said of one that is too large differs."""
