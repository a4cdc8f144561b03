"""One broker, one principal and one signed batch from fixed seeds: honest values for tests to change."""

import hashlib
from dataclasses import dataclass, replace

from tabwarden.protocol.challenge import Binding, Leaf, SignedLeaf, bind, sign_batch
from tabwarden.protocol.primitives import (
    Ed25519Signer,
    KemKey,
    NativeProvider,
    PqSigner,
    X25519Key,
    hmac_sha384,
)
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_CHALLENGE_REQUEST,
    METHOD,
    CapabilityKeys,
    challenge_body,
    instance_id,
    mac_input,
)

ADDRESS = "127.0.0.1:4242"
NOW = 1_000_000
NATIVE = NativeProvider()


def seeded(name: str, length: int) -> bytes:
    """Fixed bytes that belong to a name."""
    return hashlib.shake_256(name.encode()).digest(length)


@dataclass(frozen=True)
class Scene:
    """`request_input` and `request_mac` are M1's; `signed` is the leaf at `index` of a batch of `count`."""

    ed: Ed25519Signer
    pq: PqSigner
    token: bytes
    instance: bytes
    principal_id: str
    generation: int
    keys: CapabilityKeys
    nonce: bytes
    request_input: bytes
    request_mac: bytes
    index: int
    count: int
    leaves: tuple[Leaf, ...]
    kem: KemKey
    x: X25519Key
    signed: SignedLeaf
    binding: Binding

    def wire(self, **changes: object) -> bytes:
        """M2, with the binding's fields changed and its MAC made again, as a token holder could."""
        binding = replace(self.binding, **changes)  # type: ignore[arg-type]
        return bind(self.signed, binding, self.keys.binding, self.request_input, self.request_mac)

    @property
    def expected(self) -> Binding:
        """What the client knows of the binding."""
        return replace(self.binding, issued=0, lifetime=0)


def make_scene(
    principal_id: str = "agent-7", generation: int = 3, *, index: int = 4, count: int = 7, name: str = "scene"
) -> Scene:
    """Everything from seeds, except for the ML-DSA signature."""
    ed, pq = Ed25519Signer(seeded("ed", 32)), NATIVE.signer(seeded("pq", 32))
    instance = instance_id(ed.public, pq.public, ADDRESS)
    token = seeded("token", 32)
    keys = CapabilityKeys.derive(
        token,
        instance=instance,
        principal_id=principal_id,
        generation=generation,
        ed_public=ed.public,
        pq_public=pq.public,
    )
    nonce = seeded("nonce", 32)
    request_input = mac_input(
        L_CHALLENGE_REQUEST,
        METHOD,
        CHALLENGE_ROUTE,
        instance,
        principal_id,
        generation,
        NOW,
        nonce,
        challenge_body(),
    )
    pairs = [
        (NATIVE.kem_key(seeded(f"{name} kem {at}", 64)), X25519Key(seeded(f"{name} x {at}", 32)))
        for at in range(count)
    ]
    leaves = tuple(
        Leaf(
            instance,
            seeded(f"{name} id {at}", 16),
            seeded(f"{name} server nonce {at}", 32),
            kem.public,
            x.public,
            NOW + 120_000,
        )
        for at, (kem, x) in enumerate(pairs)
    )
    return Scene(
        ed=ed,
        pq=pq,
        token=token,
        instance=instance,
        principal_id=principal_id,
        generation=generation,
        keys=keys,
        nonce=nonce,
        request_input=request_input,
        request_mac=hmac_sha384(keys.challenge, request_input),
        index=index,
        count=count,
        leaves=leaves,
        kem=pairs[index][0],
        x=pairs[index][1],
        signed=sign_batch(leaves, ed, pq)[index],
        binding=Binding(METHOD, AGENT_ROUTE, principal_id, generation, nonce, NOW + 5, 10_000),
    )
