"""One process of this user at a time, in a private folder."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from tabwarden.private_files import open_private_file


@contextlib.contextmanager
def locked(directory: int, name: str) -> Iterator[None]:
    """Hold the lock file `name` in the open folder while the block runs. Waits for it (flock(2))."""
    lock = open_private_file(name, os.O_RDWR | os.O_CREAT, directory=directory)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
