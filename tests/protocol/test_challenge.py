"""M2: nothing in it can be changed, exchanged or left out without the client noticing."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.limits import MAX_BATCH
from tabwarden.protocol.challenge import (
    L_BATCH,
    L_BINDING_FIELDS,
    LEAF_BYTES,
    Binding,
    Leaf,
    ReceivedChallenge,
    SignedLeaf,
    bind,
    binding_mac,
    sign_batch,
    signed_value,
)
from tabwarden.protocol.codec import pae
from tabwarden.protocol.merkle import leaf_hash, root_and_paths
from tabwarden.protocol.primitives import Ed25519Signer, PqProvider

from tests.protocol.scene import NATIVE, NOW, Scene, make_scene, seeded

SCENE = make_scene()
WIRE = SCENE.wire()
PATH = LEAF_BYTES + 4
SIGNATURES = PATH + 48 * 3
PQ = SIGNATURES + 64
BINDING = PQ + 4627


def judge(wire: bytes, scene: Scene = SCENE, provider: PqProvider = NATIVE) -> str:
    """What a client finds: `good`, or the rule that failed."""
    try:
        challenge = ReceivedChallenge.parse(wire)
        challenge.check_signatures(provider, scene.ed.public, scene.pq.public, scene.instance)
        challenge.check_binding(
            scene.keys.binding, scene.expected, scene.request_input, scene.request_mac, scene.instance
        )
    except MalformedError as error:
        return str(error)
    return "good"


def flipped(wire: bytes, at: int, mask: int) -> bytes:
    changed = bytearray(wire)
    changed[at] ^= mask
    return bytes(changed)


@pytest.mark.parametrize(("index", "count"), [(0, 1), (0, 2), (2, 3), (4, 7), (6, 7), (63, 64)])
@pytest.mark.parametrize(("principal_id", "generation"), [("legacy", 0), ("agent-7", 3)])
def test_an_honest_challenge_passes(index: int, count: int, principal_id: str, generation: int) -> None:
    scene = make_scene(principal_id, generation, index=index, count=count)
    wire = scene.wire()
    assert judge(wire, scene) == "good"
    received = ReceivedChallenge.parse(wire)
    assert received.leaf == scene.leaves[index]
    assert received.binding == scene.binding
    assert received.count == count
    assert received.root == root_and_paths([leaf_hash(leaf.encode()) for leaf in scene.leaves])[0]


def test_a_full_batch_has_256_leaves() -> None:
    leaves = [replace(SCENE.leaves[0], challenge_id=at.to_bytes(16)) for at in range(MAX_BATCH)]
    signed = sign_batch(leaves, SCENE.ed, SCENE.pq)
    for at in (0, 255):
        wire = bind(signed[at], SCENE.binding, SCENE.keys.binding, SCENE.request_input, SCENE.request_mac)
        assert judge(wire) == "good"
    for wrong in ([], [*leaves, leaves[0]]):
        with pytest.raises(ValueError, match="batch size"):
            sign_batch(wrong, SCENE.ed, SCENE.pq)


def allowed_reasons(at: int) -> set[str]:
    """Which rules may notice a change at this offset."""
    if at < LEAF_BYTES or PATH <= at < SIGNATURES:
        return {"ed25519 signature"}
    if at < PATH:
        return {"leaf index", "challenge", "challenge length", "label or field count", "ed25519 signature"}
    if at < PQ:
        return {"ed25519 signature"}
    if at < BINDING:
        return {"ml-dsa signature"}
    if at < len(WIRE) - 48:
        return {"label or field count", "field length", "trailing bytes", "binding", "binding mac"}
    return {"binding mac"}


@pytest.mark.parametrize("part", range(8))
def test_a_flipped_bit_anywhere_is_noticed_by_the_right_rule(part: int) -> None:
    """One bit of every byte, another one for each part of the message."""
    for at in range(part, len(WIRE), 8):
        found = judge(flipped(WIRE, at, 1 << (at // 8) % 8))
        assert found in allowed_reasons(at), at


def test_every_bit_of_the_small_fields_is_noticed() -> None:
    small = [*range(96), *range(LEAF_BYTES - 40, PATH), *range(BINDING, len(WIRE))]
    for at in small:
        for bit in range(8):
            assert judge(flipped(WIRE, at, 1 << bit)) in allowed_reasons(at)


def test_another_count_of_the_same_shape_does_not_verify() -> None:
    """The path fits a batch of 6 as well as one of 7; only the signed value tells."""
    scene = make_scene(index=0, count=7)
    wire = scene.wire()
    for count in (5, 6, 8):
        changed = wire[: LEAF_BYTES + 2] + count.to_bytes(2) + wire[PATH:]
        assert judge(changed, scene) == "ed25519 signature"


@pytest.mark.parametrize("count", [0, 257, 2**15, 2**16 - 1])
def test_a_count_outside_the_bounds_is_refused_before_anything_is_hashed(count: int) -> None:
    changed = WIRE[: LEAF_BYTES + 2] + count.to_bytes(2) + WIRE[PATH:]
    assert judge(changed) in ("challenge", "leaf index")


def test_every_truncation_and_extension_is_refused() -> None:
    edges = (0, 1, LEAF_BYTES, PATH, SIGNATURES, PQ, BINDING, len(WIRE) - 48, len(WIRE))
    ends = {edge + change for edge in edges for change in (-49, -48, -1, 0, 1) if edge + change >= 0}
    for end in ends - {len(WIRE)}:
        assert judge(WIRE[:end]) != "good" or end > len(WIRE)
    for extra in (b"\x00", bytes(48), WIRE):
        assert judge(WIRE + extra) != "good"
        assert judge(extra + WIRE) != "good"


def test_a_leaf_has_one_length() -> None:
    assert Leaf.parse(SCENE.leaves[0].encode()) == SCENE.leaves[0]
    for length in (0, LEAF_BYTES - 1, LEAF_BYTES + 1):
        with pytest.raises(MalformedError, match="leaf length"):
            Leaf.parse(bytes(length))


# ---- the two signatures --------------------------------------------------------------------------------

ROOT = ReceivedChallenge.parse(WIRE).root
MESSAGE = signed_value(SCENE.instance, SCENE.count, ROOT)
OTHER_ED, OTHER_PQ = Ed25519Signer(), NATIVE.signer()
GOOD_ED, GOOD_PQ = WIRE[SIGNATURES:PQ], WIRE[PQ:BINDING]


def with_signatures(ed: bytes, pq: bytes) -> bytes:
    return WIRE[:SIGNATURES] + ed + pq + WIRE[BINDING:]


# Named, because signatures differ from run to run and would make other test ids each time.
SIGNED: dict[str, tuple[bytes, bytes, str]] = {
    "no ed25519": (bytes(64), GOOD_PQ, "ed25519 signature"),
    "no ml-dsa": (GOOD_ED, bytes(4627), "ml-dsa signature"),
    "neither": (bytes(64), bytes(4627), "ed25519 signature"),
    "ed25519 forged": (OTHER_ED.sign(MESSAGE), GOOD_PQ, "ed25519 signature"),
    "ml-dsa forged": (GOOD_ED, OTHER_PQ.sign(MESSAGE, L_BATCH), "ml-dsa signature"),
    "ed25519 of more": (SCENE.ed.sign(MESSAGE + b"\x00"), GOOD_PQ, "ed25519 signature"),
    "ed25519 of the root": (SCENE.ed.sign(ROOT), GOOD_PQ, "ed25519 signature"),
    "ml-dsa without context": (GOOD_ED, SCENE.pq.sign(MESSAGE, b""), "ml-dsa signature"),
    "ml-dsa under another context": (GOOD_ED, SCENE.pq.sign(MESSAGE, L_BATCH + b"x"), "ml-dsa signature"),
    "ml-dsa of the root": (GOOD_ED, SCENE.pq.sign(ROOT, L_BATCH), "ml-dsa signature"),
    "both made again": (SCENE.ed.sign(MESSAGE), SCENE.pq.sign(MESSAGE, L_BATCH), "good"),
}


@pytest.mark.parametrize("name", SIGNED)
def test_both_signatures_must_verify(name: str) -> None:
    ed, pq, why = SIGNED[name]
    assert judge(with_signatures(ed, pq)) == why


@pytest.mark.parametrize("stripped", ["ed", "pq", "both"])
def test_a_stripped_signature_is_refused(stripped: str) -> None:
    ed = b"" if stripped in ("ed", "both") else GOOD_ED
    pq = b"" if stripped in ("pq", "both") else GOOD_PQ
    assert judge(WIRE[:SIGNATURES] + ed + pq + WIRE[BINDING:]) != "good"


def test_the_pinned_keys_and_the_instance_decide() -> None:
    received = ReceivedChallenge.parse(WIRE)
    ed, pq, instance = SCENE.ed.public, SCENE.pq.public, SCENE.instance
    received.check_signatures(NATIVE, ed, pq, instance)
    for args, why in (
        ((OTHER_ED.public, pq, instance), "ed25519 signature"),
        ((ed, OTHER_PQ.public, instance), "ml-dsa signature"),
        ((ed, pq, bytes(32)), "ed25519 signature"),
    ):
        with pytest.raises(MalformedError, match=why):
            received.check_signatures(NATIVE, *args)


def test_a_signature_of_one_kind_of_message_is_none_of_another() -> None:
    """The label is in the signed bytes, and it is the context as well."""
    assert pae(L_BATCH, SCENE.instance, (7).to_bytes(8), ROOT) == MESSAGE
    assert L_BATCH.endswith(b"/challenge-batch")


# ---- what belongs together ------------------------------------------------------------------------------


def rebound(signed: SignedLeaf, binding: Binding = SCENE.binding) -> bytes:
    return bind(signed, binding, SCENE.keys.binding, SCENE.request_input, SCENE.request_mac)


def test_a_leaf_with_the_path_of_another_is_refused() -> None:
    others = make_scene(name="another batch")
    mixed = replace(SCENE.signed, statement=SCENE.signed.statement[:PATH] + others.signed.statement[PATH:])
    assert judge(rebound(mixed)) == "ed25519 signature"
    neighbour = sign_batch(SCENE.leaves, SCENE.ed, SCENE.pq)[5]
    mixed = replace(
        SCENE.signed,
        statement=SCENE.signed.statement[:PATH] + neighbour.statement[PATH:],
    )
    assert judge(rebound(mixed)) == "ed25519 signature"


def test_a_binding_of_another_leaf_is_refused() -> None:
    """Both leaves are under one root, so the signatures hold: only the binding's MAC names the leaf."""
    neighbour = sign_batch(SCENE.leaves, SCENE.ed, SCENE.pq)[5]
    assert judge(rebound(neighbour)) == "good"
    stolen = neighbour.statement + WIRE[BINDING:]
    assert judge(stolen) == "binding mac"


