"""One exchange of the frozen vectors, computed from fixed seeds, and its entry in the file."""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from tabwarden.protocol.challenge import (
    L_BATCH,
    Binding,
    Leaf,
    bind,
    sign_batch,
    signed_value,
)
from tabwarden.protocol.merkle import leaf_hash, root_and_paths
from tabwarden.protocol.primitives import (
    Ed25519Signer,
    NativeProvider,
    X25519Key,
    aead_seal,
    hkdf_extract,
)
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_AGENT_REQUEST_MAC,
    L_CHALLENGE_REQUEST,
    METHOD,
    CapabilityKeys,
    Proof,
    challenge_body,
    instance_id,
    prove,
)
from tabwarden.protocol.seal import (
    CallKeys,
    RequestWire,
    pad,
    request_associated,
    response_associated,
    transcript_hash,
)

NATIVE = NativeProvider()
NOW = 86_400_000
PATH_AT = 1692  # of the Merkle path in M2

Json = dict[str, Any]


def seeded(name: str, length: int) -> bytes:
    """Fixed bytes that belong to a name."""
    return hashlib.shake_256(b"tabwarden vectors 1: " + name.encode()).digest(length)


@dataclass(frozen=True)
class Plan:
    """One exchange: who, which leaf of how large a batch, and how much is said."""

    name: str
    principal_id: str
    generation: int
    count: int
    index: int
    request: Json
    reply: Json


def _ok(body: object) -> Json:
    return {"type": "agent-response", "status": 200, "body": body}


PLANS = (
    Plan(
        "legacy, first of a full batch",
        "legacy",
        0,
        64,
        0,
        {"type": "agent-request", "action": "sessions", "args": {}},
        _ok(
            [
                {
                    "id": "01234567-89ab-cdef-0123-456789abcdef",
                    "title": "caf\u00e9 \U0001f375",
                    "foreground": True,
                }
            ]
        ),
    ),
    Plan(
        "individual, the odd leaf of seven",
        "agent-7",
        3,
        7,
        6,
        {
            "type": "agent-request",
            "action": "type",
            "args": {"selector": "#note", "text": "x" * 2000},
            "idempotencyKey": "key-00000001",
        },
        _ok({"text": "y" * 5000, "origin": "https://example.test", "untrusted": True}),
    ),
    Plan(
        "individual, a batch of one, a sealed denial",
        "A.b_c-9",
        9_007_199_254_740_991,
        1,
        0,
        {"type": "agent-request", "action": "read", "args": {"offset": 0}},
        {
            "type": "agent-response",
            "status": 403,
            "body": {"code": "policy-denied", "effect": "not_started"},
        },
    ),
    Plan(
        "legacy, an inner leaf of 37, the longest plaintext of its size",
        "legacy",
        0,
        37,
        35,
        {"type": "agent-request", "action": "ai", "args": {"prompt": "z" * (1020 - 59)}},
        {
            "type": "agent-response",
            "status": 429,
            "body": {"code": "rate-limited", "effect": "not_started", "retryAfterMs": 1234},
        },
    ),
)


