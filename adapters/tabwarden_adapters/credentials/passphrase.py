"""A key made from a passphrase, for machines with nothing better: scrypt (RFC 7914), N=2^17, r=8, p=1.

It protects a stored descriptor against everybody who does not know the passphrase, programs of the same user
among them, as far as the passphrase is hard to guess: one guess costs some tenths of a second and 128 MiB.
It does not protect against a program that watches the passphrase being typed or reads our memory.

Sealed: 16 bytes of salt, then what `sealing.seal` made. The cost is part of the format: nobody can lower it.
"""

import hashlib
import os
import threading
from collections.abc import Callable

from tabwarden.errors import ConfigurationError, DescriptorError

from tabwarden_adapters.credentials.sealing import KEY_BYTES, seal, unseal

MIN_PASSPHRASE = 12  # bytes; a generated one of this length is out of reach, a chosen one may not be
_SALT_BYTES = 16
_N, _R, _P = 2**17, 8, 1
_MEMORY = 160 * 1024 * 1024  # scrypt itself needs 128 * N * r = 128 MiB


class _Derived:
    """A key in memory with the salt that it belongs to. No repr shows it."""

    __slots__ = ("key", "salt")

    def __init__(self, salt: bytes, passphrase: bytes) -> None:
        self.salt = salt
        self.key = hashlib.scrypt(passphrase, salt=salt, n=_N, r=_R, p=_P, maxmem=_MEMORY, dklen=KEY_BYTES)


class PassphraseProtector:
    """Implements `tabwarden.ports.CredentialProtector`.

    `ask` gives the passphrase as bytes; its argument says whether a new one is chosen (ask twice then). It is
    asked once for sealing and once for each salt that is opened; the passphrase is not kept, its key is.
    Raises `ConfigurationError` when made without `ask`.
    """

    format = "passphrase-scrypt-v1"

    def __init__(self, ask: Callable[[bool], bytes] | None) -> None:
        if ask is None:
            raise ConfigurationError("a passphrase is needed: run at a terminal, or give --passphrase-fd")
        self._ask = ask
        self._derived: _Derived | None = None
        self._once = threading.Lock()  # descriptors may be stored from two threads at once

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`. Raises `DescriptorError` when there is no passphrase or it is too short."""
        with self._once:
            if self._derived is None:
                passphrase = self._ask(True)
                if len(passphrase) < MIN_PASSPHRASE:
                    raise DescriptorError(f"the passphrase is too short: at least {MIN_PASSPHRASE} bytes")
                self._derived = _Derived(os.urandom(_SALT_BYTES), passphrase)
            derived = self._derived
        return derived.salt + seal(derived.key, plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or the passphrase is another."""
        salt, rest = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:]
        if len(salt) < _SALT_BYTES:
            raise DescriptorError("the sealed descriptor is too short: pair again")
        with self._once:
            derived = self._derived
            if derived is None or derived.salt != salt:
                derived = _Derived(salt, self._ask(False))
            try:
                plaintext = unseal(derived.key, rest, self.format, context)
            except DescriptorError:
                raise DescriptorError(
                    "the passphrase is wrong, or the descriptor was changed: try again, or pair again"
                ) from None
            if self._derived is None:
                self._derived = derived
        return plaintext
