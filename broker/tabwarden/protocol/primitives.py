"""The only file that touches the cryptography library: one function or small class for each primitive.

Sizes are those of `tabwarden.limits`. Wrong sizes and failed checks raise `MalformedError`; verification
returns False rather than raising. Post-quantum algorithms come from a provider: `cryptography` by
default, liboqs only when it is chosen by name (`tabwarden.providers`).
"""

import hashlib
import hmac
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, mldsa, mlkem, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tabwarden.errors import MalformedError
from tabwarden.limits import (
    ED25519_PUBLIC_BYTES,
    HASH_BYTES,
    MLDSA_PUBLIC_BYTES,
    MLDSA_SIGNATURE_BYTES,
    MLKEM_CIPHERTEXT_BYTES,
    MLKEM_PUBLIC_BYTES,
    X25519_BYTES,
)

_MLKEM_MODULUS = 3329  # FIPS 203, q
_MLKEM_SEED_BYTES = 64  # FIPS 203: d || z


def sha384(data: bytes) -> bytes:
    """48 bytes (FIPS 180-4)."""
    return hashlib.sha384(data).digest()


def hmac_sha384(key: bytes, data: bytes) -> bytes:
    """48 bytes (RFC 2104, FIPS 198-1)."""
    return hmac.digest(key, data, "sha384")


def equal(left: bytes, right: bytes) -> bool:
    """Compare two secrets or MACs in time that does not depend on where they differ."""
    return hmac.compare_digest(left, right)


def hkdf_extract(salt: bytes, input_key: bytes) -> bytes:
    """48 bytes (RFC 5869 section 2.2)."""
    return hmac_sha384(salt, input_key)


