"""AES-256-GCM (NIST SP 800-38D) around a descriptor: the same for every protector that holds a key.

Sealed: a random nonce of 12 bytes, then the ciphertext with its tag of 16. The same key seals some
descriptors a day, far from the 2^32 that random nonces allow. Format and context are authenticated.
"""

import os
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tabwarden.errors import DescriptorError

KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
_LABEL = b"tabwarden sealed descriptor v1"


def seal(key: bytes, plaintext: bytes, format_name: str, context: bytes) -> bytes:
    """Seal `plaintext` under `key` (32 bytes), bound to the protector's format and to `context`."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plaintext, _associated(format_name, context))


def unseal(key: bytes, sealed: bytes, format_name: str, context: bytes) -> bytes:
    """Open it again. Raises `DescriptorError` when any part differs from what was sealed."""
    if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
        raise DescriptorError("the sealed descriptor is too short: pair again")
    nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, body, _associated(format_name, context))
    except InvalidTag:
        raise DescriptorError("the descriptor was changed, or sealed under another key: pair again") from None


def _associated(format_name: str, context: bytes) -> bytes:
    # Lengths in front, so that no two pairs of format and context give the same bytes.
    name = format_name.encode("ascii")
    return struct.pack(">30sHI", _LABEL, len(name), len(context)) + name + context
