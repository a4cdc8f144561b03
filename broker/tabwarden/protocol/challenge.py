"""M2: a one-use challenge made ahead of need, proven by two signatures, then bound to the one who asked.

    leaf    instance 32 | challenge id 16 | server nonce 32 | ML-KEM key 1568 | X25519 key 32 | not-after 8
    M2      leaf | index u16 | count u16 | path 48 each | Ed25519 64 | ML-DSA-87 4627 | binding | MAC 48
    binding PAE(target method, target route, id, generation, client nonce, issued, lifetime)

Signed value: PAE(instance, count, root), by both keys, ML-DSA-87 with the label as its context. The
signatures are older than the request, so they cannot cover the client's nonce: the binding's MAC does.
Times are milliseconds of the clock that never steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tabwarden.errors import MalformedError
from tabwarden.limits import (
    CHALLENGE_ID_BYTES,
    ED25519_SIGNATURE_BYTES,
    HASH_BYTES,
    INSTANCE_BYTES,
    MAC_BYTES,
    MAX_BATCH,
    MLDSA_SIGNATURE_BYTES,
    MLKEM_PUBLIC_BYTES,
    NONCE_BYTES,
    X25519_BYTES,
)
from tabwarden.protocol.codec import label, pae, parse_pae, u64
from tabwarden.protocol.merkle import leaf_hash, path_length, root_and_paths, root_from_path
from tabwarden.protocol.primitives import (
    Ed25519Signer,
    PqProvider,
    PqSigner,
    ed25519_verify,
    equal,
    hmac_sha384,
    sha384,
)

L_BATCH = label("challenge-batch")
L_BINDING_FIELDS = label("challenge-binding-fields")
L_BINDING = label("challenge-binding")

_LEAF_SIZES = (INSTANCE_BYTES, CHALLENGE_ID_BYTES, NONCE_BYTES, MLKEM_PUBLIC_BYTES, X25519_BYTES, 8)
LEAF_BYTES = sum(_LEAF_SIZES)
_BINDING_FIELDS = 7
_SIGNATURES_BYTES = ED25519_SIGNATURE_BYTES + MLDSA_SIGNATURE_BYTES
# Contexts of ML-DSA are at most 255 bytes (FIPS 204 section 5.2).
assert len(L_BATCH) <= 255  # noqa: S101 - a wire constant, checked once


@dataclass(frozen=True, slots=True)
class Leaf:
    """The public half of one challenge."""

    instance: bytes
    challenge_id: bytes
    server_nonce: bytes
    kem_public: bytes
    x_public: bytes
    not_after: int

    def encode(self) -> bytes:
        """1,688 bytes."""
        return b"".join(
            (
                self.instance,
                self.challenge_id,
                self.server_nonce,
                self.kem_public,
                self.x_public,
                u64(self.not_after),
            )
        )

    @classmethod
    def parse(cls, data: bytes) -> "Leaf":
        """From exactly 1,688 bytes."""
        if len(data) != LEAF_BYTES:
            raise MalformedError("leaf length")
        parts, at = [], 0
        for size in _LEAF_SIZES:
            parts.append(data[at : at + size])
            at += size
        return cls(parts[0], parts[1], parts[2], parts[3], parts[4], int.from_bytes(parts[5]))


@dataclass(frozen=True, slots=True)
class SignedLeaf:
    """A leaf with everything that proves it: ready to be bound to a caller. `statement` is the wire form."""

    leaf: Leaf
    statement: bytes = field(repr=False)
    leaf_digest: bytes = field(repr=False)


def signed_value(instance: bytes, count: int, root: bytes) -> bytes:
    """What both keys sign for a batch."""
    return pae(L_BATCH, instance, u64(count), root)


def sign_batch(leaves: Sequence[Leaf], ed: Ed25519Signer, pq: PqSigner) -> list[SignedLeaf]:
    """Sign 1 to 256 leaves of one instance with two signatures in all. Costs about a millisecond."""
    count = len(leaves)
    if not 1 <= count <= MAX_BATCH:
        raise ValueError("batch size")
    encoded = [leaf.encode() for leaf in leaves]
    digests = [leaf_hash(data) for data in encoded]
    root, paths = root_and_paths(digests)
    message = signed_value(leaves[0].instance, count, root)
    signatures = ed.sign(message) + pq.sign(message, L_BATCH)
    return [
        SignedLeaf(
            leaf,
            b"".join((encoded[at], at.to_bytes(2), count.to_bytes(2), paths[at], signatures)),
            digests[at],
        )
        for at, leaf in enumerate(leaves)
    ]


@dataclass(frozen=True, slots=True)
class Binding:
    """To whom, for which request and for how long a challenge was given."""

    method: bytes
    route: bytes
    principal_id: str
    generation: int
    client_nonce: bytes
    issued: int
    lifetime: int

    def encode(self) -> bytes:
        return pae(
            L_BINDING_FIELDS,
            self.method,
            self.route,
            self.principal_id.encode(),
            u64(self.generation),
            self.client_nonce,
            u64(self.issued),
            u64(self.lifetime),
        )

    @classmethod
    def parse(cls, data: bytes) -> "Binding":
        method, route, principal_id, generation, nonce, issued, lifetime = parse_pae(
            L_BINDING_FIELDS, _BINDING_FIELDS, data
        )
        if len(generation) != 8 or len(issued) != 8 or len(lifetime) != 8 or len(nonce) != NONCE_BYTES:
            raise MalformedError("binding")
        try:
            name = principal_id.decode("ascii")
        except UnicodeDecodeError:
            raise MalformedError("binding") from None
        numbers = [int.from_bytes(value) for value in (generation, issued, lifetime)]
        return cls(method, route, name, numbers[0], nonce, numbers[1], numbers[2])


def binding_mac(
    key: bytes, leaf_digest: bytes, binding: bytes, request_input: bytes, request_mac: bytes
) -> bytes:
    """Ties one leaf to one M1: 48 bytes. `binding` is encoded; the last two are M1's MAC input and MAC."""
    return hmac_sha384(key, pae(L_BINDING, leaf_digest, binding, sha384(request_input + request_mac)))


