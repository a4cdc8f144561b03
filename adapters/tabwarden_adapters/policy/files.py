"""Files of a policy: bounded reads, whole writes."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from tabwarden.errors import ConfigurationError
from tabwarden.private_files import open_private_directory, open_private_file


def read_public_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """A regular file that may be anybody's: what is in it is signed, or harmless.

    Raises `ConfigurationError` when it cannot be read or has more than `limit` bytes.
    """
    try:
        # O_NONBLOCK: opening a FIFO must not hang us.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _cannot("read", path, error) from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ConfigurationError(f"{os.fspath(path)} is not a regular file")
        with os.fdopen(file, "rb", closefd=False) as stream:
            return _bounded(stream.read(limit + 1), path, limit)
    except OSError as error:
        raise _cannot("read", path, error) from None
    finally:
        os.close(file)


def read_private_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """A file that only this user may read (0600, one name, no link), in a folder of the same kind.

    Raises `FileNotFoundError` when it is absent, `ConfigurationError` for all else.
    """
    where = Path(os.path.abspath(path))
    directory = open_private_directory(where.parent)
    try:
        file = open_private_file(where.name, os.O_RDONLY, directory=directory, shown=os.fspath(path))
        with os.fdopen(file, "rb") as stream:
            return _bounded(stream.read(limit + 1), path, limit)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _cannot("read", path, error) from None
    finally:
        os.close(directory)


def create_private_file(path: str | os.PathLike[str], data: bytes) -> None:
    """A new file (0600) in a private folder, which is made when absent. Never replaces one.

    The contents go straight to the file's own name, so that no copy of a secret is left in another; a file
    that was not written whole is removed. Raises `ConfigurationError`.
    """
    where = Path(os.path.abspath(path))
    try:
        directory = open_private_directory(where.parent, create=True)
        try:
            _write_new(directory, where.name, data)
            os.fsync(directory)
        finally:
            os.close(directory)
    except FileExistsError:
        raise ConfigurationError(f"{path} is there already: choose another name, or remove it") from None
    except OSError as error:
        raise _cannot("write", path, error) from None


def replace_public_file(path: str | os.PathLike[str], data: bytes, *, replace: bool = True) -> None:
    """Put `data` at `path` whole, readable as the umask says. With `replace` False, only where nothing is.

    Raises `ConfigurationError`.
    """
    where = Path(os.path.abspath(path))
    temporary = where.with_name(f".{where.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            if replace:
                temporary.replace(where)
            else:
                os.link(temporary, where)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise ConfigurationError(f"{path} is there already: choose another name, or remove it") from None
    except OSError as error:
        raise _cannot("write", path, error) from None


def _write_new(directory: int, name: str, data: bytes) -> None:
    file = open_private_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory=directory)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
        raise


def _bounded(data: bytes, path: str | os.PathLike[str], limit: int) -> bytes:
    if len(data) > limit:
        raise ConfigurationError(
            f"{os.fspath(path)} is larger than {limit // 1024} KiB: is it the right file?"
        )
    return data


def _cannot(verb: str, path: str | os.PathLike[str], error: Exception) -> ConfigurationError:
    reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else "it is no file name"
    return ConfigurationError(f"cannot {verb} {os.fspath(path)}: {reason}")
