"""M3 and M4: what is sealed, under keys that exist for one call only.

    TH      SHA384(PAE(M1 input, M1 MAC, M2, KEM ciphertext, X25519 public key of the client))
    secret  HKDF-Extract(salt = k_psk, ML-KEM secret || X25519 secret)
    keys    four HKDF-Expands: request key and IV, response key and IV, each with TH in `info`
    M3      challenge id 16 | KEM ciphertext 1568 | X25519 32 | AEAD(padded request)
    M4      AEAD(padded reply)

Plaintext is padded to one of five sizes: u32 length, the bytes, zeros.
"""

from dataclasses import dataclass, field

from tabwarden.errors import MalformedError
from tabwarden.limits import (
    AEAD_TAG_BYTES,
    CHALLENGE_ID_BYTES,
    MLKEM_CIPHERTEXT_BYTES,
    PADDED_SIZES,
    X25519_BYTES,
)
from tabwarden.protocol.codec import label, pae, u64
from tabwarden.protocol.primitives import aead_open, aead_seal, hkdf_expand, hkdf_extract, sha384

L_TRANSCRIPT = label("transcript")
L_AGENT_REQUEST = label("agent-request")
L_AGENT_RESPONSE = label("agent-response")
_L_KEYS = {name: label(name) for name in ("request-key", "request-iv", "response-key", "response-iv")}

KEY_BYTES, IV_BYTES = 32, 12
_LENGTH_BYTES = 4
_HEAD_BYTES = CHALLENGE_ID_BYTES + MLKEM_CIPHERTEXT_BYTES + X25519_BYTES
SEALED_SIZES = frozenset(size + AEAD_TAG_BYTES for size in PADDED_SIZES)
MAX_PLAINTEXT = PADDED_SIZES[-1] - _LENGTH_BYTES


@dataclass(frozen=True, slots=True)
class RequestWire:
    """M3 taken apart; nothing of it is believed yet."""

    challenge_id: bytes
    kem_ciphertext: bytes = field(repr=False)
    x_public: bytes = field(repr=False)
    sealed: bytes = field(repr=False)

    @classmethod
    def parse(cls, data: bytes) -> "RequestWire":
        """One of the five exact lengths; MalformedError otherwise."""
        if len(data) - _HEAD_BYTES not in SEALED_SIZES:
            raise MalformedError("request length")
        kem_end = CHALLENGE_ID_BYTES + MLKEM_CIPHERTEXT_BYTES
        return cls(
            data[:CHALLENGE_ID_BYTES],
            data[CHALLENGE_ID_BYTES:kem_end],
            data[kem_end:_HEAD_BYTES],
            data[_HEAD_BYTES:],
        )

    def encode(self) -> bytes:
        return self.challenge_id + self.kem_ciphertext + self.x_public + self.sealed


def transcript_hash(
    request_input: bytes, request_mac: bytes, challenge: bytes, kem_ciphertext: bytes, x_public: bytes
) -> bytes:
    """TH, 48 bytes: every byte that both ends saw before the first seal."""
    return sha384(pae(L_TRANSCRIPT, request_input, request_mac, challenge, kem_ciphertext, x_public))


def request_associated(
    method: bytes,
    route: bytes,
    instance: bytes,
    challenge_id: bytes,
    principal_id: str,
    generation: int,
    transcript: bytes,
) -> bytes:
    """The associated data of the request's seal."""
    return pae(
        L_AGENT_REQUEST,
        method,
        route,
        instance,
        challenge_id,
        principal_id.encode(),
        u64(generation),
        transcript,
    )


def response_associated(transcript: bytes, request_wire: bytes) -> bytes:
    """The associated data of the reply's seal: it answers exactly one request."""
    return pae(L_AGENT_RESPONSE, transcript, sha384(request_wire))


@dataclass(frozen=True, slots=True)
class CallKeys:
    """The keys of one call. Each seals exactly one message, so each has one IV."""

    request_key: bytes = field(repr=False)
    request_iv: bytes = field(repr=False)
    response_key: bytes = field(repr=False)
    response_iv: bytes = field(repr=False)

    @classmethod
    def derive(cls, psk: bytes, kem_secret: bytes, x_secret: bytes, transcript: bytes) -> "CallKeys":
        """From the capability, both shared secrets and TH: breaking one of them alone opens nothing."""
        secret = hkdf_extract(psk, kem_secret + x_secret)

        def expand(name: str, length: int) -> bytes:
            return hkdf_expand(secret, pae(_L_KEYS[name], transcript), length)

        return cls(
            expand("request-key", KEY_BYTES),
            expand("request-iv", IV_BYTES),
            expand("response-key", KEY_BYTES),
            expand("response-iv", IV_BYTES),
        )

    def seal_request(self, plaintext: bytes, associated: bytes) -> bytes:
        return aead_seal(self.request_key, self.request_iv, pad(plaintext), associated)

    def open_request(self, sealed: bytes, associated: bytes) -> bytes:
        return unpad(aead_open(self.request_key, self.request_iv, sealed, associated))

    def seal_response(self, plaintext: bytes, associated: bytes) -> bytes:
        return aead_seal(self.response_key, self.response_iv, pad(plaintext), associated)

    def open_response(self, sealed: bytes, associated: bytes) -> bytes:
        if len(sealed) not in SEALED_SIZES:
            raise MalformedError("reply length")
        return unpad(aead_open(self.response_key, self.response_iv, sealed, associated))


def pad(plaintext: bytes) -> bytes:
    """To the smallest of the five sizes that holds it; MalformedError when none does."""
    needed = _LENGTH_BYTES + len(plaintext)
    for size in PADDED_SIZES:
        if needed <= size:
            return len(plaintext).to_bytes(_LENGTH_BYTES) + plaintext + bytes(size - needed)
    raise MalformedError("plaintext length")


def unpad(padded: bytes) -> bytes:
    """The plaintext, when the padding is exactly what `pad` makes."""
    end = _LENGTH_BYTES + int.from_bytes(padded[:_LENGTH_BYTES])
    plaintext = padded[_LENGTH_BYTES:end]
    if end > len(padded) or pad(plaintext) != padded:
        raise MalformedError("padding")
    return plaintext
