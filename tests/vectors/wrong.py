"""Messages that must be refused, each with the rule that refuses it: changes of the vectors' exchanges."""

from collections.abc import Callable
from dataclasses import replace

from tabwarden.protocol.challenge import L_BATCH, sign_batch, signed_value
from tabwarden.protocol.merkle import leaf_hash, root_and_paths
from tabwarden.protocol.primitives import Ed25519Signer, aead_seal
from tabwarden.protocol.seal import pad, response_associated

from tests.vectors.exchange import NATIVE, PATH_AT, Exchange, Json, seeded

LEAF_BYTES = 1688
Q = 3329


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
