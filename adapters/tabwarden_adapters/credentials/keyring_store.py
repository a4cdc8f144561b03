"""A key kept by the desktop's own password store, reached through the `keyring` library.

Linux: the Secret Service (freedesktop.org Secret Service API; gnome-keyring, KWallet, KeePassXC); macOS: the
login Keychain. The store encrypts the key under the login password, so it protects against other users,
stolen disks and backups as well as that password does (a store without a password: not at all). While the
store is open it does not protect against programs of the same user, nor against root.

Only the named store itself is used. Whatever else `keyring` might fall back on (its null and fail backends,
a chain of others, a plain file) is refused. Nothing here opens a prompt: a locked store is an error.
"""

import base64
import binascii
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tabwarden.errors import ConfigurationError, DescriptorError, TabwardenError
from tabwarden.private_files import open_private_directory

from tabwarden_adapters.credentials.bounded import within
from tabwarden_adapters.credentials.folder_lock import locked
from tabwarden_adapters.credentials.runtime_dir import default_runtime_dir
from tabwarden_adapters.credentials.sealing import KEY_BYTES, seal, unseal

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "tabwarden"
ACCOUNT = "descriptor-key-v1"
LIMIT_S = 10.0
LOCK_NAME = "keyring.lock"

T = TypeVar("T")


class KeyringStoreProtector:
    """What both stores share. One key for each user; `account` is for tests.

    `key_directory` holds nothing but a lock, so that two brokers do not make the key at once; None:
    `default_runtime_dir()`. Raises `ConfigurationError` when made where the store cannot be used now.
    """

    format = ""
    _store = ""
    _backend = ""  # module of the one backend that is this store

    def __init__(
        self,
        key_directory: str | os.PathLike[str] | None = None,
        *,
        account: str = ACCOUNT,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._directory = None if key_directory is None else Path(key_directory)
        self._account = account
        self._limit_s = limit_s
        try:
            self._asked(lambda: None)
        except DescriptorError as error:
            raise ConfigurationError(str(error)) from None

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`, making the key when there is none. Raises `DescriptorError`."""
        return seal(self._key(create=True), plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or the key is gone."""
        return unseal(self._key(create=False), sealed, self.format, context)

    def forget(self) -> bool:
        """Drop the key: what was sealed under it can never be opened again. Returns whether there was one."""

        def work() -> bool:
            backend = self._open()
            if backend.get_password(SERVICE, self._account) is None:
                return False
            backend.delete_password(SERVICE, self._account)
            return True

        return self._asked(work)

    def _check_open(self) -> None:
        """Raise `DescriptorError` when using the store now would fail or ask a person."""

    def _key(self, *, create: bool) -> bytes:
        found = self._asked(lambda: self._open().get_password(SERVICE, self._account))
        if found is None and create:
            found = self._made()
        if found is None:
            raise DescriptorError(f"the key in {self._store} is gone: start the broker and pair again")
        try:
            key = base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise DescriptorError(
                f"the entry {SERVICE}/{self._account} in {self._store} is not a key of ours: remove it"
            )
        return key

    def _made(self) -> str | None:
        """A new key, or the one that another process of ours has just made."""

        def work() -> str | None:
            backend = self._open()
            if (there := backend.get_password(SERVICE, self._account)) is not None:
                return there
            key = base64.b64encode(os.urandom(KEY_BYTES)).decode("ascii")
            backend.set_password(SERVICE, self._account, key)
            return backend.get_password(SERVICE, self._account)  # what the store says, not what we hope

        try:
            folder = default_runtime_dir() if self._directory is None else self._directory
            directory = open_private_directory(folder, create=True)
            try:
                with locked(directory, LOCK_NAME):
                    return self._asked(work)
            finally:
                os.close(directory)
        except ConfigurationError as error:
            raise DescriptorError(str(error)) from None

    def _open(self) -> "KeyringBackend":
        """The one backend that is this store. Raises `DescriptorError` rather than take another one."""
        try:
            from keyring import core
            from keyring.backend import KeyringBackend
            from keyring.backends.chainer import ChainerBackend
        except ImportError:
            raise DescriptorError(
                "the keyring library is not installed: pip install 'tabwarden[keyring]'"
            ) from None
        chosen: KeyringBackend | None = core.load_env() or core.load_config()
        if isinstance(chosen, ChainerBackend):
            chosen = next((one for one in chosen.backends if self._is_store(one)), chosen)
        if chosen is None:
            module = __import__(self._backend, fromlist=["Keyring"])
            if not module.Keyring.viable:
                raise DescriptorError(f"{self._store} cannot be reached: nothing answers for it here")
            made: KeyringBackend = module.Keyring()
            return made
        if not self._is_store(chosen):
            raise DescriptorError(
                f"keyring is set to use {type(chosen).__module__}, which is not {self._store}: change "
                "PYTHON_KEYRING_BACKEND or keyringrc.cfg"
            )
        return chosen

    def _is_store(self, backend: object) -> bool:
        return type(backend).__module__ == self._backend and type(backend).__name__ == "Keyring"

    def _asked(self, work: Callable[[], T]) -> T:
        """`work`, when the store is open; bounded. Other libraries' errors are told by type only."""

        def checked() -> T:
            self._open()
            self._check_open()
            return work()

        try:
            return within(
                self._limit_s,
                checked,
                f"{self._store} did not answer within {self._limit_s:g} s: is it waiting for somebody?",
            )
        except TabwardenError:
            raise
        except Exception as error:
            raise DescriptorError(f"{self._store} refuses ({type(error).__name__})") from None


class SecretServiceProtector(KeyringStoreProtector):
    """Implements `tabwarden.ports.CredentialProtector` by the Secret Service of a Linux desktop."""

    format = "secret-service-v1"
    _store = "the Secret Service"
    _backend = "keyring.backends.SecretService"

    def _check_open(self) -> None:
        # keyring itself would open a prompt and wait for it without end.
        import secretstorage

        bus = secretstorage.dbus_init()
        try:
            # Not get_default_collection, which would ask for a new one to be made.
            if secretstorage.Collection(bus).is_locked():
                raise DescriptorError(f"{self._store} is locked: unlock the login keyring and try again")
        except secretstorage.ItemNotFoundException:
            raise DescriptorError(
                f"{self._store} has no default keyring: make one (seahorse) and try again"
            ) from None
        finally:
            bus.close()


class KeychainProtector(KeyringStoreProtector):
    """Implements `tabwarden.ports.CredentialProtector` by the login Keychain of macOS.

    Not run on macOS by this project's tests: they show only that it is refused elsewhere and that it shares
    everything but the backend with `SecretServiceProtector`. If the Keychain asks a person whether this
    program may read the key, that has to be answered within the time limit.
    """

    format = "macos-keychain-v1"
    _store = "the macOS Keychain"
    _backend = "keyring.backends.macOS"

    def __init__(self, key_directory: str | os.PathLike[str] | None = None) -> None:
        if platform.system() != "Darwin":
            raise ConfigurationError("the macOS Keychain exists on macOS only")
        super().__init__(key_directory)