@pytest.mark.parametrize(
    "changes",
    [
        {"method": b"GET"},
        {"route": b"/v1/agent2"},
        {"route": b"/v1/challenge"},
        {"principal_id": "agent-8"},
        {"principal_id": "legacy"},
        {"generation": 2},
        {"client_nonce": bytes(32)},
    ],
    ids=str,
)
def test_a_binding_to_another_request_is_refused_even_with_a_good_mac(changes: dict[str, object]) -> None:
    assert judge(SCENE.wire(**changes)) == "binding fields"


@pytest.mark.parametrize("changes", [{"issued": 0}, {"issued": 2**64 - 1}, {"lifetime": 0}], ids=str)
def test_times_are_judged_by_the_clients_clock_and_not_here(changes: dict[str, object]) -> None:
    assert judge(SCENE.wire(**changes)) == "good"


def test_a_leaf_of_another_instance_is_refused_even_when_signed_and_bound() -> None:
    leaves = list(SCENE.leaves)
    leaves[4] = replace(leaves[4], instance=bytes(32))
    signed = sign_batch(leaves, SCENE.ed, SCENE.pq)[4]
    assert judge(rebound(signed)) == "instance"


@pytest.mark.parametrize("what", ["key", "input", "mac"])
def test_a_binding_is_to_one_m1(what: str) -> None:
    received = ReceivedChallenge.parse(WIRE)
    key, request_input, request_mac = SCENE.keys.binding, SCENE.request_input, SCENE.request_mac
    if what == "key":
        key = SCENE.keys.request
    elif what == "input":
        request_input += b"\x00"
    else:
        request_mac = flipped(request_mac, 0, 1)
    with pytest.raises(MalformedError, match="binding mac"):
        received.check_binding(key, SCENE.expected, request_input, request_mac, SCENE.instance)


