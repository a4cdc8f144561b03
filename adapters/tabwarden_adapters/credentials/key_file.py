"""A key in a file that only this user may read.

It protects a stored descriptor against other users and nothing else: whoever can read this user's files
(another program of the user, root, a backup, a stolen disk) has the key too. `doctor` says so.
"""

import contextlib
import os
from pathlib import Path

from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.credentials.folder_lock import locked
from tabwarden_adapters.credentials.sealing import KEY_BYTES, seal, unseal

KEY_NAME = "descriptor.key"
LOCK_NAME = "descriptor.key.lock"


class KeyFileProtector:
    """Implements `tabwarden.ports.CredentialProtector`. `directory` must be a private folder (0700, ours).

    Folder and file are opened and checked anew for each use; the key is never kept.
    """

    format = "key-file-v1"

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`, making folder and key when there are none. Raises `DescriptorError`."""
        return seal(self._key(create=True), plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or the key is gone."""
        return unseal(self._key(create=False), sealed, self.format, context)

    def _key(self, *, create: bool) -> bytes:
        try:
            directory = open_private_directory(self._directory, create=create)
            try:
                key = self._read(directory)
                if key is None and create:
                    with locked(directory, LOCK_NAME):
                        key = self._read(directory) or self._make(directory)
            finally:
                os.close(directory)
        except FileNotFoundError:
            key = None
        except ConfigurationError as error:
            raise DescriptorError(str(error)) from None
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise DescriptorError(f"the key file in {self._directory} cannot be used: {reason}") from None
        if key is None:
            raise DescriptorError(
                f"there is no key in {self._directory}: start the broker there and pair again"
            )
        return key

    def _read(self, directory: int) -> bytes | None:
        """The key, or None when it is absent or its maker was interrupted (it is shorter then)."""
        try:
            file = open_private_file(KEY_NAME, os.O_RDONLY, directory=directory)
        except FileNotFoundError:
            return None
        try:
            key = os.read(file, KEY_BYTES + 1)
        finally:
            os.close(file)
        if len(key) > KEY_BYTES:
            raise ConfigurationError(f"{self._directory / KEY_NAME} is not a key of ours: remove it")
        return key if len(key) == KEY_BYTES else None

    def _make(self, directory: int) -> bytes:
        """Write a new key, straight to its own name: no copy is left in a temporary file. Under the lock."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(KEY_NAME, dir_fd=directory)
        key = os.urandom(KEY_BYTES)
        file = open_private_file(KEY_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory=directory)
        try:
            if os.write(file, key) != KEY_BYTES:
                raise OSError("the key was not written whole")
            os.fsync(file)
        finally:
            os.close(file)
        os.fsync(directory)
        return key
