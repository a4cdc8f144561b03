"""The offline private keys in a file, open or sealed under a passphrase. They only sign policies.

    {"format": "tabwarden-policy-private-keys/1", "protection": "none" | "scrypt",
     "salt": 16 bytes, with scrypt, "seeds": 64 bytes, with scrypt sealed}       in unpadded base64url

With a passphrase: a key of 32 bytes from scrypt (RFC 7914; N = 2^17, r = 8, p = 1: 128 MiB, about half a
second), under which AES-256-GCM seals the seeds with a nonce of zeros (the salt makes every key a new one).
"""

import json
import os
from typing import Annotated, Literal

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from msgspec import Meta
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.limits import AEAD_TAG_BYTES
from tabwarden.protocol.codec import base64url, label
from tabwarden.protocol.primitives import aead_open, aead_seal

from tabwarden_adapters.policy.document import Part
from tabwarden_adapters.policy.reading import strict_json, typed
from tabwarden_adapters.policy.signing import SEED_BYTES, SigningKeys, decoded

PRIVATE_FORMAT = "tabwarden-policy-private-keys/1"
MIN_PASSPHRASE = 12
_SALT_BYTES = 16
_NONCE = bytes(12)
_LABEL = label("policy-private-keys")
_SCRYPT = {"n": 2**17, "r": 8, "p": 1}


class _PrivateFile(Part, frozen=True, kw_only=True):
    format: Literal["tabwarden-policy-private-keys/1"]
    protection: Literal["none", "scrypt"]
    seeds: Annotated[str, Meta(max_length=256)]
    salt: Annotated[str, Meta(max_length=64)] | None = None


def new_private_keys(passphrase: str | None) -> tuple[bytes, SigningKeys]:
    """A file's contents and the keys in it. Raises `ConfigurationError` for a short passphrase."""
    seeds = os.urandom(2 * SEED_BYTES)
    if passphrase is None:
        members = {"protection": "none", "seeds": base64url(seeds)}
    else:
        if len(passphrase) < MIN_PASSPHRASE:
            raise ConfigurationError(
                f"the passphrase has less than {MIN_PASSPHRASE} characters: take a longer one"
            )
        salt = os.urandom(_SALT_BYTES)
        sealed = aead_seal(_derive(passphrase, salt), _NONCE, seeds, _LABEL)
        members = {"protection": "scrypt", "salt": base64url(salt), "seeds": base64url(sealed)}
    data = json.dumps({"format": PRIVATE_FORMAT, **members}, indent=1).encode("ascii") + b"\n"
    return data, _keys(seeds)


def needs_passphrase(data: bytes) -> bool:
    """Whether these private keys are sealed. Raises `ConfigurationError` naming the field."""
    return _read(data).protection == "scrypt"


def read_private_keys(data: bytes, passphrase: str | None) -> SigningKeys:
    """The keys in a file's contents. Raises `ConfigurationError` naming the field."""
    file = _read(data)
    if file.protection == "none":
        if file.salt is not None:
            raise ConfigurationError("salt: only sealed keys have one; the file is damaged")
        return _keys(decoded(file.seeds, 2 * SEED_BYTES, "seeds"))
    if file.salt is None:
        raise ConfigurationError("salt: is missing and must be given for sealed keys")
    if passphrase is None:
        raise ConfigurationError("these keys are sealed: give their passphrase")
    salt = decoded(file.salt, _SALT_BYTES, "salt")
    sealed = decoded(file.seeds, 2 * SEED_BYTES + AEAD_TAG_BYTES, "seeds")
    try:
        return _keys(aead_open(_derive(passphrase, salt), _NONCE, sealed, _LABEL))
    except MalformedError:
        raise ConfigurationError("seeds: the passphrase is wrong, or the file was changed") from None


def _read(data: bytes) -> _PrivateFile:
    return typed(strict_json(data, "the private keys"), _PrivateFile, "the private keys")


def _keys(seeds: bytes) -> SigningKeys:
    return SigningKeys(seeds[:SEED_BYTES], seeds[SEED_BYTES:])


def _derive(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, **_SCRYPT).derive(passphrase.encode())