def test_the_binding_mac_covers_each_part() -> None:
    parts = (b"k" * 48, b"d" * 48, b"binding", b"input", b"mac")
    macs = {binding_mac(*parts)}
    for at in range(5):
        macs.add(binding_mac(*(part + b"x" if i == at else part for i, part in enumerate(parts))))
    assert len(macs) == 6


bindings = st.builds(
    Binding,
    st.binary(max_size=8),
    st.binary(max_size=20),
    st.text(st.characters(max_codepoint=127), max_size=64),
    st.integers(0, 2**64 - 1),
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)


@given(bindings)
def test_a_binding_comes_back(binding: Binding) -> None:
    assert Binding.parse(binding.encode()) == binding


FIELDS: list[bytes] = [b"POST", b"/v1/agent", b"agent-7", bytes(8), bytes(32), bytes(8), bytes(8)]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (3, bytes(7)),
        (3, bytes(9)),
        (3, b""),
        (4, bytes(31)),
        (4, bytes(33)),
        (5, bytes(7)),
        (5, bytes(16)),
        (6, bytes(9)),
        (6, b""),
        (2, b"agent\xff"),
        (2, "\u00e9".encode()),
    ],
)
def test_a_binding_of_another_form_is_refused(at: int, value: bytes) -> None:
    Binding.parse(pae(L_BINDING_FIELDS, *FIELDS))
    with pytest.raises(MalformedError, match="binding"):
        Binding.parse(pae(L_BINDING_FIELDS, *FIELDS[:at], value, *FIELDS[at + 1 :]))


