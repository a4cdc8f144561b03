"""Statements beside the protocol that the instance's two keys vouch for, as the checkpoints of an audit log.

Signed value: PAE(purpose, data) under a label of its own, by both keys, ML-DSA-87 with the label as its
context. So no statement, whatever its purpose and data, is ever the signed value of a challenge.
"""

from tabwarden.protocol.codec import label, pae
from tabwarden.protocol.primitives import Ed25519Signer, PqProvider, PqSigner, ed25519_verify

L_STATEMENT = label("statement")
# Contexts of ML-DSA are at most 255 bytes (FIPS 204 section 5.2).
assert len(L_STATEMENT) <= 255  # noqa: S101 - a wire constant, checked once


class InstanceSigner:
    """Signs statements with the keys of one running broker. Implements `tabwarden.ports.StatementSigner`."""

    def __init__(self, ed: Ed25519Signer, pq: PqSigner) -> None:
        self._ed = ed
        self._pq = pq

    @property
    def ed_public(self) -> bytes:
        """32 bytes (RFC 8032)."""
        return self._ed.public

    @property
    def pq_public(self) -> bytes:
        """2,592 bytes (FIPS 204, ML-DSA-87)."""
        return self._pq.public

    def sign_statement(self, purpose: str, data: bytes) -> tuple[bytes, bytes]:
        """The Ed25519 signature (64 bytes) and the ML-DSA-87 one (4,627 bytes). Takes about a millisecond."""
        value = _signed_value(purpose, data)
        return self._ed.sign(value), self._pq.sign(value, L_STATEMENT)


def verify_statement(
    provider: PqProvider,
    public: tuple[bytes, bytes],
    signatures: tuple[bytes, bytes],
    purpose: str,
    data: bytes,
) -> bool:
    """Whether BOTH signatures (Ed25519, ML-DSA-87) are good under both `public` keys. Never raises for bad
    bytes."""
    value = _signed_value(purpose, data)
    (ed_public, pq_public), (ed_signature, pq_signature) = public, signatures
    return ed25519_verify(ed_public, ed_signature, value) and provider.verify(
        pq_public, pq_signature, value, L_STATEMENT
    )


def _signed_value(purpose: str, data: bytes) -> bytes:
    return pae(L_STATEMENT, purpose.encode("ascii"), data)
