"""Make the frozen vectors: `python -m tests.vectors.generate [--replace]`.

Everything but the ML-KEM encapsulations and the ML-DSA signatures comes from fixed seeds, so those are all
that changes from one run to the next. An existing file is only replaced when told to.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tabwarden.protocol.challenge import (
    L_BATCH,
    Binding,
    Leaf,
    bind,
    sign_batch,
    signed_value,
)
from tabwarden.protocol.codec import SUITE
from tabwarden.protocol.merkle import leaf_hash, root_and_paths
from tabwarden.protocol.primitives import (
    Ed25519Signer,
    NativeProvider,
    X25519Key,
    aead_seal,
    hkdf_extract,
    hmac_sha384,
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
    mac_input,
)
from tabwarden.protocol.seal import (
    CallKeys,
    RequestWire,
    pad,
    request_associated,
    response_associated,
    transcript_hash,
)

FILE = Path(__file__).with_name("exchange-1.json")
NATIVE = NativeProvider()
NOW = 86_400_000
LEAF_BYTES, PATH_AT = 1688, 1692
Q = 3329

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
        self.m1_input, self.m1 = self.prove(
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
        self.m3_input, self.m3_proof = self.prove(
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

    def prove(
        self, label: bytes, route: bytes, key: bytes, timestamp: int, nonce: bytes, body: bytes
    ) -> tuple[bytes, Proof]:
        plan = self.plan
        covered = mac_input(
            label,
            METHOD,
            route,
            self.instance,
            plan.principal_id,
            plan.generation,
            timestamp,
            nonce,
            body,
        )
        mac = hmac_sha384(key, covered)
        return covered, Proof(plan.principal_id, plan.generation, timestamp, nonce, mac)

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


def flip(data: bytes, at: int, mask: int = 1) -> bytes:
    changed = bytearray(data)
    changed[at] ^= mask
    return bytes(changed)


def put(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def difference(base: bytes, changed: bytes) -> Json:
    """`changed` as: keep `base` up to `at`, put `hex`, go on in `base` at `resume`."""
    at = 0
    while at < min(len(base), len(changed)) and base[at] == changed[at]:
        at += 1
    end = 0
    while end < min(len(base), len(changed)) - at and base[-1 - end] == changed[-1 - end]:
        end += 1
    return {"at": at, "hex": changed[at : len(changed) - end].hex(), "resume": len(base) - end}


def unreduced(public: bytes) -> bytes:
    """The key with its first coefficient made q."""
    return bytes([Q & 0xFF, (public[1] & 0xF0) | Q >> 8]) + public[2:]


def failures(exchanges: list[Exchange]) -> list[Json]:
    """Messages that must be refused, each with the rule that refuses it."""
    found: list[Json] = []

    def add(exchange: Exchange, message: str, name: str, expected: str, changed: bytes) -> None:
        base = {"m2": exchange.m2, "m3": exchange.m3, "m4": exchange.m4}[message]
        found.append(
            {
                "name": name,
                "exchange": exchange.at,
                "message": message,
                "change": difference(base, changed),
                "expected": expected,
            }
        )

    # Leaf 6 of 7 has a path of two hashes.
    one = exchanges[1]
    m2, path = one.m2, PATH_AT
    ed_at = path + 96
    pq_at = ed_at + 64
    binding_at = pq_at + 4627
    root, paths = root_and_paths([leaf_hash(leaf.encode()) for leaf in one.leaves])
    message = signed_value(one.instance, 7, root)
    other_ed, other_pq = Ed25519Signer(seeded("other ed", 32)), NATIVE.signer(seeded("other pq", 32))

    def m2_is(name: str, expected: str, changed: bytes) -> None:
        add(one, "m2", name, expected, changed)

    m2_is("a bit of the instance", "ed25519-signature", flip(m2, 0))
    m2_is("a bit of the challenge id", "ed25519-signature", flip(m2, 32))
    m2_is("a bit of the server nonce", "ed25519-signature", flip(m2, 48))
    m2_is("a bit of the ML-KEM key", "ed25519-signature", flip(m2, 900))
    m2_is("a bit of the X25519 key", "ed25519-signature", flip(m2, 1650))
    m2_is("a bit of not-after", "ed25519-signature", flip(m2, LEAF_BYTES - 1))
    m2_is("a bit of the path", "ed25519-signature", flip(m2, path + 50))
    m2_is(
        "a count under which the path has another length", "label-or-field-count", put(m2, 1690, b"\x00\x08")
    )
    m2_is("the path of another leaf", "ed25519-signature", put(m2, path, paths[5][:96]))
    m2_is("an index that is not below the count", "leaf-index", put(m2, 1688, b"\x00\x07"))
    m2_is("a count above 256", "challenge", put(m2, 1690, b"\x01\x01"))
    m2_is("a bit of the Ed25519 signature", "ed25519-signature", flip(m2, ed_at + 40))
    m2_is("no Ed25519 signature", "ed25519-signature", put(m2, ed_at, bytes(64)))
    m2_is("the Ed25519 signature of another key", "ed25519-signature", put(m2, ed_at, other_ed.sign(message)))
    m2_is("a bit of the ML-DSA signature", "ml-dsa-signature", flip(m2, pq_at + 70))
    m2_is("no ML-DSA signature", "ml-dsa-signature", put(m2, pq_at, bytes(4627)))
    m2_is(
        "the ML-DSA signature of another key",
        "ml-dsa-signature",
        put(m2, pq_at, other_pq.sign(message, L_BATCH)),
    )
    m2_is(
        "the ML-DSA signature without its context",
        "ml-dsa-signature",
        put(m2, pq_at, one.pq.sign(message, b"")),
    )
    m2_is(
        "a bit of the binding's route",
        "binding-mac",
        flip(m2, binding_at + m2[binding_at:].index(b"/v1/agent")),
    )
    m2_is("a bit of the binding's MAC", "binding-mac", flip(m2, len(m2) - 1))
    m2_is("a binding that is cut off", "field-length", m2[:-49] + m2[-48:])
    m2_is("a byte after the binding", "trailing-bytes", m2[:-48] + b"\x00" + m2[-48:])
    m2_is("cut off inside the signatures", "challenge-length", m2[: pq_at + 100])
    m2_is("cut off inside the leaf", "challenge", m2[:1000])
    neighbour = sign_batch(one.leaves, one.ed, one.pq)[5]
    m2_is("a leaf with the binding of its neighbour", "binding-mac", neighbour.statement + m2[binding_at:])
    statement, digest = one.signed.statement, one.signed.leaf_digest
    changes: dict[str, Json] = {
        "another method": {"method": b"GET"},
        "another route": {"route": b"/v1/other"},
        "another principal": {"principal_id": "agent-8"},
        "another generation": {"generation": 2},
        "another client nonce": {"client_nonce": bytes(32)},
    }
    for name, change in changes.items():
        m2_is(
            f"a binding to {name}, with a good MAC",
            "binding-fields",
            one.bound(statement, digest, replace(one.binding, **change)),
        )
    m2_is("a leaf of another instance, signed and bound", "instance", one.with_leaf(instance=bytes(32)))
    m2_is(
        "an ML-KEM key that is not reduced, signed and bound",
        "ml-kem-key",
        one.with_leaf(kem_public=unreduced(one.leaf.kem_public)),
    )
    m2_is("an X25519 key of low order, signed and bound", "x25519", one.with_leaf(x_public=bytes(32)))

    third = exchanges[2]

    def m3_is(name: str, expected: str, changed: bytes) -> None:
        add(third, "m3", name, expected, changed)

    m3, padded = third.m3, pad(third.request)
    m3_is("a bit of the challenge id", "seal", flip(m3, 3))
    m3_is("a bit of the KEM ciphertext", "seal", flip(m3, 16 + 800))
    m3_is("a bit of the X25519 key", "seal", flip(m3, 16 + 1568 + 5))
    m3_is("the bit of the X25519 key that X25519 ignores", "seal", flip(m3, 16 + 1568 + 31, 0x80))
    m3_is("an X25519 key of low order", "x25519", put(m3, 16 + 1568, bytes(32)))
    m3_is("a bit of the ciphertext", "seal", flip(m3, 16 + 1568 + 32 + 9))
    m3_is("a bit of the tag", "seal", flip(m3, len(m3) - 1))
    m3_is("one byte short", "request-length", m3[:-1])
    m3_is("one byte long", "request-length", m3 + b"\x00")
    m3_is("sealed under the reply's associated data", "seal", third.seal_request(padded, third.reply_aad))
    m3_is("padding that is not zero", "padding", third.seal_request(flip(padded, len(padded) - 1)))
    m3_is("padding that is not the smallest", "padding", third.seal_request(padded + bytes(4096 - 1024)))
    m3_is("a length past the end", "padding", third.seal_request((1021).to_bytes(4) + padded[4:]))
    m3_is("the ML-KEM ciphertext of nothing", "seal", put(m3, 16, bytes(1568)))

    first = exchanges[0]

    def m4_is(name: str, expected: str, changed: bytes) -> None:
        add(first, "m4", name, expected, changed)

    m4, keys = first.m4, first.call_keys
    m4_is("a bit of the ciphertext", "seal", flip(m4, 0))
    m4_is("a bit of the tag", "seal", flip(m4, len(m4) - 1))
    m4_is("one byte short", "reply-length", m4[:-1])
    m4_is("nothing", "reply-length", b"")
    m4_is("the plaintext itself", "reply-length", first.reply)
    m4_is("the request reflected", "seal", first.m3[16 + 1568 + 32 :])
    m4_is("the reply of another call", "seal", third.m4)
    m4_is(
        "sealed with the request's key",
        "seal",
        aead_seal(keys.request_key, keys.request_iv, pad(first.reply), first.reply_aad),
    )
    m4_is(
        "sealed for another request",
        "seal",
        keys.seal_response(first.reply, response_associated(first.transcript, third.m3)),
    )
    m4_is(
        "padding that is not zero",
        "padding",
        aead_seal(keys.response_key, keys.response_iv, flip(pad(first.reply), 1023), first.reply_aad),
    )
    contents: dict[str, tuple[str, bytes]] = {
        "another type": ("reply-type", b'{"type":"agent-request","status":200,"body":[]}'),
        "no type": ("reply-type", b'{"status":200,"body":[]}'),
        "a list": ("reply-type", b"[]"),
        "a status that is true": ("reply-status", b'{"type":"agent-response","status":true,"body":[]}'),
        "a status that is text": ("reply-status", b'{"type":"agent-response","status":"200","body":[]}'),
        "a status that is a real number": (
            "reply-status",
            b'{"type":"agent-response","status":200.0,"body":[]}',
        ),
        "no status": ("reply-status", b'{"type":"agent-response","body":[]}'),
        "a status of 99": ("reply-status", b'{"type":"agent-response","status":99,"body":[]}'),
        "a status of 1000": ("reply-status", b'{"type":"agent-response","status":1000,"body":[]}'),
        "a failure without a code": ("reply-body", b'{"type":"agent-response","status":500,"body":{}}'),
        "a failure whose body is no object": (
            "reply-body",
            b'{"type":"agent-response","status":500,"body":"failure"}',
        ),
        "two statuses": (
            "duplicate-key",
            b'{"type":"agent-response","status":500,"status":200,"body":[]}',
        ),
        "NaN": ("not-a-number", b'{"type":"agent-response","status":200,"body":NaN}'),
        "a number beyond 2^53": (
            "number-range",
            b'{"type":"agent-response","status":200,"body":9007199254740993}',
        ),
        "a lone surrogate": ("json", b'{"type":"agent-response","status":200,"body":"\\ud800"}'),
        "a byte-order mark": ("json", b'\xef\xbb\xbf{"type":"agent-response","status":200,"body":[]}'),
        "a second value": ("trailing-bytes", b'{"type":"agent-response","status":200,"body":[]}{}'),
        "17 levels": (
            "depth",
            b'{"type":"agent-response","status":200,"body":' + b"[" * 16 + b"]" * 16 + b"}",
        ),
        "text that is no UTF-8": ("json", b'{"type":"agent-response","status":200,"body":"\xff"}'),
        "nothing sealed": ("json", b""),
    }
    for name, (expected, plaintext) in contents.items():
        m4_is(f"well sealed: {name}", expected, first.seal_reply(plaintext))

    found += header_failures(first)
    return found


def header_failures(exchange: Exchange) -> list[Json]:
    """Proof headers of M1 that must be refused."""
    good = [[name.decode(), value.decode()] for name, value in exchange.m1.headers()]

    def spelled(at: int, change: Callable[[str], str]) -> list[list[str]]:
        return [[name, change(value) if i == at else value] for i, (name, value) in enumerate(good)]

    cases: list[tuple[str, str, list[list[str]]]] = [
        ("a header missing", "proof-headers", good[:-1]),
        ("a header twice", "proof-headers", [*good, good[2]]),
        ("a header that is not known", "proof-headers", [*good, ["tabwarden-extra", "1"]]),
        ("a principal id with a space", "principal-id", spelled(0, lambda _: "agent 7")),
        ("a generation with a leading zero", "decimal", spelled(1, lambda value: "0" + value)),
        ("a negative timestamp", "decimal", spelled(2, lambda value: "-" + value)),
        ("a timestamp of 2^63", "decimal", spelled(2, lambda _: str(2**63))),
        ("a nonce with padding", "base64url", spelled(3, lambda value: value + "=")),
        ("a nonce whose unused bits are not zero", "base64url", spelled(3, _last_bit)),
        ("a nonce of 31 bytes", "base64url", spelled(3, lambda value: value[:-2])),
        ("a MAC in the other base64 alphabet", "base64url", spelled(4, lambda value: "+" + value[1:])),
    ]
    return [
        {"name": name, "exchange": exchange.at, "message": "m1", "headers": headers, "expected": expected}
        for name, expected, headers in cases
    ]


def _last_bit(text: str) -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return text[:-1] + alphabet[alphabet.index(text[-1]) ^ 1]


def generate() -> Json:
    exchanges = [Exchange(at, plan) for at, plan in enumerate(PLANS)]
    return {
        "about": "Known answers of one call, version 1. Bytes are hexadecimal; a failure's change keeps the "
        "message up to `at`, puts `hex` there and goes on with the message at `resume`.",
        "suite": SUITE,
        "exchanges": [exchange.record for exchange in exchanges],
        "failures": failures(exchanges),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.vectors.generate", description=__doc__)
    parser.add_argument("--replace", action="store_true", help="replace frozen vectors that are there")
    if FILE.exists() and not parser.parse_args().replace:
        sys.stderr.write(f"{FILE.name} is frozen: pass --replace to make another\n")
        return 1
    FILE.write_text(json.dumps(generate(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