def test_a_binding_has_seven_fields_and_its_own_label() -> None:
    cases: list[Callable[[], bytes]] = [
        lambda: pae(L_BINDING_FIELDS, *FIELDS[:-1]),
        lambda: pae(L_BINDING_FIELDS, *FIELDS, b""),
        lambda: pae(L_BATCH, *FIELDS),
        lambda: b"",
    ]
    for case in cases:
        with pytest.raises(MalformedError, match="label or field count"):
            Binding.parse(case())


@pytest.mark.parametrize("changes", [{"generation": -1}, {"issued": 2**64}, {"lifetime": -5}], ids=str)
def test_a_number_without_eight_bytes_is_not_encoded(changes: dict[str, int]) -> None:
    with pytest.raises(MalformedError, match="integer range"):
        replace(SCENE.binding, **changes).encode()  # type: ignore[arg-type]


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        ReceivedChallenge.parse(data)
    with pytest.raises(MalformedError):
        ReceivedChallenge.parse(WIRE[:LEAF_BYTES] + data)


def test_server_nonces_hide_the_neighbours() -> None:
    """A leaf's hash is of 32 random bytes among others: the path tells nothing of the other callers."""
    one = replace(SCENE.leaves[0], server_nonce=seeded("one", 32))
    other = replace(SCENE.leaves[0], server_nonce=seeded("other", 32))
    assert leaf_hash(one.encode()) != leaf_hash(other.encode())
    assert one.not_after == NOW + 120_000
