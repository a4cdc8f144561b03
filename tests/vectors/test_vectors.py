"""Recompute every value of the frozen file, and meet the named failure for every message that is wrong."""

import json
from typing import Any

import pytest
from tabwarden.client import _result
from tabwarden.errors import CallFailed, MalformedError
from tabwarden.protocol.challenge import (
    L_BATCH,
    Binding,
    Leaf,
    ReceivedChallenge,
    SignedLeaf,
    bind,
    binding_mac,
    sign_batch,
    signed_value,
)
from tabwarden.protocol.codec import SUITE, parse_json
from tabwarden.protocol.merkle import leaf_hash, root_and_paths, root_from_path
from tabwarden.protocol.primitives import (
    Ed25519Signer,
    NativeProvider,
    X25519Key,
    aead_seal,
    hkdf_extract,
    hmac_sha384,
)
from tabwarden.protocol.proof import (
    L_AGENT_REQUEST_MAC,
    L_CHALLENGE_REQUEST,
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

from tests.protocol.present import PROVIDERS
from tests.vectors.exchange import PLANS
from tests.vectors.generate import FILE

VECTORS = json.loads(FILE.read_text())
EXCHANGES = VECTORS["exchanges"]
FAILURES = VECTORS["failures"]
NATIVE = NativeProvider()
hexed = bytes.fromhex

Exchange = dict[str, Any]


def named(values: list[Exchange]) -> Any:
    return pytest.mark.parametrize("at", range(len(values)), ids=[value["name"] for value in values])


def instance(exchange: Exchange) -> bytes:
    return hexed(exchange["identity"]["instance"])


def capability(exchange: Exchange) -> CapabilityKeys:
    held = exchange["capability"]
    return CapabilityKeys(*(hexed(held[f"k_{name}"]) for name in ("challenge", "binding", "request", "psk")))


def call_keys(exchange: Exchange) -> CallKeys:
    agreed = exchange["agreement"]
    names = ("request_key", "request_iv", "response_key", "response_iv")
    return CallKeys(*(hexed(agreed[name]) for name in names))


def frozen_leaf(exchange: Exchange) -> Leaf:
    leaf = exchange["leaf"]
    return Leaf(
        instance(exchange),
        hexed(leaf["challenge_id"]),
        hexed(leaf["server_nonce"]),
        hexed(leaf["ml_kem_public"]),
        hexed(leaf["x25519_public"]),
        leaf["not_after"],
    )


def frozen_binding(exchange: Exchange) -> Binding:
    binding, held = exchange["binding"], exchange["capability"]
    return Binding(
        binding["method"].encode(),
        binding["route"].encode(),
        held["principal_id"],
        held["generation"],
        hexed(exchange["m1"]["nonce"]),
        binding["issued"],
        binding["lifetime"],
    )


def test_the_file_is_of_this_suite_and_covers_what_it_should() -> None:
    assert VECTORS["suite"] == SUITE
    assert [exchange["name"] for exchange in EXCHANGES] == [plan.name for plan in PLANS]
    ids = {exchange["capability"]["principal_id"] for exchange in EXCHANGES}
    assert "legacy" in ids
    assert len(ids) > 1
    assert len({exchange["batch"]["count"] for exchange in EXCHANGES}) == 4
    assert {exchange["m3"]["padded_bytes"] for exchange in EXCHANGES} == {1024, 4096}
    assert {exchange["m4"]["padded_bytes"] for exchange in EXCHANGES} == {1024, 16384}
    assert {failure["message"] for failure in FAILURES} == {"m1", "m2", "m3", "m4"}


@named(EXCHANGES)
def test_identity_and_capability(at: int) -> None:
    exchange = EXCHANGES[at]
    identity, held = exchange["identity"], exchange["capability"]
    ed = Ed25519Signer(hexed(identity["ed25519_seed"])).public
    pq = NATIVE.signer(hexed(identity["ml_dsa_seed"])).public
    assert ed.hex() == identity["ed25519_public"]
    assert pq.hex() == identity["ml_dsa_public"]
    assert instance_id(ed, pq, identity["address"]) == instance(exchange)
    assert CapabilityKeys.derive(
        hexed(held["token"]),
        instance=instance(exchange),
        principal_id=held["principal_id"],
        generation=held["generation"],
        ed_public=ed,
        pq_public=pq,
    ) == capability(exchange)


@pytest.mark.parametrize("name", ["m1", "m3"])
@named(EXCHANGES)
def test_both_proofs(at: int, name: str) -> None:
    exchange = EXCHANGES[at]
    message, held, keys = exchange[name], exchange["capability"], capability(exchange)
    label, key = {
        "m1": (L_CHALLENGE_REQUEST, keys.challenge),
        "m3": (L_AGENT_REQUEST_MAC, keys.request),
    }[name]
    covered = mac_input(
        label,
        message["method"].encode(),
        message["route"].encode(),
        instance(exchange),
        held["principal_id"],
        held["generation"],
        message["timestamp"],
        hexed(message["nonce"]),
        hexed(message["body"]),
    )
    assert covered.hex() == message["mac_input"]
    assert hmac_sha384(key, covered).hex() == message["mac"]
    proof = Proof(
        held["principal_id"],
        held["generation"],
        message["timestamp"],
        hexed(message["nonce"]),
        hexed(message["mac"]),
    )
    headers = [(name.encode(), value.encode()) for name, value in message["headers"]]
    assert proof.headers() == headers
    assert Proof.parse(headers) == proof
    if name == "m1":
        assert challenge_body().hex() == message["body"]


@named(EXCHANGES)
def test_leaf_tree_and_signatures(at: int) -> None:
    exchange = EXCHANGES[at]
    batch, leaf = exchange["batch"], exchange["leaf"]
    assert NATIVE.kem_key(hexed(leaf["ml_kem_seed"])).public.hex() == leaf["ml_kem_public"]
    assert X25519Key(hexed(leaf["x25519_private"])).public.hex() == leaf["x25519_public"]
    digests = [hexed(digest) for digest in batch["leaf_digests"]]
    digest = leaf_hash(frozen_leaf(exchange).encode())
    assert len(digests) == batch["count"]
    assert digests[batch["index"]] == digest
    root, paths = root_and_paths(digests)
    assert root.hex() == batch["root"]
    assert paths[batch["index"]].hex() == batch["path"]
    assert root_from_path(digest, batch["index"], batch["count"], hexed(batch["path"])) == root
    message = signed_value(instance(exchange), batch["count"], root)
    assert message.hex() == batch["signed_value"]
    ed = Ed25519Signer(hexed(exchange["identity"]["ed25519_seed"]))
    assert ed.sign(message).hex() == batch["ed25519_signature"]
    assert batch["ml_dsa_context"].encode() == L_BATCH


@pytest.mark.parametrize("provider", PROVIDERS)
@named(EXCHANGES)
def test_ml_dsa_signatures_verify_and_may_be_made_again(at: int, provider: str) -> None:
    """Signing is hedged: another signature of the same value is another one, and just as good."""
    exchange = EXCHANGES[at]
    batch, identity = exchange["batch"], exchange["identity"]
    public, message = hexed(identity["ml_dsa_public"]), hexed(batch["signed_value"])
    verify = PROVIDERS[provider].verify
    assert verify(public, hexed(batch["ml_dsa_signature"]), message, L_BATCH)
    assert not verify(public, hexed(batch["ml_dsa_signature"]), message, b"")
    again = NATIVE.signer(hexed(identity["ml_dsa_seed"])).sign(message, L_BATCH)
    assert verify(public, again, message, L_BATCH)


@named(EXCHANGES)
def test_binding_and_m2(at: int) -> None:
    exchange = EXCHANGES[at]
    batch, m1, keys = exchange["batch"], exchange["m1"], capability(exchange)
    binding = frozen_binding(exchange)
    assert binding.encode().hex() == exchange["binding"]["encoded"]
    assert Binding.parse(binding.encode()) == binding
    leaf = frozen_leaf(exchange)
    digest = leaf_hash(leaf.encode())
    covered, mac = hexed(m1["mac_input"]), hexed(m1["mac"])
    assert (
        binding_mac(keys.binding, digest, binding.encode(), covered, mac).hex() == exchange["binding"]["mac"]
    )
    statement = b"".join(
        (
            leaf.encode(),
            batch["index"].to_bytes(2),
            batch["count"].to_bytes(2),
            hexed(batch["path"]),
            hexed(batch["ed25519_signature"]),
            hexed(batch["ml_dsa_signature"]),
        )
    )
    made = bind(SignedLeaf(leaf, statement, digest), binding, keys.binding, covered, mac)
    assert made.hex() == exchange["m2"]
    check_m2(exchange, made)


def check_m2(exchange: Exchange, wire: bytes) -> None:
    """All that a client does with M2 up to the agreement. Raises MalformedError."""
    identity, m1, keys = exchange["identity"], exchange["m1"], capability(exchange)
    received = ReceivedChallenge.parse(wire)
    received.check_signatures(
        NATIVE, hexed(identity["ed25519_public"]), hexed(identity["ml_dsa_public"]), instance(exchange)
    )
    received.check_binding(
        keys.binding, frozen_binding(exchange), hexed(m1["mac_input"]), hexed(m1["mac"]), instance(exchange)
    )
    NATIVE.encapsulate(received.leaf.kem_public)
    X25519Key().exchange(received.leaf.x_public)


def test_a_batch_signed_again_differs_in_the_ml_dsa_signature_alone() -> None:
    exchange = next(one for one in EXCHANGES if one["batch"]["count"] == 1)
    identity = exchange["identity"]
    signed = sign_batch(
        [frozen_leaf(exchange)],
        Ed25519Signer(hexed(identity["ed25519_seed"])),
        NATIVE.signer(hexed(identity["ml_dsa_seed"])),
    )[0]
    frozen = hexed(exchange["m2"])
    assert signed.statement[:-4627] == frozen[: len(signed.statement) - 4627]


@named(EXCHANGES)
def test_agreement_from_both_sides(at: int) -> None:
    exchange = EXCHANGES[at]
    agreed, leaf, m1 = exchange["agreement"], exchange["leaf"], exchange["m1"]
    kem = NATIVE.kem_key(hexed(leaf["ml_kem_seed"]))
    assert kem.decapsulate(hexed(agreed["ml_kem_ciphertext"])).hex() == agreed["ml_kem_secret"]
    ours, theirs = X25519Key(hexed(agreed["x25519_private"])), X25519Key(hexed(leaf["x25519_private"]))
    assert ours.public.hex() == agreed["x25519_public"]
    assert ours.exchange(theirs.public).hex() == agreed["x25519_secret"]
    assert theirs.exchange(ours.public).hex() == agreed["x25519_secret"]
    transcript = transcript_hash(
        hexed(m1["mac_input"]),
        hexed(m1["mac"]),
        hexed(exchange["m2"]),
        hexed(agreed["ml_kem_ciphertext"]),
        ours.public,
    )
    assert transcript.hex() == agreed["transcript"]
    psk = capability(exchange).psk
    secrets = hexed(agreed["ml_kem_secret"]), hexed(agreed["x25519_secret"])
    assert hkdf_extract(psk, b"".join(secrets)).hex() == agreed["secret"]
    assert CallKeys.derive(psk, *secrets, transcript) == call_keys(exchange)


@named(EXCHANGES)
def test_m3(at: int) -> None:
    exchange = EXCHANGES[at]
    m3, held, agreed, keys = (
        exchange["m3"],
        exchange["capability"],
        exchange["agreement"],
        call_keys(exchange),
    )
    associated = request_associated(
        m3["method"].encode(),
        m3["route"].encode(),
        instance(exchange),
        hexed(exchange["leaf"]["challenge_id"]),
        held["principal_id"],
        held["generation"],
        hexed(agreed["transcript"]),
    )
    assert associated.hex() == m3["associated"]
    plaintext = hexed(m3["plaintext"])
    assert len(pad(plaintext)) == m3["padded_bytes"]
    wire = RequestWire(
        hexed(exchange["leaf"]["challenge_id"]),
        hexed(agreed["ml_kem_ciphertext"]),
        hexed(agreed["x25519_public"]),
        keys.seal_request(plaintext, associated),
    ).encode()
    assert wire.hex() == m3["body"]
    assert open_m3(exchange, wire) == plaintext
    assert parse_json(plaintext) == PLANS[at].request


def open_m3(exchange: Exchange, wire: bytes) -> bytes:
    """All that a broker does with M3 after its MAC. Raises MalformedError."""
    leaf, m1, m3, held = exchange["leaf"], exchange["m1"], exchange["m3"], exchange["capability"]
    parts = RequestWire.parse(wire)
    transcript = transcript_hash(
        hexed(m1["mac_input"]),
        hexed(m1["mac"]),
        hexed(exchange["m2"]),
        parts.kem_ciphertext,
        parts.x_public,
    )
    keys = CallKeys.derive(
        capability(exchange).psk,
        NATIVE.kem_key(hexed(leaf["ml_kem_seed"])).decapsulate(parts.kem_ciphertext),
        X25519Key(hexed(leaf["x25519_private"])).exchange(parts.x_public),
        transcript,
    )
    associated = request_associated(
        m3["method"].encode(),
        m3["route"].encode(),
        instance(exchange),
        parts.challenge_id,
        held["principal_id"],
        held["generation"],
        transcript,
    )
    return keys.open_request(parts.sealed, associated)


@named(EXCHANGES)
def test_m4(at: int) -> None:
    exchange = EXCHANGES[at]
    m4, keys = exchange["m4"], call_keys(exchange)
    associated = response_associated(
        hexed(exchange["agreement"]["transcript"]), hexed(exchange["m3"]["body"])
    )
    assert associated.hex() == m4["associated"]
    plaintext = hexed(m4["plaintext"])
    sealed = aead_seal(keys.response_key, keys.response_iv, pad(plaintext), associated)
    assert sealed.hex() == m4["body"]
    assert keys.open_response(sealed, associated) == plaintext
    assert len(pad(plaintext)) == m4["padded_bytes"]
    if m4["status"] == 200:
        assert _result(plaintext) == m4["value"]
        return
    with pytest.raises(CallFailed) as caught:
        _result(plaintext)
    failed = caught.value
    assert (failed.status, failed.code) == (m4["status"], m4["value"]["code"])
    assert failed.effect == m4["value"]["effect"]
    assert failed.retry_after_ms == m4["value"].get("retryAfterMs")


def changed(exchange: Exchange, failure: Exchange) -> bytes:
    message = exchange[failure["message"]]
    base = hexed(message if isinstance(message, str) else message["body"])
    change = failure["change"]
    return base[: change["at"]] + hexed(change["hex"]) + base[change["resume"] :]


@named(FAILURES)
def test_the_named_failure(at: int) -> None:
    failure = FAILURES[at]
    exchange = EXCHANGES[failure["exchange"]]
    with pytest.raises(MalformedError) as caught:
        meet(exchange, failure)
    assert str(caught.value).replace(" ", "-") == failure["expected"]


def meet(exchange: Exchange, failure: Exchange) -> None:
    if failure["message"] == "m1":
        Proof.parse([(name.encode(), value.encode()) for name, value in failure["headers"]])
    elif failure["message"] == "m2":
        check_m2(exchange, changed(exchange, failure))
    elif failure["message"] == "m3":
        open_m3(exchange, changed(exchange, failure))
    else:
        associated = hexed(exchange["m4"]["associated"])
        _result(call_keys(exchange).open_response(changed(exchange, failure), associated))


def test_the_generator_makes_the_same_but_for_what_is_random() -> None:
    """One exchange made anew: a change of the code that the frozen file would not show."""
    from tests.vectors.exchange import Exchange as Made

    made, frozen = Made(2, PLANS[2]).record, EXCHANGES[2]
    for part in ("identity", "capability", "m1", "leaf", "binding"):
        assert made[part] == frozen[part]
    for name in ("count", "index", "leaf_digests", "root", "path", "signed_value", "ed25519_signature"):
        assert made["batch"][name] == frozen["batch"][name]
    assert made["m3"]["plaintext"] == frozen["m3"]["plaintext"]
    assert made["batch"]["ml_dsa_signature"] != frozen["batch"]["ml_dsa_signature"]
    assert made["agreement"]["ml_kem_ciphertext"] != frozen["agreement"]["ml_kem_ciphertext"]
