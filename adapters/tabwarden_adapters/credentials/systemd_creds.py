"""The key that systemd keeps for root: `systemd-creds` (systemd.io/CREDENTIALS) with the host's key.

Each descriptor has a fresh key, and systemd-creds encrypts that key (AES-256-GCM) under
/var/lib/systemd/credential.secret, which only root may read. It protects a stored descriptor against other
users, and against whoever gets the descriptor's file without that folder (a backup of a home folder, say).
It does not protect against root, nor against a stolen disk that is not encrypted: the key is on it.
"""

import base64
import os

from tabwarden.errors import ConfigurationError, DescriptorError

from tabwarden_adapters.credentials.programs import find_program, run_program
from tabwarden_adapters.credentials.wrapping import seal_wrapped, unseal_wrapped

CREDENTIAL_NAME = "tabwarden-descriptor-key"
# CRED_AES256_GCM_BY_HOST of systemd's creds-util.h, with which such a credential begins. systemd-creds would
# also open one under its "null" key, which everybody knows.
_BY_HOST = bytes.fromhex("5a1c6a86df9d4096b1d5a65e0862f19a")


class SystemdCredsProtector:
    """Implements `tabwarden.ports.CredentialProtector`, for root.

    Raises `ConfigurationError` when made without root's rights or where systemd-creds is missing.
    """

    format = "systemd-creds-host-v1"
    _named = f"--name={CREDENTIAL_NAME}"  # authenticated by systemd: no other credential passes for ours

    def __init__(self) -> None:
        program = find_program("systemd-creds")
        if program is None:
            raise ConfigurationError("systemd-creds is not installed: it comes with systemd 250 or later")
        if os.geteuid() != 0:
            raise ConfigurationError("systemd-creds needs root: run the broker as root, or choose another")
        self._program = program

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`; systemd makes its key when there is none. Raises `DescriptorError`."""
        return seal_wrapped(self._wrap, plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or systemd's key is another."""
        return unseal_wrapped(self._unwrap, sealed, self.format, context)

    def _wrap(self, key: bytes) -> bytes:
        # The key by name: "auto" would take whatever there is, even none at all.
        return run_program([self._program, "--with-key=host", self._named, "encrypt", "-", "-"], key)

    def _unwrap(self, wrapped: bytes) -> bytes:
        try:
            by_host = base64.b64decode(wrapped[:24], validate=True).startswith(_BY_HOST)
        except ValueError:
            by_host = False
        if not by_host:
            raise DescriptorError("the descriptor is not under systemd's host key: pair again")
        try:
            return run_program([self._program, self._named, "decrypt", "-", "-"], wrapped)
        except DescriptorError as error:
            raise DescriptorError(
                f"systemd's key does not open it (changed, or another machine's): pair again ({error})"
            ) from None