def hkdf_expand(key: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 section 2.3, with SHA-384."""
    if length <= HASH_BYTES:
        # One block: T(1) = HMAC(PRK, info || 0x01). Four of these are on the path of every call.
        return hmac_sha384(key, info + b"\x01")[:length]
    return HKDFExpand(algorithm=SHA384(), length=length, info=info).derive(key)


def aead_seal(key: bytes, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """AES-256-GCM (SP 800-38D): 32-byte key, 12-byte nonce; ciphertext and a 16-byte tag."""
    return AESGCM(key).encrypt(nonce, plaintext, associated)


def aead_open(key: bytes, nonce: bytes, sealed: bytes, associated: bytes) -> bytes:
    """The plaintext; MalformedError when anything was changed."""
    try:
        return AESGCM(key).decrypt(nonce, sealed, associated)
    except InvalidTag:
        raise MalformedError("seal") from None


class Ed25519Signer:
    """A fresh Ed25519 key (RFC 8032), or the one of a 32-byte seed for vectors."""

    def __init__(self, seed: bytes | None = None) -> None:
        generate = ed25519.Ed25519PrivateKey.generate
        load = ed25519.Ed25519PrivateKey.from_private_bytes
        self._key = generate() if seed is None else load(seed)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """64 bytes."""
        return self._key.sign(data)


def ed25519_verify(public: bytes, signature: bytes, data: bytes) -> bool:
    """RFC 8032 verification; False for a key or signature of the wrong form too."""
    if len(public) != ED25519_PUBLIC_BYTES:
        return False
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


class X25519Key:
    """A fresh X25519 key pair (RFC 7748), or the one of a 32-byte private key for vectors."""

    __slots__ = ("_key", "public")

    def __init__(self, private: bytes | None = None) -> None:
        generate = x25519.X25519PrivateKey.generate
        load = x25519.X25519PrivateKey.from_private_bytes
        self._key = generate() if private is None else load(private)
        self.public = self._key.public_key().public_bytes_raw()

    def exchange(self, peer_public: bytes) -> bytes:
        """32 bytes; MalformedError for a low-order peer (RFC 7748 section 6.1: the all-zero secret)."""
        if len(peer_public) != X25519_BYTES:
            raise MalformedError("x25519 length")
        try:
            return self._key.exchange(x25519.X25519PublicKey.from_public_bytes(peer_public))
        except ValueError:
            raise MalformedError("x25519") from None


class KemKey(Protocol):
    """One ML-KEM-1024 key pair, used once."""

    @property
    def public(self) -> bytes: ...

    def decapsulate(self, ciphertext: bytes) -> bytes:
        """32 bytes. A forged ciphertext gives an unrelated secret (implicit rejection), not an error."""
        ...


class PqSigner(Protocol):
    """One ML-DSA-87 key."""

    @property
    def public(self) -> bytes: ...

    def sign(self, data: bytes, context: bytes) -> bytes:
        """4,627 bytes, under a context of at most 255 bytes (FIPS 204)."""
        ...


class PqProvider(Protocol):
    """Where ML-KEM-1024 (FIPS 203) and ML-DSA-87 (FIPS 204) come from."""

    @property
    def name(self) -> str: ...

    def kem_key(self) -> KemKey: ...

    def encapsulate(self, public: bytes) -> tuple[bytes, bytes]:
        """(ciphertext, 32-byte secret); MalformedError when the key is not a reduced ML-KEM-1024 key."""
        ...

    def signer(self) -> PqSigner: ...

    def verify(self, public: bytes, signature: bytes, data: bytes, context: bytes) -> bool: ...


class _NativeKemKey:
    __slots__ = ("_key", "public")

    def __init__(self, seed: bytes | None = None) -> None:
        if seed is not None and len(seed) != _MLKEM_SEED_BYTES:
            raise MalformedError("seed length")
        generate, load = mlkem.MLKEM1024PrivateKey.generate, mlkem.MLKEM1024PrivateKey.from_seed_bytes
        self._key = generate() if seed is None else load(seed)
        self.public = self._key.public_key().public_bytes_raw()

    def decapsulate(self, ciphertext: bytes) -> bytes:
        _check_length(ciphertext, MLKEM_CIPHERTEXT_BYTES)
        return self._key.decapsulate(ciphertext)


class _NativeSigner:
    def __init__(self, seed: bytes | None = None) -> None:
        generate, load = mldsa.MLDSA87PrivateKey.generate, mldsa.MLDSA87PrivateKey.from_seed_bytes
        self._key = generate() if seed is None else load(seed)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes, context: bytes) -> bytes:
        return self._key.sign(data, context)


class NativeProvider:
    """`cryptography` over its own OpenSSL. Seeds are accepted for known-answer vectors only."""

    name = "cryptography"

    def kem_key(self, seed: bytes | None = None) -> KemKey:
        return _NativeKemKey(seed)

    def encapsulate(self, public: bytes) -> tuple[bytes, bytes]:
        try:
            # Refuses a key of another length and one that is not reduced (FIPS 203 section 7.2).
            secret, ciphertext = mlkem.MLKEM1024PublicKey.from_public_bytes(public).encapsulate()
        except ValueError:
            raise MalformedError("ml-kem key") from None
        return ciphertext, secret

    def signer(self, seed: bytes | None = None) -> PqSigner:
        return _NativeSigner(seed)

    def verify(self, public: bytes, signature: bytes, data: bytes, context: bytes) -> bool:
        if len(public) != MLDSA_PUBLIC_BYTES or len(signature) != MLDSA_SIGNATURE_BYTES:
            return False
        try:
            mldsa.MLDSA87PublicKey.from_public_bytes(public).verify(signature, data, context)
        except (InvalidSignature, ValueError):
            return False
        return True


class _OqsKemKey:
    __slots__ = ("_kem", "public")

    def __init__(self, oqs: Any) -> None:
        self._kem = oqs.KeyEncapsulation("ML-KEM-1024")
        self.public = bytes(self._kem.generate_keypair())

    def decapsulate(self, ciphertext: bytes) -> bytes:
        _check_length(ciphertext, MLKEM_CIPHERTEXT_BYTES)
        return bytes(self._kem.decap_secret(ciphertext))

    def __del__(self) -> None:
        # liboqs-python frees nothing by itself: without this each call leaks a key, unwiped.
        if hasattr(self, "_kem"):
            self._kem.free()


class _OqsSigner:
    def __init__(self, oqs: Any) -> None:
        self._signature = oqs.Signature("ML-DSA-87")
        self.public = bytes(self._signature.generate_keypair())

    def sign(self, data: bytes, context: bytes) -> bytes:
        return bytes(self._signature.sign_with_ctx_str(data, context))

    def __del__(self) -> None:
        if hasattr(self, "_signature"):
            self._signature.free()


class OqsProvider:
    """liboqs by way of liboqs-python, whose module is passed in: `tabwarden.providers` finds it."""

    name = "oqs"

    def __init__(self, oqs: Any) -> None:
        self._oqs = oqs

    def supported(self) -> bool:
        """Whether this liboqs was built with both algorithms."""
        return (
            "ML-KEM-1024" in self._oqs.get_enabled_kem_mechanisms()
            and "ML-DSA-87" in self._oqs.get_enabled_sig_mechanisms()
        )

    def kem_key(self) -> KemKey:
        return _OqsKemKey(self._oqs)

    def encapsulate(self, public: bytes) -> tuple[bytes, bytes]:
        # liboqs does not check that the key is reduced (FIPS 203 section 7.2).
        check_kem_public(public)
        with self._oqs.KeyEncapsulation("ML-KEM-1024") as kem:
            ciphertext, secret = kem.encap_secret(public)
        return bytes(ciphertext), bytes(secret)

    def signer(self) -> PqSigner:
        return _OqsSigner(self._oqs)

    def verify(self, public: bytes, signature: bytes, data: bytes, context: bytes) -> bool:
        if len(public) != MLDSA_PUBLIC_BYTES or len(signature) != MLDSA_SIGNATURE_BYTES:
            return False
        with self._oqs.Signature("ML-DSA-87") as verifier:
            return bool(verifier.verify_with_ctx_str(data, signature, context, public))


def check_kem_public(public: bytes) -> None:
    """FIPS 203 section 7.2: right length, every coefficient below q. MalformedError otherwise."""
    _check_length(public, MLKEM_PUBLIC_BYTES)
    packed = int.from_bytes(public[:-32], "little")
    # Twelve-bit coefficients, two to three bytes; the last 32 bytes are the seed rho.
    for at in range(0, (MLKEM_PUBLIC_BYTES - 32) * 8, 12):
        if (packed >> at) & 0xFFF >= _MLKEM_MODULUS:
            raise MalformedError("ml-kem key")


def _check_length(data: bytes, length: int) -> None:
    if len(data) != length:
        raise MalformedError("length")
