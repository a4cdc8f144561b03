"""Descriptors of many principals in one folder: one sealed file for each, under a name that tells nothing."""

import contextlib
import fcntl
import os
import re
import threading
from pathlib import Path

import trio
from tabwarden.errors import ConfigurationError
from tabwarden.model import ConnectionDescriptor
from tabwarden.ports import CredentialProtector
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.credentials.store import DescriptorStore, descriptor_file_name

LOCK_NAME = "principals.lock"
# Our finished files, and what an interrupted write left beside them.
_OURS = re.compile(r"agent-[0-9a-f]{32}\.json|\.agent-[0-9a-f]{32}\.json\.[0-9a-f]{16}")


class PrincipalStore:
    """Implements `tabwarden.ports.CredentialStore` for issued principals, one broker in a folder at a time.

    Opening it removes what an earlier broker left there: its instance has ended, so those files open nothing
    (an agent that still holds one gets `Unreachable` or `Refused`). The folder is made when absent and must
    be private (0700, ours). Raises `ConfigurationError` when it is not, or when another broker uses it.
    """

    def __init__(self, folder: str | os.PathLike[str], protector: CredentialProtector) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._protector = protector
        self._stores: dict[str, tuple[int, DescriptorStore]] = {}
        self._one = threading.Lock()
        self._lock: int | None = None
        directory = open_private_directory(self.folder, create=True)
        try:
            self._lock = _held(directory, self.folder)
            _sweep(directory)
        except OSError as error:
            self.close()
            reason = os.strerror(error.errno or 0)
            raise ConfigurationError(f"cannot use the folder {self.folder}: {reason}") from None
        finally:
            os.close(directory)

    async def __call__(self, descriptor: ConnectionDescriptor, /) -> None:
        """Seal and store as `path_of(principal, generation)`, then remove that principal's older generation.

        Raises `DescriptorError` (the protector failed) or `ConfigurationError` (folder or file, or a
        generation below the stored one); what was stored before stays then.
        """
        await trio.to_thread.run_sync(self.write, descriptor)

    def write(self, descriptor: ConnectionDescriptor) -> None:
        """As the call, blocking."""
        with self._one:
            if self._lock is None:
                raise ConfigurationError(f"the store in {self.folder} is closed")
            generation, store = self._stores.get(descriptor.principal_id, (0, None))
            if descriptor.generation < generation:
                raise ConfigurationError("a newer generation of this principal is stored already")
            path = self.path_of(descriptor.principal_id, descriptor.generation)
            new = (
                store if store is not None and store.path == path else DescriptorStore(path, self._protector)
            )
            new.write(descriptor)
            self._stores[descriptor.principal_id] = (descriptor.generation, new)
            if store is not None and store is not new:
                store.remove()

    def path_of(self, principal_id: str, generation: int) -> Path:
        """Where that capability is, or would be."""
        return self.folder / descriptor_file_name(principal_id, generation)

    def remove(self, principal_id: str) -> bool:
        """Delete the principal's file (revoked, expired). Blocking. Returns whether there was one of ours."""
        with self._one:
            _, store = self._stores.pop(principal_id, (0, None))
            return store is not None and store.remove()

    def close(self) -> None:
        """Delete every file that this store wrote and let another broker use the folder. Blocking."""
        with self._one:
            try:
                for _, store in self._stores.values():
                    store.remove()
            finally:
                self._stores.clear()
                if self._lock is not None:
                    os.close(self._lock)
                    self._lock = None


def _held(directory: int, folder: Path) -> int:
    lock = open_private_file(LOCK_NAME, os.O_RDWR | os.O_CREAT, directory=directory)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise ConfigurationError(f"another broker uses {folder}: stop it, or choose another folder") from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _sweep(directory: int) -> None:
    for name in os.listdir(directory):
        if _OURS.fullmatch(name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
    os.fsync(directory)
