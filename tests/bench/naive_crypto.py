"""What both ends of the naive build share: its encoding, key schedule and sizes. Binary throughout."""

import hashlib
import hmac
import time
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ROUTE = "/v1/agent"
CHALLENGE_ROUTE = "/v1/challenge"
ID_BYTES = 16
KEM_BYTES = 1568
X25519_BYTES = 32
ED25519_SIGNATURE_BYTES = 64
MLDSA_SIGNATURE_BYTES = 4627
PADDED = 1024
SUITE = b"tabwarden-bench-naive"
CONTEXT = SUITE + b"/challenge"


def pae(*fields: bytes) -> bytes:
    """An injective, length-prefixed encoding."""
    return b"".join([SUITE, *(len(field).to_bytes(4, "big") + field for field in fields)])


def sha384(data: bytes) -> bytes:
    """SHA-384."""
    return hashlib.sha384(data).digest()


def mac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA384."""
    return hmac.digest(key, data, "sha384")


def now_ms() -> int:
    """The clock of freshness: it never steps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """What a token expands to; made once, not for each call."""

    challenge: bytes
    request: bytes
    psk: bytes


def token_keys(token: bytes, instance: bytes) -> TokenKeys:
    """Expand a capability token for one instance."""
    root = mac(instance, token)
    return TokenKeys(*(mac(root, pae(label)) for label in (b"challenge", b"request", b"psk")))


@dataclass(frozen=True, slots=True)
class CallKeys:
    """One key and IV for each direction of one call."""

    request: AESGCM
    request_iv: bytes
    reply: AESGCM
    reply_iv: bytes


def call_keys(psk: bytes, shared: bytes, transcript: bytes) -> CallKeys:
    """HKDF-SHA384: extract with the token's key as salt, expand four times (a block each)."""
    root = mac(psk, shared)
    out = [
        mac(root, pae(label, transcript) + b"\x01")
        for label in (b"request key", b"request iv", b"reply key", b"reply iv")
    ]
    return CallKeys(AESGCM(out[0][:32]), out[1][:12], AESGCM(out[2][:32]), out[3][:12])


def proof_input(route: str, principal: str, timestamp: str, nonce: str, body: bytes) -> bytes:
    """What the MAC of a request covers."""
    return pae(b"POST", route.encode(), principal.encode(), timestamp.encode(), nonce.encode(), sha384(body))


def pad(plain: bytes) -> bytes:
    """Length, text and zeros, to one fixed size."""
    return (len(plain).to_bytes(4, "big") + plain).ljust(PADDED, b"\0")


def unpad(padded: bytes) -> bytes:
    """Undo `pad`."""
    return padded[4 : 4 + int.from_bytes(padded[:4], "big")]
