"""Checkpoints in a log's folder: found by name, read, put there whole or not at all.

All take the descriptor of the open folder; OSError passes through unless the docstring says otherwise.
"""

import contextlib
import errno
import os
import re

from tabwarden.errors import MalformedError
from tabwarden.private_files import open_private_file, replace_private_file

from tabwarden_adapters.audit.checkpoint import MAX_CHECKPOINT_BYTES, Checkpoint, parse
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault

_NAME = re.compile(r"checkpoint-(\d{16})\.json")
_LEFT_OVER = re.compile(r"\.checkpoint-\d{16}\.json\.[0-9a-f]{16}")
_TRIES = 100  # a running broker replaces its newest checkpoint once a minute or so


def checkpoint_name(size: int) -> str:
    """The file of the checkpoint over so many records: names sort as records do."""
    return f"checkpoint-{size:016d}.json"


def checkpoint_sizes(directory: int) -> list[int]:
    """The sizes of all checkpoints that are there, ascending."""
    matches = (_NAME.fullmatch(name) for name in os.listdir(directory))
    return sorted(int(match[1]) for match in matches if match)


def load_checkpoint(directory: int, size: int) -> Checkpoint:
    """Raises `AuditLogDamaged` for one that was altered, FileNotFoundError when it is not there."""
    name = checkpoint_name(size)
    data = _read(directory, name)
    try:
        checkpoint = parse(data)
        if checkpoint.place.size != size:
            raise MalformedError("checkpoint name")
    except MalformedError as error:
        detail = f"it is not what the broker signed ({error})"
        raise AuditLogDamaged(LocatedFault(Fault.CHECKPOINT_ALTERED, name, 1, size, detail)) from None
    return checkpoint


def _read(directory: int, name: str) -> bytes:
    with os.fdopen(open_private_file(name, os.O_RDONLY, directory=directory), "rb") as stream:
        return stream.read(MAX_CHECKPOINT_BYTES + 1)


def newest_checkpoint(directory: int) -> Checkpoint | None:
    """The one over the most records, or None. Raises as `load_checkpoint`."""
    for _ in range(_TRIES):
        sizes = checkpoint_sizes(directory)
        if not sizes:
            return None
        with contextlib.suppress(FileNotFoundError):
            return load_checkpoint(directory, sizes[-1])
    raise FileNotFoundError(checkpoint_name(sizes[-1]))


def all_checkpoints(directory: int) -> list[Checkpoint | AuditLogDamaged]:
    """All of them, ascending, with the damage in the place of those that were altered."""
    found: list[Checkpoint | AuditLogDamaged] = []
    for size in checkpoint_sizes(directory):
        try:
            found.append(load_checkpoint(directory, size))
        except AuditLogDamaged as damage:
            found.append(damage)
        except FileNotFoundError:
            continue  # replaced by a newer one meanwhile
    return found


def store_checkpoint(directory: int, checkpoint: Checkpoint) -> None:
    """Return when it is on stable storage."""
    name, data = checkpoint_name(checkpoint.place.size), checkpoint.encode()
    replace_private_file(directory, name, data)
    # One that is not what was written would have the whole log refused at the next start.
    if _read(directory, name) != data:
        os.unlink(name, dir_fd=directory)
        raise OSError(errno.EIO, "the disk gave back something else than was written")


def remove_checkpoint(directory: int, size: int) -> None:
    """Remove it if it is there. What remains after a crash harms nobody, so nothing is synced."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(checkpoint_name(size), dir_fd=directory)


def sweep_left_overs(directory: int) -> None:
    """Remove what a crash left of checkpoints that were being written. For the lock's holder only."""
    for name in os.listdir(directory):
        if _LEFT_OVER.fullmatch(name):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
