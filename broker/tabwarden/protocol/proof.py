"""Who asks: the capability token becomes keys, and each request carries a MAC made with one of them.

The token itself never travels. The same token at another instance, id or generation gives unrelated keys.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tabwarden.errors import MalformedError
from tabwarden.limits import INSTANCE_BYTES, MAC_BYTES, MAX_ID_CHARACTERS, NONCE_BYTES, TOKEN_BYTES
from tabwarden.protocol.codec import base64url, label, pae, parse_base64url, parse_decimal, u64
from tabwarden.protocol.primitives import hkdf_expand, hmac_sha384, sha384

METHOD = b"POST"
CHALLENGE_ROUTE = b"/v1/challenge"
AGENT_ROUTE = b"/v1/agent"

LEGACY_ID = "legacy"
"""The one principal of legacy pairing. It is unattributed: no record names it."""

PRINCIPAL_HEADER = b"tabwarden-principal"
GENERATION_HEADER = b"tabwarden-generation"
TIMESTAMP_HEADER = b"tabwarden-timestamp"
NONCE_HEADER = b"tabwarden-nonce"
PROOF_HEADER = b"tabwarden-proof"
PROOF_HEADERS = (PRINCIPAL_HEADER, GENERATION_HEADER, TIMESTAMP_HEADER, NONCE_HEADER, PROOF_HEADER)
_PROOF_HEADERS = frozenset(PROOF_HEADERS)

_PRINCIPAL_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,%d}\Z" % (MAX_ID_CHARACTERS - 1))
_MAX_U64 = 2**63 - 1

L_INSTANCE = label("instance")
L_CAPABILITY = label("capability")
L_CHALLENGE_TARGET = label("challenge-target")
L_CHALLENGE_REQUEST = label("challenge-request")
L_AGENT_REQUEST_MAC = label("agent-request-mac")


def instance_id(ed_public: bytes, pq_public: bytes, address: str) -> bytes:
    """The 32-byte self-certifying name of a running broker: a hash of its two keys and its address."""
    return sha384(pae(L_INSTANCE, ed_public, pq_public, address.encode()))[:INSTANCE_BYTES]


def is_principal_id(principal_id: str) -> bool:
    """1 to 64 of `A-Za-z0-9._-`, starting with a letter or digit: safe in a header and in a record."""
    return principal_id.isascii() and _PRINCIPAL_ID.match(principal_id.encode()) is not None


@dataclass(frozen=True, slots=True)
class CapabilityKeys:
    """The four keys that a token gives at one instance, for one id and generation; 48 bytes each."""

    challenge: bytes = field(repr=False)
    binding: bytes = field(repr=False)
    request: bytes = field(repr=False)
    psk: bytes = field(repr=False)

    @classmethod
    def derive(
        cls,
        token: bytes,
        *,
        instance: bytes,
        principal_id: str,
        generation: int,
        ed_public: bytes,
        pq_public: bytes,
    ) -> "CapabilityKeys":
        """PRK = HMAC(SHA384(PAE(instance, id, generation, both public keys)), token), then HKDF-Expand."""
        if len(token) != TOKEN_BYTES:
            raise MalformedError("token length")
        scope = pae(L_CAPABILITY, instance, principal_id.encode(), u64(generation), ed_public, pq_public)
        prk = hmac_sha384(sha384(scope), token)
        names = ("challenge", "binding", "request", "psk")
        return cls(*(hkdf_expand(prk, label(f"capability-{name}"), MAC_BYTES) for name in names))


@dataclass(frozen=True, slots=True)
class Proof:
    """The five proof headers of M1 or M3, parsed but not yet believed.

    `timestamp` is in milliseconds of the clock that never steps; `nonce` has 32 bytes, `mac` 48.
    """

    principal_id: str
    generation: int
    timestamp: int
    nonce: bytes
    mac: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not is_principal_id(self.principal_id):
            raise MalformedError("principal id")
        if len(self.nonce) != NONCE_BYTES or len(self.mac) != MAC_BYTES:
            raise MalformedError("proof length")

    def headers(self) -> list[tuple[bytes, bytes]]:
        """As they travel, in the order of `PROOF_HEADERS`."""
        values = (
            self.principal_id,
            str(self.generation),
            str(self.timestamp),
            base64url(self.nonce),
            base64url(self.mac),
        )
        return [(name, value.encode()) for name, value in zip(PROOF_HEADERS, values, strict=True)]

    @classmethod
    def parse(cls, headers: Sequence[tuple[bytes, bytes]]) -> "Proof":
        """Exactly one of each of the five, in canonical spelling; MalformedError otherwise.

        `headers` has lower-case names.
        """
        found: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in _PROOF_HEADERS:
                if name in found:
                    raise MalformedError("proof headers")
                found[name] = value
            elif name.startswith(b"tabwarden-"):
                raise MalformedError("proof headers")
        if len(found) != len(_PROOF_HEADERS):
            raise MalformedError("proof headers")
        principal_id = found[PRINCIPAL_HEADER]
        if not principal_id.isascii():
            raise MalformedError("proof headers")
        return cls(
            principal_id=principal_id.decode(),
            generation=parse_decimal(found[GENERATION_HEADER], _MAX_U64),
            timestamp=parse_decimal(found[TIMESTAMP_HEADER], _MAX_U64),
            nonce=parse_base64url(found[NONCE_HEADER], NONCE_BYTES),
            mac=parse_base64url(found[PROOF_HEADER], MAC_BYTES),
        )


def challenge_body(method: bytes = METHOD, route: bytes = AGENT_ROUTE) -> bytes:
    """The body of M1: which request the challenge is for."""
    return pae(L_CHALLENGE_TARGET, method, route)


def mac_input(
    label_bytes: bytes,
    method: bytes,
    route: bytes,
    instance: bytes,
    principal_id: str,
    generation: int,
    timestamp: int,
    nonce: bytes,
    body: bytes,
) -> bytes:
    """What a request's MAC covers: `label_bytes` is `L_CHALLENGE_REQUEST` or `L_AGENT_REQUEST_MAC`."""
    return pae(
        label_bytes,
        method,
        route,
        instance,
        principal_id.encode(),
        u64(generation),
        u64(timestamp),
        nonce,
        sha384(body),
    )


def prove(
    key: bytes,
    label_bytes: bytes,
    route: bytes,
    instance: bytes,
    principal_id: str,
    generation: int,
    timestamp: int,
    nonce: bytes,
    body: bytes,
) -> tuple[Proof, bytes]:
    """The proof of M1 (`k_challenge`) or M3 (`k_request`), and the `mac_input` that it covers."""
    covered = mac_input(
        label_bytes, METHOD, route, instance, principal_id, generation, timestamp, nonce, body
    )
    return Proof(principal_id, generation, timestamp, nonce, hmac_sha384(key, covered)), covered
