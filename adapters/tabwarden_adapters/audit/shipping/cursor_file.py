"""The file that says which record was the last to be taken at a destination.

    {"format":"tabwarden-audit-cursor-v1","to":"tls://logs.example.org:6514","sequence":7,
     "hash":"<96 hex digits>"}

The file is written anew as a whole and synced before anything counts on it, so a crash leaves the old place
or the new one; what came after it is sent again. It is its user's alone, like the log. While a
shipper runs it holds a lock on `<file>.lock`: two of them would overwrite each other's place.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from tabwarden.errors import ConfigurationError
from tabwarden.private_files import open_private_directory, open_private_file, replace_private_file

from tabwarden_adapters.audit.segments import Head

_MAX_BYTES = 4096


class _Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["tabwarden-audit-cursor-v1"]
    to: str
    sequence: Annotated[int, Meta(ge=0, lt=10**16)]
    hash: Annotated[str, Meta(pattern=r"^[0-9a-f]{96}\Z")]


class CursorFile:
    """`head` is the last record that was taken; None before the first."""

    def __init__(self, directory: int, name: str, to: str, head: Head | None) -> None:
        self._directory = directory
        self._name = name
        self._to = to
        self.head = head

    def save(self, head: Head) -> None:
        """Blocking. Raises `ConfigurationError` when it cannot be kept: then the old place holds."""
        place = _Place("tabwarden-audit-cursor-v1", self._to, head.sequence, head.hash)
        try:
            replace_private_file(self._directory, self._name, msgspec.json.encode(place) + b"\n")
        except OSError as error:
            raise ConfigurationError(f"cannot write the cursor {self._name}: {error.strerror}") from None
        self.head = head


@contextlib.contextmanager
def open_cursor(path: Path, to: str) -> Iterator[CursorFile]:
    """The cursor at `path` for the destination `to`, alone while the block runs; the folder is made 0700.

    Raises `ConfigurationError` when folder or file are open to others, the file is none or another
    destination's, or another shipper uses it.
    """
    directory = open_private_directory(path.absolute().parent, create=True)
    try:
        lock = _open(f"{path.name}.lock", os.O_RDWR | os.O_CREAT, directory, path)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigurationError(
                    f"another shipper uses the cursor {path}: name another with --cursor"
                ) from None
            yield CursorFile(directory, path.name, to, _read(directory, path, to))
        finally:
            os.close(lock)
    finally:
        os.close(directory)


def _read(directory: int, path: Path, to: str) -> Head | None:
    try:
        file = _open(path.name, os.O_RDONLY, directory, path)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as stream:
        data = stream.read(_MAX_BYTES + 1)
    advice = "remove it to ship the log from its beginning"
    if len(data) > _MAX_BYTES:
        raise ConfigurationError(f"the cursor {path} is larger than {_MAX_BYTES} bytes: {advice}")
    try:
        place = msgspec.json.decode(data, type=_Place)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ConfigurationError(f"{path} is not a cursor of a shipper: {advice}") from None
    if place.to != to:
        raise ConfigurationError(
            f"the cursor {path} is for another destination: name another with --cursor, or {advice}"
        )
    return Head(place.sequence, place.hash)


def _open(name: str, flags: int, directory: int, path: Path) -> int:
    try:
        return open_private_file(name, flags, directory=directory, shown=str(path.parent / name))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigurationError(f"cannot open {path.parent / name}: {error.strerror}") from None
