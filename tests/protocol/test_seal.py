"""M3 and M4: every byte is covered, each key serves one message, and padding has one form."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.limits import PADDED_SIZES
from tabwarden.protocol.codec import pae
from tabwarden.protocol.primitives import X25519Key, aead_seal, hkdf_extract, hmac_sha384, sha384
from tabwarden.protocol.proof import AGENT_ROUTE, METHOD
from tabwarden.protocol.seal import (
    MAX_PLAINTEXT,
    SEALED_SIZES,
    CallKeys,
    RequestWire,
    pad,
    request_associated,
    response_associated,
    transcript_hash,
    unpad,
)

from tests.protocol.scene import NATIVE, make_scene

SUITE = b"tabwarden/1 Ed25519+ML-DSA-87 X25519+ML-KEM-1024 HKDF-SHA384 AES-256-GCM HMAC-SHA384/"
SCENE = make_scene()
M2 = SCENE.wire()
LEAF = SCENE.leaves[SCENE.index]
KEM_CIPHERTEXT, KEM_SECRET = NATIVE.encapsulate(LEAF.kem_public)
OURS = X25519Key()
X_SECRET = OURS.exchange(LEAF.x_public)
TRANSCRIPT = transcript_hash(SCENE.request_input, SCENE.request_mac, M2, KEM_CIPHERTEXT, OURS.public)
KEYS = CallKeys.derive(SCENE.keys.psk, KEM_SECRET, X_SECRET, TRANSCRIPT)
ASSOCIATED = request_associated(
    METHOD, AGENT_ROUTE, SCENE.instance, LEAF.challenge_id, "agent-7", 3, TRANSCRIPT
)
SEALED = KEYS.seal_request(b"request", ASSOCIATED)
WIRE = RequestWire(LEAF.challenge_id, KEM_CIPHERTEXT, OURS.public, SEALED).encode()
REPLY_ASSOCIATED = response_associated(TRANSCRIPT, WIRE)
REPLY = KEYS.seal_response(b"reply", REPLY_ASSOCIATED)


def open_as_broker(wire: bytes, **changes: object) -> bytes:
    """Everything that a broker does with M3 after its MAC, from the bytes and its own record alone."""
    parts = RequestWire.parse(wire)
    transcript = transcript_hash(
        SCENE.request_input, SCENE.request_mac, M2, parts.kem_ciphertext, parts.x_public
    )
    told: dict[str, object] = {
        "method": METHOD,
        "route": AGENT_ROUTE,
        "instance": SCENE.instance,
        "challenge_id": parts.challenge_id,
        "principal_id": "agent-7",
        "generation": 3,
        "transcript": transcript,
        **changes,
    }
    keys = CallKeys.derive(
        SCENE.keys.psk,
        SCENE.kem.decapsulate(parts.kem_ciphertext),
        SCENE.x.exchange(parts.x_public),
        transcript,
    )
    return keys.open_request(parts.sealed, request_associated(**told))  # type: ignore[arg-type]


def flipped(data: bytes, at: int, mask: int = 1) -> bytes:
    changed = bytearray(data)
    changed[at] ^= mask
    return bytes(changed)


def test_an_honest_exchange_opens_at_both_ends() -> None:
    assert open_as_broker(WIRE) == b"request"
    assert KEYS.open_response(REPLY, REPLY_ASSOCIATED) == b"reply"


@pytest.mark.parametrize("part", range(4))
def test_a_flipped_bit_anywhere_in_m3_is_noticed(part: int) -> None:
    for at in range(part, len(WIRE), 4):
        mask = 1 << at % 8
        if at == 16 + 1568 + 31 and mask == 0x80:
            continue  # X25519 ignores the top bit of a point, but not the transcript: see below
        with pytest.raises(MalformedError, match=r"^(seal|x25519)$"):
            open_as_broker(flipped(WIRE, at, mask))


def test_the_ignored_bit_of_an_x25519_key_is_in_the_transcript() -> None:
    changed = flipped(WIRE, 16 + 1568 + 31, 0x80)
    assert SCENE.x.exchange(RequestWire.parse(changed).x_public) == X_SECRET
    with pytest.raises(MalformedError, match=r"^seal$"):
        open_as_broker(changed)


def test_every_bit_of_m4_is_noticed() -> None:
    for bit in range(len(REPLY) * 8):
        with pytest.raises(MalformedError, match=r"^seal$"):
            KEYS.open_response(flipped(REPLY, bit // 8, 1 << bit % 8), REPLY_ASSOCIATED)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": b"GET"},
        {"route": b"/v1/challenge"},
        {"instance": bytes(32)},
        {"challenge_id": bytes(16)},
        {"principal_id": "agent-8"},
        {"generation": 4},
        {"transcript": bytes(48)},
    ],
    ids=str,
)
def test_the_associated_data_of_m3_covers_every_field(changes: dict[str, object]) -> None:
    with pytest.raises(MalformedError, match=r"^seal$"):
        open_as_broker(WIRE, **changes)


def test_associated_data_is_under_its_own_label() -> None:
    fields = (METHOD, AGENT_ROUTE, SCENE.instance, LEAF.challenge_id, b"agent-7", (3).to_bytes(8), TRANSCRIPT)
    assert pae(SUITE + b"agent-request", *fields) == ASSOCIATED
    assert pae(SUITE + b"agent-response", TRANSCRIPT, sha384(WIRE)) == REPLY_ASSOCIATED
    for label in (b"agent-response", b"agent-request-mac", b"", b"agent-request2"):
        sealed = KEYS.seal_request(b"request", pae(SUITE + label, *fields))
        with pytest.raises(MalformedError, match=r"^seal$"):
            KEYS.open_request(sealed, ASSOCIATED)


def test_a_reply_answers_one_request() -> None:
    other = KEYS.seal_request(b"another", ASSOCIATED)
    wire = RequestWire(LEAF.challenge_id, KEM_CIPHERTEXT, OURS.public, other).encode()
    for associated in (
        response_associated(TRANSCRIPT, wire),
        response_associated(bytes(48), WIRE),
        ASSOCIATED,
        b"",
    ):
        with pytest.raises(MalformedError, match=r"^seal$"):
            KEYS.open_response(REPLY, associated)


def test_a_request_is_not_a_reply_and_a_reply_no_request() -> None:
    for associated in (ASSOCIATED, REPLY_ASSOCIATED):
        with pytest.raises(MalformedError, match=r"^seal$"):
            KEYS.open_response(SEALED, associated)
        with pytest.raises(MalformedError, match=r"^seal$"):
            KEYS.open_request(REPLY, associated)


# ---- keys -----------------------------------------------------------------------------------------------


def test_the_transcript_covers_every_part_of_the_exchange() -> None:
    parts = (SCENE.request_input, SCENE.request_mac, M2, KEM_CIPHERTEXT, OURS.public)
    assert transcript_hash(*parts) == TRANSCRIPT == sha384(pae(SUITE + b"transcript", *parts))
    hashes = {TRANSCRIPT}
    for at, part in enumerate(parts):
        for changed in (flipped(part, 0), flipped(part, len(part) - 1), part + b"\x00", part[:-1]):
            hashes.add(transcript_hash(*parts[:at], changed, *parts[at + 1 :]))
    assert len(hashes) == 1 + 5 * 4


def test_the_key_schedule_step_by_step() -> None:
    """As written in the protocol, from HMAC alone."""
    secret = hmac_sha384(SCENE.keys.psk, KEM_SECRET + X_SECRET)
    assert secret == hkdf_extract(SCENE.keys.psk, KEM_SECRET + X_SECRET)

    def expand(name: bytes, length: int) -> bytes:
        return hmac_sha384(secret, pae(SUITE + name, TRANSCRIPT) + b"\x01")[:length]

    assert KEYS.request_key == expand(b"request-key", 32)
    assert KEYS.request_iv == expand(b"request-iv", 12)
    assert KEYS.response_key == expand(b"response-key", 32)
    assert KEYS.response_iv == expand(b"response-iv", 12)


def test_every_secret_and_the_transcript_matter_for_every_key() -> None:
    """Breaking ML-KEM or X25519 or holding the capability alone opens nothing."""
    inputs = (SCENE.keys.psk, KEM_SECRET, X_SECRET, TRANSCRIPT)
    values: list[bytes] = []
    for changed in (-1, 0, 1, 2, 3):
        keys = CallKeys.derive(*(flipped(v, 5) if i == changed else v for i, v in enumerate(inputs)))
        values += [keys.request_key, keys.request_iv, keys.response_key, keys.response_iv]
    assert len(set(values)) == len(values) == 20


def test_the_two_secrets_are_not_exchangeable() -> None:
    assert CallKeys.derive(SCENE.keys.psk, X_SECRET, KEM_SECRET, TRANSCRIPT) != KEYS


# ---- lengths and padding --------------------------------------------------------------------------------


def test_m3_has_one_of_five_lengths() -> None:
    head = WIRE[: 16 + 1568 + 32]
    assert len(SEALED_SIZES) == 5
    for size in PADDED_SIZES:
        wire = head + bytes(size + 16)
        parsed = RequestWire.parse(wire)
        assert parsed.encode() == wire
        assert parsed.challenge_id == LEAF.challenge_id
        assert (parsed.kem_ciphertext, parsed.x_public) == (KEM_CIPHERTEXT, OURS.public)
        for wrong in (size + 15, size + 17, size):
            with pytest.raises(MalformedError, match="request length"):
                RequestWire.parse(head + bytes(wrong))
    for wrong in (b"", head, head + bytes(16), head + bytes(PADDED_SIZES[-1] * 2)):
        with pytest.raises(MalformedError, match="request length"):
            RequestWire.parse(wrong)


@pytest.mark.parametrize("size", [0, 15, 16, 20, 1024, 1039, 1041, 4096, 126_976, 200_000])
def test_m4_has_one_of_five_lengths(size: int) -> None:
    with pytest.raises(MalformedError, match="reply length"):
        KEYS.open_response(bytes(size), REPLY_ASSOCIATED)


def test_a_reply_of_another_length_is_refused_even_when_well_sealed() -> None:
    padded = pad(b"reply") + bytes(1000)
    sealed = aead_seal(KEYS.response_key, KEYS.response_iv, padded, REPLY_ASSOCIATED)
    with pytest.raises(MalformedError, match="reply length"):
        KEYS.open_response(sealed, REPLY_ASSOCIATED)


@pytest.mark.parametrize("size", PADDED_SIZES)
def test_padding_hides_the_length_up_to_each_size(size: int) -> None:
    for length in (size - 4, size - 5):
        plaintext = b"x" * length
        assert len(pad(plaintext)) == size
        assert unpad(pad(plaintext)) == plaintext
        sealed = KEYS.seal_response(plaintext, REPLY_ASSOCIATED)
        assert len(sealed) == size + 16
        assert KEYS.open_response(sealed, REPLY_ASSOCIATED) == plaintext
    if size == PADDED_SIZES[-1]:
        with pytest.raises(MalformedError, match="plaintext length"):
            pad(b"x" * (size - 3))
        with pytest.raises(MalformedError, match="plaintext length"):
            KEYS.seal_request(b"x" * (MAX_PLAINTEXT + 1), ASSOCIATED)
    else:
        assert len(pad(b"x" * (size - 3))) > size


@given(st.binary(max_size=1100))
@settings(max_examples=50)
def test_padding_comes_off_again(plaintext: bytes) -> None:
    assert unpad(pad(plaintext)) == plaintext


def misshapen() -> dict[str, bytes]:
    good = pad(b"hello")
    return {
        "not zero at the end": good[:-1] + b"\x01",
        "not zero at the start": good[:9] + b"\x01" + good[10:],
        "not minimal": (5).to_bytes(4) + b"hello" + bytes(4096 - 9),
        "not minimal and largest": (5).to_bytes(4) + b"hello" + bytes(PADDED_SIZES[-1] - 9),
        "length too small": (4).to_bytes(4) + good[4:],
        "length past the end": (1021).to_bytes(4) + good[4:],
        "length far past the end": (2**32 - 1).to_bytes(4) + good[4:],
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "no padding": (5).to_bytes(4) + b"hello",
        "length alone": bytes(4),
        "nothing": b"",
        "three bytes": bytes(3),
    }


@pytest.mark.parametrize("name", misshapen())
def test_padding_has_one_form(name: str) -> None:
    padded = misshapen()[name]
    with pytest.raises(MalformedError, match=r"^(padding|plaintext length)$"):
        unpad(padded)
    sealed = aead_seal(KEYS.request_key, KEYS.request_iv, padded, ASSOCIATED)
    with pytest.raises(MalformedError, match=r"^(padding|plaintext length)$"):
        KEYS.open_request(sealed, ASSOCIATED)
    sealed = aead_seal(KEYS.response_key, KEYS.response_iv, padded, REPLY_ASSOCIATED)
    with pytest.raises(MalformedError, match=r"^(padding|plaintext length|reply length)$"):
        KEYS.open_response(sealed, REPLY_ASSOCIATED)


@given(st.binary(max_size=1030))
def test_unpad_of_anything_is_exact_or_refused(data: bytes) -> None:
    try:
        plaintext = unpad(data)
    except MalformedError:
        return
    assert pad(plaintext) == data


def test_a_request_wire_is_what_its_parts_say() -> None:
    wire = RequestWire(b"i" * 16, b"k" * 1568, b"x" * 32, b"s" * 1040)
    assert wire.encode() == b"i" * 16 + b"k" * 1568 + b"x" * 32 + b"s" * 1040
    assert replace(wire, challenge_id=b"j" * 16) != wire