def encode(value: object) -> bytes:
    """JSON as it was sent; another encoder may write it otherwise, so the bytes are what counts."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Exchange:
    """One exchange, computed once; `record` is its entry in the file."""

    def __init__(self, at: int, plan: Plan) -> None:
        self.at, self.plan = at, plan
        name = f"exchange {at} "
        self.address = f"127.0.0.1:{40_000 + at}"
        self.ed = Ed25519Signer(seeded(name + "ed25519", 32))
        self.pq = NATIVE.signer(seeded(name + "ml-dsa", 32))
        self.instance = instance_id(self.ed.public, self.pq.public, self.address)
        self.token = seeded(name + "token", 32)
        self.keys = CapabilityKeys.derive(
            self.token,
            instance=self.instance,
            principal_id=plan.principal_id,
            generation=plan.generation,
            ed_public=self.ed.public,
            pq_public=self.pq.public,
        )
        self.m1, self.m1_input = self._prove(
            L_CHALLENGE_REQUEST,
            CHALLENGE_ROUTE,
            self.keys.challenge,
            NOW,
            seeded(name + "m1 nonce", 32),
            challenge_body(),
        )
        self.kem_seeds = [seeded(f"{name}ml-kem {leaf}", 64) for leaf in range(plan.count)]
        self.x_seeds = [seeded(f"{name}x25519 {leaf}", 32) for leaf in range(plan.count)]
        self.leaves = [
            Leaf(
                self.instance,
                seeded(f"{name}challenge {leaf}", 16),
                seeded(f"{name}server nonce {leaf}", 32),
                NATIVE.kem_key(self.kem_seeds[leaf]).public,
                X25519Key(self.x_seeds[leaf]).public,
                NOW + 120_000,
            )
            for leaf in range(plan.count)
        ]
        self.leaf = self.leaves[plan.index]
        self.signed = sign_batch(self.leaves, self.ed, self.pq)[plan.index]
        self.binding = Binding(
            METHOD, AGENT_ROUTE, plan.principal_id, plan.generation, self.m1.nonce, NOW + 2, 10_000
        )
        self.m2 = self.bound(self.signed.statement, self.signed.leaf_digest, self.binding)
        self.kem_ciphertext, self.kem_secret = NATIVE.encapsulate(self.leaf.kem_public)
        self.client_x_seed = seeded(name + "client x25519", 32)
        client_x = X25519Key(self.client_x_seed)
        self.client_x_public = client_x.public
        self.x_secret = client_x.exchange(self.leaf.x_public)
        self.transcript = transcript_hash(
            self.m1_input, self.m1.mac, self.m2, self.kem_ciphertext, client_x.public
        )
        self.call_keys = CallKeys.derive(self.keys.psk, self.kem_secret, self.x_secret, self.transcript)
        self.request = encode(plan.request)
        self.request_aad = request_associated(
            METHOD,
            AGENT_ROUTE,
            self.instance,
            self.leaf.challenge_id,
            plan.principal_id,
            plan.generation,
            self.transcript,
        )
        self.m3 = self.request_wire(self.call_keys.seal_request(self.request, self.request_aad))
        self.m3_proof, self.m3_input = self._prove(
            L_AGENT_REQUEST_MAC,
            AGENT_ROUTE,
            self.keys.request,
            NOW + 7,
            seeded(name + "m3 nonce", 32),
            self.m3,
        )
        self.reply = encode(plan.reply)
        self.reply_aad = response_associated(self.transcript, self.m3)
        self.m4 = self.call_keys.seal_response(self.reply, self.reply_aad)

    def _prove(
        self, label: bytes, route: bytes, key: bytes, timestamp: int, nonce: bytes, body: bytes
    ) -> tuple[Proof, bytes]:
        plan = self.plan
        return prove(
            key, label, route, self.instance, plan.principal_id, plan.generation, timestamp, nonce, body
        )

    def bound(self, statement: bytes, digest: bytes, binding: Binding) -> bytes:
        """M2 with a binding whose MAC is good, as only a token holder can make it."""
        signed = replace(self.signed, statement=statement, leaf_digest=digest)
        return bind(signed, binding, self.keys.binding, self.m1_input, self.m1.mac)

    def with_leaf(self, **changes: Any) -> bytes:
        """M2 with another leaf, under a root that both keys signed, and well bound."""
        leaves = list(self.leaves)
        leaves[self.plan.index] = replace(self.leaf, **changes)
        signed = sign_batch(leaves, self.ed, self.pq)[self.plan.index]
        return self.bound(signed.statement, signed.leaf_digest, self.binding)

    def request_wire(self, sealed: bytes) -> bytes:
        return RequestWire(self.leaf.challenge_id, self.kem_ciphertext, self.client_x_public, sealed).encode()

    def seal_request(self, padded: bytes, aad: bytes | None = None) -> bytes:
        """M3 around any padded plaintext."""
        key, iv = self.call_keys.request_key, self.call_keys.request_iv
        return self.request_wire(aead_seal(key, iv, padded, self.request_aad if aad is None else aad))

    def seal_reply(self, plaintext: bytes) -> bytes:
        return self.call_keys.seal_response(plaintext, self.reply_aad)

    @property
    def record(self) -> Json:
        plan, keys = self.plan, self.call_keys
        digests = [leaf_hash(leaf.encode()) for leaf in self.leaves]
        root, paths = root_and_paths(digests)
        path = paths[plan.index]
        at = PATH_AT + len(path)
        return {
            "name": plan.name,
            "identity": {
                "address": self.address,
                "ed25519_seed": seeded(f"exchange {self.at} ed25519", 32).hex(),
                "ml_dsa_seed": seeded(f"exchange {self.at} ml-dsa", 32).hex(),
                "ed25519_public": self.ed.public.hex(),
                "ml_dsa_public": self.pq.public.hex(),
                "instance": self.instance.hex(),
            },
            "capability": {
                "token": self.token.hex(),
                "principal_id": plan.principal_id,
                "generation": plan.generation,
                "k_challenge": self.keys.challenge.hex(),
                "k_binding": self.keys.binding.hex(),
                "k_request": self.keys.request.hex(),
                "k_psk": self.keys.psk.hex(),
            },
            "m1": {
                "method": METHOD.decode(),
                "route": CHALLENGE_ROUTE.decode(),
                "body": challenge_body().hex(),
                **self._proof(self.m1_input, self.m1),
            },
            "batch": {
                "count": plan.count,
                "index": plan.index,
                "leaf_digests": [digest.hex() for digest in digests],
                "root": root.hex(),
                "path": path.hex(),
                "signed_value": signed_value(self.instance, plan.count, root).hex(),
                "ed25519_signature": self.m2[at : at + 64].hex(),
                "ml_dsa_context": L_BATCH.decode(),
                "ml_dsa_signature": self.m2[at + 64 : at + 64 + 4627].hex(),
            },
            "leaf": {
                "challenge_id": self.leaf.challenge_id.hex(),
                "server_nonce": self.leaf.server_nonce.hex(),
                "ml_kem_seed": self.kem_seeds[plan.index].hex(),
                "ml_kem_public": self.leaf.kem_public.hex(),
                "x25519_private": self.x_seeds[plan.index].hex(),
                "x25519_public": self.leaf.x_public.hex(),
                "not_after": self.leaf.not_after,
            },
            "binding": {
                "method": METHOD.decode(),
                "route": AGENT_ROUTE.decode(),
                "issued": self.binding.issued,
                "lifetime": self.binding.lifetime,
                "encoded": self.binding.encode().hex(),
                "mac": self.m2[-48:].hex(),
            },
            "m2": self.m2.hex(),
            "agreement": {
                "ml_kem_ciphertext": self.kem_ciphertext.hex(),
                "ml_kem_secret": self.kem_secret.hex(),
                "x25519_private": self.client_x_seed.hex(),
                "x25519_public": self.client_x_public.hex(),
                "x25519_secret": self.x_secret.hex(),
                "transcript": self.transcript.hex(),
                "secret": hkdf_extract(self.keys.psk, self.kem_secret + self.x_secret).hex(),
                "request_key": keys.request_key.hex(),
                "request_iv": keys.request_iv.hex(),
                "response_key": keys.response_key.hex(),
                "response_iv": keys.response_iv.hex(),
            },
            "m3": {
                "method": METHOD.decode(),
                "route": AGENT_ROUTE.decode(),
                "plaintext": self.request.hex(),
                "padded_bytes": len(pad(self.request)),
                "associated": self.request_aad.hex(),
                "body": self.m3.hex(),
                **self._proof(self.m3_input, self.m3_proof),
            },
            "m4": {
                "plaintext": self.reply.hex(),
                "padded_bytes": len(pad(self.reply)),
                "associated": self.reply_aad.hex(),
                "body": self.m4.hex(),
                "status": plan.reply["status"],
                "value": plan.reply["body"],
            },
        }

    def _proof(self, covered: bytes, proof: Proof) -> Json:
        return {
            "timestamp": proof.timestamp,
            "nonce": proof.nonce.hex(),
            "mac_input": covered.hex(),
            "mac": proof.mac.hex(),
            "headers": [[name.decode(), value.decode()] for name, value in proof.headers()],
        }
