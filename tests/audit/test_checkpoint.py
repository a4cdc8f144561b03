"""One checkpoint: both signatures, every member of it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.protocol.challenge import L_BATCH, signed_value
from tabwarden.protocol.codec import base64url
from tabwarden.protocol.primitives import Ed25519Signer, NativeProvider, ed25519_verify
from tabwarden.protocol.statement import InstanceSigner, verify_statement
from tabwarden_adapters.audit.checkpoint import MAX_CHECKPOINT_BYTES, Checkpoint, Place, parse, sign

from tests.audit.signed import new_signer
from tests.audit.test_edge import HASHES, edge_of


def place(size: int) -> Place:
    return Place(size, HASHES[size - 1].hex(), tuple(edge_of(size).peaks))


SIGNER = new_signer()
CHECKPOINT = sign(SIGNER, place(13), place(4), 1_800_000_000_000, 5_000)
DATA = CHECKPOINT.encode()


def changed(**members: object) -> bytes:
    return json.dumps({**json.loads(DATA), **members}).encode()


def test_it_comes_back() -> None:
    assert parse(DATA) == CHECKPOINT
    assert DATA.isascii()
    assert DATA.count(b"\n") == 1
    largest = sign(SIGNER, Place(2**53 - 1, "0" * 96, (HASHES[0],) * 53), Place(), 2**53, 2**53)
    assert len(largest.encode()) * 2 < MAX_CHECKPOINT_BYTES * 2
    assert parse(largest.encode()) == largest


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(DATA) - 1), value=st.integers(0, 255))
def test_every_changed_byte_shows(at: int, value: int) -> None:
    data = bytearray(DATA)
    data[at] = value
    try:
        read = parse(bytes(data))
    except MalformedError:
        return
    assert read == CHECKPOINT


@pytest.mark.parametrize("which", ["ed25519", "ml_dsa_87"])
def test_both_signatures_must_be_good(which: str) -> None:
    other = sign(new_signer(), CHECKPOINT.place, CHECKPOINT.base, CHECKPOINT.wall_ms, CHECKPOINT.boot_ms)
    members = json.loads(other.encode())
    with pytest.raises(MalformedError):
        parse(changed(**{f"{which}_signature": members[f"{which}_signature"]}))
    # One key and its good signature put in the place of the other's pair.
    with pytest.raises(MalformedError):
        parse(
            changed(
                **{
                    f"{which}_signature": members[f"{which}_signature"],
                    f"{which}_public": members[f"{which}_public"],
                }
            )
        )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        changed(format="tabwarden-audit-checkpoint-v2"),
        changed(more=1),
        changed(size="13"),
        changed(size=-1),
        changed(size=12),
        changed(peaks=[]),
        changed(head="0" * 95),
        changed(head="G" * 96),
        changed(head=CHECKPOINT.place.head.upper()),
        changed(root="0" * 96),
        changed(key_id="0" * 96),
        changed(ed25519_public=base64url(b"x" * 31)),
        changed(base=None),
        b" " * MAX_CHECKPOINT_BYTES + DATA,
        DATA.replace(b'"wall_ms":', b'"wall_ms":1,"wall_ms":'),
    ],
)
def test_what_is_no_checkpoint(data: bytes) -> None:
    with pytest.raises(MalformedError):
        parse(data)


def test_a_base_behind_the_place() -> None:
    with pytest.raises(MalformedError):
        parse(sign(SIGNER, place(4), place(13), 1, 1).encode())


@pytest.mark.parametrize("member", ["place", "base", "wall_ms", "boot_ms"])
def test_the_signatures_cover(member: str) -> None:
    values = {"place": place(14), "base": place(5), "wall_ms": 1, "boot_ms": 1}
    given = {
        name: values[name] if name == member else getattr(CHECKPOINT, name)
        for name in ("place", "base", "wall_ms", "boot_ms")
    }
    moved = Checkpoint(
        **given,  # type: ignore[arg-type]
        ed_public=CHECKPOINT.ed_public,
        pq_public=CHECKPOINT.pq_public,
        signatures=CHECKPOINT.signatures,
    )
    with pytest.raises(MalformedError, match="signatures"):
        parse(moved.encode())


def test_no_statement_passes_as_a_batch_of_challenges() -> None:
    ed, pq = Ed25519Signer(), NativeProvider().signer()
    batch = signed_value(b"i" * 32, 1, b"r" * 48)
    for purpose, data in (("", batch), ("audit-checkpoint", batch), ("challenge-batch", b"")):
        by_ed, by_pq = InstanceSigner(ed, pq).sign_statement(purpose, data)
        assert not ed25519_verify(ed.public, by_ed, batch)
        assert not NativeProvider().verify(pq.public, by_pq, batch, L_BATCH)
        assert verify_statement(NativeProvider(), (ed.public, pq.public), (by_ed, by_pq), purpose, data)
        assert not verify_statement(NativeProvider(), (ed.public, pq.public), (by_ed, by_pq), "other", data)
        assert not verify_statement(NativeProvider(), (ed.public, pq.public), (b"", by_pq), purpose, data)
        assert not verify_statement(NativeProvider(), (ed.public, pq.public), (by_ed, b""), purpose, data)