def bind(signed: SignedLeaf, binding: Binding, key: bytes, request_input: bytes, request_mac: bytes) -> bytes:
    """The whole of M2 for one caller, made with its `k_binding`."""
    encoded = binding.encode()
    mac = binding_mac(key, signed.leaf_digest, encoded, request_input, request_mac)
    return signed.statement + encoded + mac


@dataclass(frozen=True, slots=True)
class ReceivedChallenge:
    """M2 taken apart by a client: nothing in it is believed before both `check_` steps have passed."""

    leaf: Leaf
    leaf_digest: bytes
    count: int
    root: bytes
    ed_signature: bytes
    pq_signature: bytes
    binding: Binding
    binding_bytes: bytes
    mac: bytes = field(repr=False)

    @classmethod
    def parse(cls, data: bytes) -> "ReceivedChallenge":
        """Split M2 with exact lengths and compute the root that it claims; MalformedError otherwise."""
        head = LEAF_BYTES + 4
        index, count = int.from_bytes(data[LEAF_BYTES : head - 2]), int.from_bytes(data[head - 2 : head])
        if len(data) < head or count > MAX_BATCH:
            raise MalformedError("challenge")
        path_end = head + HASH_BYTES * path_length(index, count)
        signatures_end = path_end + _SIGNATURES_BYTES
        if len(data) < signatures_end + MAC_BYTES:
            raise MalformedError("challenge length")
        leaf_data = data[:LEAF_BYTES]
        digest = leaf_hash(leaf_data)
        ed_end = path_end + ED25519_SIGNATURE_BYTES
        binding = data[signatures_end:-MAC_BYTES]
        return cls(
            leaf=Leaf.parse(leaf_data),
            leaf_digest=digest,
            count=count,
            root=root_from_path(digest, index, count, data[head:path_end]),
            ed_signature=data[path_end:ed_end],
            pq_signature=data[ed_end:signatures_end],
            binding=Binding.parse(binding),
            binding_bytes=binding,
            mac=data[-MAC_BYTES:],
        )

    def check_signatures(
        self, provider: PqProvider, ed_public: bytes, pq_public: bytes, instance: bytes
    ) -> None:
        """Both signatures over the root, by the pinned keys; MalformedError unless both verify."""
        message = signed_value(instance, self.count, self.root)
        if not ed25519_verify(ed_public, self.ed_signature, message):
            raise MalformedError("ed25519 signature")
        if not provider.verify(pq_public, self.pq_signature, message, L_BATCH):
            raise MalformedError("ml-dsa signature")

    def check_binding(
        self, key: bytes, expected: Binding, request_input: bytes, request_mac: bytes, instance: bytes
    ) -> None:
        """That this leaf is this instance's and was bound to exactly our request.

        `expected` carries our own values; its `issued` and `lifetime` are not compared. MalformedError
        otherwise.
        """
        mac = binding_mac(key, self.leaf_digest, self.binding_bytes, request_input, request_mac)
        if not equal(mac, self.mac):
            raise MalformedError("binding mac")
        if self.leaf.instance != instance:
            raise MalformedError("instance")
        ours = (
            expected.method,
            expected.route,
            expected.principal_id,
            expected.generation,
            expected.client_nonce,
        )
        got = self.binding
        if ours != (got.method, got.route, got.principal_id, got.generation, got.client_nonce):
            raise MalformedError("binding fields")
