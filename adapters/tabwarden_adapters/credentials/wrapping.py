"""A descriptor under a fresh key of its own, which somebody else (a TPM, systemd) wraps.

Sealed: two bytes with the length of the wrapped key (big-endian), the wrapped key, and what `sealing.seal`
made. The wrapped key is authenticated with the rest, so that no bit of it may change.
"""

import hashlib
import os
import struct
from collections.abc import Callable

from tabwarden.errors import DescriptorError

from tabwarden_adapters.credentials.sealing import KEY_BYTES, seal, unseal

_LENGTH = struct.Struct(">H")


def seal_wrapped(wrap: Callable[[bytes], bytes], plaintext: bytes, format_name: str, context: bytes) -> bytes:
    """Seal `plaintext` under a new key and let `wrap` hide that key (32 bytes in, under 64 KiB out)."""
    key = os.urandom(KEY_BYTES)
    wrapped = wrap(key)
    return _LENGTH.pack(len(wrapped)) + wrapped + seal(key, plaintext, format_name, _bound(wrapped, context))


def unseal_wrapped(
    unwrap: Callable[[bytes], bytes], sealed: bytes, format_name: str, context: bytes
) -> bytes:
    """Open it again. Raises `DescriptorError` when any part differs, and whatever `unwrap` raises."""
    if len(sealed) < _LENGTH.size:
        raise DescriptorError("the sealed descriptor is too short: pair again")
    (length,) = _LENGTH.unpack_from(sealed)
    body = sealed[_LENGTH.size :]
    if len(body) < length:
        raise DescriptorError("the sealed descriptor is too short: pair again")
    wrapped, rest = body[:length], body[length:]
    key = unwrap(wrapped)
    if len(key) != KEY_BYTES:
        raise DescriptorError("the descriptor was changed, or sealed under another key: pair again")
    return unseal(key, rest, format_name, _bound(wrapped, context))


def _bound(wrapped: bytes, context: bytes) -> bytes:
    return hashlib.sha256(wrapped).digest() + context
