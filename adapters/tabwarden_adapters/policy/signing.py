"""Signed policies: the document's exact bytes under Ed25519 (RFC 8032) and ML-DSA-87 (FIPS 204). Both must
verify.

The envelope is a JSON object:

    {"format": "tabwarden-signed-policy/1",
     "keys": the id of the key pair, 32 hexadecimal digits,
     "document": the document's bytes,
     "ed25519": 64 bytes, "mlDsa87": 4627 bytes}            all three in unpadded base64url

Both signatures are over PAE(L/signed-policy, key id, document), where L is the suite string and PAE that of
`tabwarden.protocol.codec`; ML-DSA-87 takes the label as its context as well. The key id is
SHA384(PAE(L/policy-keys, Ed25519 public key, ML-DSA-87 public key))[:16].
"""

import json
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.limits import (
    ED25519_PUBLIC_BYTES,
    ED25519_SIGNATURE_BYTES,
    MLDSA_PUBLIC_BYTES,
    MLDSA_SIGNATURE_BYTES,
)
from tabwarden.protocol.codec import base64url, label, pae, parse_base64url
from tabwarden.protocol.primitives import Ed25519Signer, NativeProvider, ed25519_verify, sha384

from tabwarden_adapters.policy.document import Part
from tabwarden_adapters.policy.reading import MAX_DOCUMENT_BYTES, strict_json, typed

ENVELOPE_FORMAT = "tabwarden-signed-policy/1"
PUBLIC_FORMAT = "tabwarden-policy-public-keys/1"
MAX_ENVELOPE_BYTES = MAX_DOCUMENT_BYTES * 4 // 3 + 16 * 1024
KEY_ID_BYTES = 16
SEED_BYTES = 32  # of either key (RFC 8032; FIPS 204, xi)
_SIGNED = label("signed-policy")
_KEYS = label("policy-keys")


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """One pair of public keys. A device pins it at enrolment."""

    ed25519: bytes = field(repr=False)
    ml_dsa87: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """32 lower-case hexadecimal digits: what people compare."""
        return sha384(pae(_KEYS, self.ed25519, self.ml_dsa87))[:KEY_ID_BYTES].hex()


class SigningKeys:
    """One pair of private keys, in memory."""

    __slots__ = ("_ed25519", "_ml_dsa87", "public")

    def __init__(self, ed25519_seed: bytes, ml_dsa87_seed: bytes) -> None:
        """Seeds of 32 random bytes each."""
        if len(ed25519_seed) != SEED_BYTES or len(ml_dsa87_seed) != SEED_BYTES:
            raise ConfigurationError("a policy key has two seeds of 32 bytes: make one with policy keygen")
        self._ed25519 = Ed25519Signer(ed25519_seed)
        self._ml_dsa87 = NativeProvider().signer(ml_dsa87_seed)
        self.public = PublicKeys(self._ed25519.public, self._ml_dsa87.public)

    def sign(self, document: bytes) -> bytes:
        """The envelope around exactly these bytes. The document is not looked into."""
        key_id = self.public.key_id
        signed = _signed_bytes(key_id, document)
        members = {
            "format": ENVELOPE_FORMAT,
            "keys": key_id,
            "document": base64url(document),
            "ed25519": base64url(self._ed25519.sign(signed)),
            "mlDsa87": base64url(self._ml_dsa87.sign(signed, _SIGNED)),
        }
        return json.dumps(members, indent=1).encode("ascii") + b"\n"


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope that has the right form. Nothing in it is to be believed before `open_with`."""

    key_id: str
    document: bytes = field(repr=False)
    ed25519: bytes = field(repr=False)
    ml_dsa87: bytes = field(repr=False)

    def open_with(self, keys: PublicKeys) -> bytes:
        """The document, if both signatures are by these keys. Raises `ConfigurationError`."""
        if self.key_id != keys.key_id:
            raise ConfigurationError(
                f"keys: signed with {self.key_id}, but {keys.key_id} is trusted: "
                "sign it with the trusted keys"
            )
        signed = _signed_bytes(self.key_id, self.document)
        for name, good in (
            ("ed25519", ed25519_verify(keys.ed25519, self.ed25519, signed)),
            ("mlDsa87", NativeProvider().verify(keys.ml_dsa87, self.ml_dsa87, signed, _SIGNED)),
        ):
            if not good:
                raise ConfigurationError(f"{name}: the signature does not fit the document: sign it again")
        return self.document


class _EnvelopeFile(Part, frozen=True, kw_only=True):
    format: Literal["tabwarden-signed-policy/1"]
    keys: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
    document: str
    ed25519: str
    ml_dsa87: str = msgspec.field(name="mlDsa87")


class _PublicFile(Part, frozen=True, kw_only=True):
    format: Literal["tabwarden-policy-public-keys/1"]
    ed25519: str
    ml_dsa87: str = msgspec.field(name="mlDsa87")


def read_envelope(data: bytes) -> Envelope:
    """Raises `ConfigurationError` naming the field."""
    if len(data) > MAX_ENVELOPE_BYTES:
        raise ConfigurationError(
            f"the signed policy is larger than {MAX_ENVELOPE_BYTES >> 20} MiB: is it a signed policy?"
        )
    value = strict_json(data, "the signed policy")
    if isinstance(value, dict) and value.get("format") == "tabwarden-policy/1":
        raise ConfigurationError("this policy is not signed: sign it with `tabwarden policy sign`")
    file = typed(value, _EnvelopeFile, "the signed policy")
    return Envelope(
        file.keys,
        decoded(file.document, len(file.document) * 3 // 4, "document"),
        decoded(file.ed25519, ED25519_SIGNATURE_BYTES, "ed25519"),
        decoded(file.ml_dsa87, MLDSA_SIGNATURE_BYTES, "mlDsa87"),
    )


def write_public_keys(keys: PublicKeys) -> bytes:
    """The file that devices enrol with. No secret."""
    members = {
        "format": PUBLIC_FORMAT,
        "ed25519": base64url(keys.ed25519),
        "mlDsa87": base64url(keys.ml_dsa87),
    }
    return json.dumps(members, indent=1).encode("ascii") + b"\n"


def read_public_keys(data: bytes) -> PublicKeys:
    """Raises `ConfigurationError` naming the field."""
    file = typed(strict_json(data, "the public keys"), _PublicFile, "the public keys")
    return PublicKeys(
        decoded(file.ed25519, ED25519_PUBLIC_BYTES, "ed25519"),
        decoded(file.ml_dsa87, MLDSA_PUBLIC_BYTES, "mlDsa87"),
    )


def decoded(text: str, length: int, field_name: str) -> bytes:
    """`length` bytes from unpadded base64url. Raises `ConfigurationError` naming the field."""
    try:
        return parse_base64url(text.encode(), length)
    except MalformedError:
        raise ConfigurationError(f"{field_name}: is not {length} bytes in unpadded base64url") from None


def _signed_bytes(key_id: str, document: bytes) -> bytes:
    return pae(_SIGNED, key_id.encode("ascii"), document)
