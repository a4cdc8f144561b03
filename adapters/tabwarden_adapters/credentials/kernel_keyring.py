"""A key that is in no file at all: the Linux kernel keeps it in this user's keyring.

It protects a stored descriptor against other users, stolen disks and backups. It does not protect against
programs of the same user, which may read the key as we do, nor against root.

The key lives until the machine restarts (or the user's last process ends, on some systems); descriptors do
not outlive their broker either.
"""

import errno
import os

from tabwarden.errors import DescriptorError

from tabwarden_adapters.credentials.keyctl import PROCESS_KEYRING, USER_KEYRING, KeyCalls
from tabwarden_adapters.credentials.sealing import KEY_BYTES, seal, unseal

DESCRIPTION = "tabwarden:descriptor-key:v1"

_VIEW, _READ, _WRITE, _SEARCH, _LINK, _SETATTR = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_POSSESSOR, _USER = 24, 16  # where each one's six bits stand in the mask
# Nobody may write: a second broker that adds its own key at the same moment must not change ours.
_MASK = ((_VIEW | _READ | _SEARCH | _LINK | _SETATTR) << _POSSESSOR) | ((_VIEW | _READ | _SEARCH) << _USER)
_OTHERS = 0xFFFF  # the group's bits and everybody else's


class KernelKeyringProtector:
    """Implements `tabwarden.ports.CredentialProtector`. One key for each user of the machine.

    `keyring` and `description` are for tests. Raises OSError when made where there is no such keyring.
    """

    format = "linux-keyring-v1"

    def __init__(self, *, keyring: int = USER_KEYRING, description: str = DESCRIPTION) -> None:
        self._calls = KeyCalls()
        self._keyring = keyring
        self._description = description

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`, making the key when there is none. Raises `DescriptorError`."""
        return seal(self._key(create=True), plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or the key is gone."""
        return unseal(self._key(create=False), sealed, self.format, context)

    def forget(self) -> bool:
        """Drop the key: what was sealed under it can never be opened again. Returns whether there was one."""
        try:
            self._calls.unlink(self._calls.search(self._keyring, self._description), self._keyring)
        except OSError as error:
            if error.errno == errno.ENOKEY:
                return False
            raise self._refused(error) from None
        return True

    def _key(self, *, create: bool) -> bytes:
        try:
            try:
                key = self._find(create=create)
            except PermissionError:
                # A session (a systemd service's, say) need not contain the user keyring; then we find a key
                # in it and still do not "possess" it. With the keyring in our process keyring, we do.
                self._calls.link(self._keyring, PROCESS_KEYRING)
                key = self._find(create=create)
        except OSError as error:
            raise self._refused(error) from None
        if len(key) != KEY_BYTES:
            raise DescriptorError("the key in the kernel keyring is not ours: remove it (keyctl unlink)")
        return key

    def _find(self, *, create: bool) -> bytes:
        """The payload, whatever it is. Raises OSError."""
        try:
            serial = self._calls.search(self._keyring, self._description)
        except OSError as error:
            if error.errno != errno.ENOKEY or not create:
                raise
            serial = self._make()
        uid, mask = self._calls.describe(serial)
        if uid != os.geteuid() or mask & _OTHERS:
            raise DescriptorError(
                "the key in the kernel keyring is open to other users: remove it (keyctl unlink)"
            )
        if mask & ((_WRITE << _POSSESSOR) | (_WRITE << _USER)):
            # Made a moment ago, by us or by another process of ours.
            self._calls.set_permissions(serial, _MASK)
        return self._calls.read(serial, KEY_BYTES)

    def _make(self) -> int:
        """Add a key; `_find` closes it to writing before it reads. When two processes add one at once, the
        later payload wins, until either closes it; both read after that, so both hold the same."""
        try:
            return self._calls.add(self._description, os.urandom(KEY_BYTES), self._keyring)
        except OSError as error:
            if error.errno != errno.EACCES:
                raise
            return self._calls.search(self._keyring, self._description)  # the other one has closed it

    def _refused(self, error: OSError) -> DescriptorError:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        if error.errno in (errno.ENOKEY, errno.EKEYREVOKED, errno.EKEYEXPIRED):
            return DescriptorError("the key in the kernel keyring is gone: start the broker and pair again")
        return DescriptorError(f"the kernel keyring refuses ({name}): use the key file instead")
