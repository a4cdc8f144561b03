"""Folders and files that nobody but this user may read, write or replace.

Everything is checked on an open descriptor, never on a name, so that what was checked is what is used. A
folder is reached from the root one component at a time: each one on the way must belong to root or to this
user, and must not be writable by others (unless sticky, as /tmp is), because whoever can write there could
put another folder in its place. Symbolic links on the way are followed under the same rule; the last
component must not be one.

POSIX only. Errors: `ConfigurationError` saying what is wrong and what to do; `FileNotFoundError` and
`FileExistsError` pass through where the docstring says so. No error holds a file's contents.
"""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from tabwarden.errors import ConfigurationError

_MAX_LINKS = 40  # what Linux itself follows in one path (path_resolution(7))
_GROUP_OR_OTHER = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_WALK = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def ensure_private_directory(path: str | os.PathLike[str]) -> Path:
    """Make `path` and its missing parents (mode 0700), or check what is there. Returns it, absolute.

    Raises `ConfigurationError` when it is a symbolic link, is not this user's, is open to others, or when
    a folder above it could be replaced by another user.
    """
    os.close(open_private_directory(path, create=True))
    return Path(os.path.abspath(path))


def open_private_directory(path: str | os.PathLike[str], *, create: bool = False) -> int:
    """A descriptor of the checked folder, for use as `dir_fd`. The caller closes it.

    Raises `ConfigurationError` as `ensure_private_directory` does; `FileNotFoundError` when it is absent
    and `create` is False.
    """
    shown = os.path.abspath(path)
    walked = _walk(shown, create=create)
    try:
        # The walk's descriptor may be O_PATH, which cannot be synced or listed.
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walked)
    except OSError as error:
        raise ConfigurationError(f"cannot open the folder {shown}: {os.strerror(error.errno or 0)}") from None
    finally:
        os.close(walked)
    try:
        state = os.fstat(directory)
        if state.st_uid != os.geteuid():
            raise ConfigurationError(f"the folder {shown} belongs to another user: choose one of your own")
        if state.st_mode & _GROUP_OR_OTHER:
            raise ConfigurationError(f"the folder {shown} is open to other users: chmod 700 it")
    except BaseException:
        os.close(directory)
        raise
    return directory


def open_private_file(
    path: str | os.PathLike[str],
    flags: int,
    *,
    directory: int | None = None,
    mode: int = 0o600,
    shown: str | None = None,
) -> int:
    """Open a file that must be regular, this user's, closed to others, and known by one name only.

    `flags` as for `os.open`; O_NOFOLLOW, O_CLOEXEC and O_NONBLOCK (a FIFO must not hang us) are added.
    `path` is relative to the descriptor `directory` when one is given; `shown` is what errors call it then.
    A file made with O_CREAT gets `mode`, less the umask. The caller closes the descriptor.

    Raises `ConfigurationError` when a check fails; `FileNotFoundError`, `FileExistsError` and other
    errors of `os.open` pass through.
    """
    shown = shown or os.fspath(path)
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    truncate = flags & os.O_TRUNC  # only after the checks: it would destroy somebody else's file
    try:
        file = os.open(path, flags & ~os.O_TRUNC, mode, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise ConfigurationError(f"{shown} is a symbolic link: put the file itself there") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise ConfigurationError(f"{shown} is not a regular file: remove it") from None
        raise
    try:
        check_private_file(file, shown)
        if truncate:
            os.ftruncate(file, 0)
    except BaseException:
        os.close(file)
        raise
    return file


def check_private_file(file: int, shown: str) -> os.stat_result:
    """Check an open descriptor as `open_private_file` does. `shown` names it in errors. Returns its stat."""
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        raise ConfigurationError(f"{shown} is not a regular file: remove it")
    if state.st_uid != os.geteuid():
        raise ConfigurationError(f"{shown} belongs to another user: remove it")
    if state.st_mode & _GROUP_OR_OTHER:
        raise ConfigurationError(
            f"{shown} is open to other users: chmod 600 it, after looking what they could do"
        )
    if state.st_nlink > 1:
        raise ConfigurationError(f"{shown} has another name (a hard link): remove it and start anew")
    return state


def _walk(path: str, *, create: bool) -> int:
    """A descriptor of `path` (absolute), reached through trusted folders only. The caller closes it."""
    waiting = [part for part in path.split("/") if part][::-1]
    here = os.open("/", _WALK)
    links = 0
    walked = "/"
    try:
        while waiting:
            _check_way(here, walked)
            part = waiting.pop()
            last = not waiting
            target = _link_target(here, part)
            if target is None:
                here = _step(here, part, walked, create=create)
                walked = os.path.join(walked, part)
                continue
            links += 1
            # What a link expands to is put above what waits, so the bottom is always the path's own end.
            if last or links > _MAX_LINKS:
                raise ConfigurationError(f"{path} is a symbolic link: name the folder itself")
            waiting.extend(item for item in target.split("/")[::-1] if item not in ("", "."))
            if target.startswith("/"):
                root = os.open("/", _WALK)
                os.close(here)
                here, walked = root, "/"
    except BaseException:
        os.close(here)
        raise
    return here


def _step(here: int, part: str, walked: str, *, create: bool) -> int:
    """Open `part` in `here` (closing it only on success), making it when asked to."""
    shown = os.path.join(walked, part)
    try:
        try:
            below = os.open(part, _WALK, dir_fd=here)
        except FileNotFoundError:
            if not create:
                raise
            # If another process of ours was quicker, its folder is checked like any other.
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=here)
                _sync(here)
            below = os.open(part, _WALK, dir_fd=here)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise ConfigurationError(f"{shown} is not a folder: choose another place") from None
        reason = os.strerror(error.errno or 0)
        raise ConfigurationError(f"cannot use the folder {shown}: {reason}") from None
    os.close(here)
    return below


def _sync(here: int) -> None:
    """Make a new name durable: records synced inside a folder that a power cut removes are lost."""
    try:
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    except PermissionError:
        return  # a folder that may be entered and written but not read
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_way(here: int, shown: str) -> None:
    state = os.fstat(here)
    if state.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(
            f"the folder {shown} on the way belongs to another user: choose another place"
        )
    if state.st_mode & _WRITABLE_BY_OTHERS and not state.st_mode & stat.S_ISVTX:
        raise ConfigurationError(f"others may write to the folder {shown} on the way: chmod go-w it")


def _link_target(here: int, part: str) -> str | None:
    """Where the symbolic link `part` in `here` points; None when it is no link (or is not there)."""
    try:
        state = os.stat(part, dir_fd=here, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISLNK(state.st_mode):
        return None
    # In a sticky folder everybody may put links: only ours and root's are followed.
    if state.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(f"the symbolic link {part} on the way belongs to another user")
    return os.readlink(part, dir_fd=here)


def replace_private_file(directory: int, name: str, data: bytes) -> None:
    """Put `data` at `name` in an open private folder: the old file or the new one at any moment, also after a
    power cut. Never for a secret in clear: a crash may leave a temporary file. OSError passes through.
    """
    temporary = f".{name}.{secrets.token_hex(8)}"
    file = open_private_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory=directory)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)
