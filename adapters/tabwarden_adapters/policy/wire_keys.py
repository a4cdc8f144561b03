"""Pairs of public keys as they stand in documents and states."""

from tabwarden.limits import ED25519_PUBLIC_BYTES, MLDSA_PUBLIC_BYTES
from tabwarden.protocol.codec import base64url

from tabwarden_adapters.policy.document import NextKeys
from tabwarden_adapters.policy.signing import PublicKeys, decoded


def keys_to_wire(keys: PublicKeys) -> dict[str, str]:
    """As the document's `nextKeys`."""
    return {"ed25519": base64url(keys.ed25519), "mlDsa87": base64url(keys.ml_dsa87)}


def keys_from_wire(keys: NextKeys, field: str) -> PublicKeys:
    """Raises `ConfigurationError` naming the field below `field`."""
    return PublicKeys(
        decoded(keys.ed25519, ED25519_PUBLIC_BYTES, f"{field}.ed25519"),
        decoded(keys.ml_dsa87, MLDSA_PUBLIC_BYTES, f"{field}.mlDsa87"),
    )
