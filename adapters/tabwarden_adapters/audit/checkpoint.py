"""A checkpoint: what a log held at one moment, signed by the two keys of the broker that wrote it.

    checkpoint-<records, 16 digits>.json
    {"format":"tabwarden-audit-checkpoint-v1", "size", "head", "root", "peaks",
     "base":{"size","head","root","peaks"}, "wall_ms", "boot_ms", "key_id",
     "ed25519_public", "ml_dsa_87_public", "ed25519_signature", "ml_dsa_87_signature"}

Hashes are lower-case hexadecimal, keys and signatures base64url without padding. `root` is the root of the
Merkle tree over the hashes of records 1 to `size` (see `edge`), and `head` the hash of record `size`.
`base` is the same of the records that retention has dropped (size 0: none), so the log begins with record
`base.size` + 1 and can be checked from there on. `peaks` let a broker go on without reading the whole log.

Signed, as a statement of the purpose `audit-checkpoint` (`tabwarden.protocol.statement`): PAE(key id, size,
head, root, base size, base head, base root, wall_ms, boot_ms); both signatures must be good. `key_id` is
SHA384(PAE(Ed25519 key, ML-DSA-87 key)): noted elsewhere, it pins both keys.
"""

import json
from dataclasses import dataclass, field

import msgspec
from tabwarden.errors import MalformedError
from tabwarden.limits import (
    ED25519_PUBLIC_BYTES,
    ED25519_SIGNATURE_BYTES,
    HASH_BYTES,
    MLDSA_PUBLIC_BYTES,
    MLDSA_SIGNATURE_BYTES,
)
from tabwarden.ports import StatementSigner
from tabwarden.protocol.codec import base64url, label, pae, parse_base64url, parse_json, u64
from tabwarden.protocol.primitives import NativeProvider, sha384
from tabwarden.protocol.statement import verify_statement

from tabwarden_adapters.audit.chain import GENESIS
from tabwarden_adapters.audit.edge import TreeEdge, fold

FORMAT = "tabwarden-audit-checkpoint-v1"
PURPOSE = "audit-checkpoint"
MAX_CHECKPOINT_BYTES = 32 * 1024  # both keys, both signatures and twice 53 peaks fit
_L_FIELDS = label("audit-checkpoint-fields")
_L_KEYS = label("audit-keys")
_VERIFIER = NativeProvider()


def key_id(ed_public: bytes, pq_public: bytes) -> str:
    """96 hexadecimal digits that stand for both keys."""
    return sha384(pae(_L_KEYS, ed_public, pq_public)).hex()


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log: how many records, the last one's hash, and the peaks of the tree over all of them."""

    size: int = 0
    head: str = GENESIS
    peaks: tuple[bytes, ...] = ()

    def edge(self) -> TreeEdge:
        """A tree that goes on from here. `MalformedError` when the peaks are not of this size."""
        return TreeEdge(self.size, self.peaks)

    @property
    def root(self) -> bytes:
        """48 bytes."""
        return fold(self.peaks)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A signed one: made by `sign`, or by `parse`, which checks both signatures."""

    place: Place
    base: Place
    wall_ms: int
    boot_ms: int
    ed_public: bytes = field(repr=False)
    pq_public: bytes = field(repr=False)
    signatures: tuple[bytes, bytes] = field(repr=False)

    @property
    def key_id(self) -> str:
        """See `key_id`."""
        return key_id(self.ed_public, self.pq_public)

    def encode(self) -> bytes:
        """The file's bytes: one line of ASCII JSON."""
        members = {
            "format": FORMAT,
            **_place_members(self.place),
            "base": _place_members(self.base),
            "wall_ms": self.wall_ms,
            "boot_ms": self.boot_ms,
            "key_id": self.key_id,
            "ed25519_public": base64url(self.ed_public),
            "ml_dsa_87_public": base64url(self.pq_public),
            "ed25519_signature": base64url(self.signatures[0]),
            "ml_dsa_87_signature": base64url(self.signatures[1]),
        }
        return json.dumps(members, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def sign(signer: StatementSigner, place: Place, base: Place, wall_ms: int, boot_ms: int) -> Checkpoint:
    """Make one. Takes a millisecond or more: run it in a thread."""
    keys = signer.ed_public, signer.pq_public
    data = _signed_fields(key_id(*keys), place, base, wall_ms, boot_ms)
    return Checkpoint(place, base, wall_ms, boot_ms, *keys, signer.sign_statement(PURPOSE, data))


def parse(data: bytes) -> Checkpoint:
    """Read one and check it: form, peaks against roots, both signatures; not whose keys they are.

    Raises `MalformedError`.
    """
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise MalformedError("checkpoint size")
    try:
        file = msgspec.convert(parse_json(data), _File, strict=True)
    except msgspec.ValidationError:
        raise MalformedError("checkpoint members") from None
    place, base = _place(file), _place(file.base)
    keys = (
        parse_base64url(file.ed25519_public.encode(), ED25519_PUBLIC_BYTES),
        parse_base64url(file.ml_dsa_87_public.encode(), MLDSA_PUBLIC_BYTES),
    )
    signatures = (
        parse_base64url(file.ed25519_signature.encode(), ED25519_SIGNATURE_BYTES),
        parse_base64url(file.ml_dsa_87_signature.encode(), MLDSA_SIGNATURE_BYTES),
    )
    if file.format != FORMAT or file.key_id != key_id(*keys) or base.size > place.size:
        raise MalformedError("checkpoint members")
    signed = _signed_fields(file.key_id, place, base, file.wall_ms, file.boot_ms)
    if not verify_statement(_VERIFIER, keys, signatures, PURPOSE, signed):
        raise MalformedError("checkpoint signatures")
    return Checkpoint(place, base, file.wall_ms, file.boot_ms, *keys, signatures)


class _PlaceMembers(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    size: int
    head: str
    root: str
    peaks: list[str]


class _File(_PlaceMembers, forbid_unknown_fields=True, kw_only=True):
    format: str
    base: _PlaceMembers
    wall_ms: int
    boot_ms: int
    key_id: str
    ed25519_public: str
    ml_dsa_87_public: str
    ed25519_signature: str
    ml_dsa_87_signature: str


def _place_members(place: Place) -> dict[str, object]:
    return {
        "size": place.size,
        "head": place.head,
        "root": place.root.hex(),
        "peaks": [peak.hex() for peak in place.peaks],
    }


def _place(members: _PlaceMembers) -> Place:
    if members.size < 0:
        raise MalformedError("checkpoint size")
    peaks = tuple(_hash(text) for text in members.peaks)
    place = Place(members.size, _hash(members.head).hex(), peaks)
    place.edge()
    if place.root != _hash(members.root):
        raise MalformedError("checkpoint root")
    return place


def _hash(text: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise MalformedError("checkpoint hash") from None
    if len(data) != HASH_BYTES or data.hex() != text:
        raise MalformedError("checkpoint hash")
    return data


def _signed_fields(keys: str, place: Place, base: Place, wall_ms: int, boot_ms: int) -> bytes:
    return pae(
        _L_FIELDS,
        bytes.fromhex(keys),
        u64(place.size),
        bytes.fromhex(place.head),
        place.root,
        u64(base.size),
        bytes.fromhex(base.head),
        base.root,
        u64(wall_ms),
        u64(boot_ms),
    )
