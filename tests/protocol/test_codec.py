"""PAE is injective; base64url and decimals have one spelling each."""

import base64
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.protocol.codec import (
    SUITE,
    base64url,
    label,
    pae,
    parse_base64url,
    parse_decimal,
    parse_pae,
    u64,
)

FIELDS = st.lists(st.binary(max_size=40), max_size=8)
LABELS = st.binary(max_size=40)


def decode(data: bytes) -> tuple[bytes, list[bytes]]:
    """PAE read back without knowing the label or the count: that it can be done proves PAE injective."""
    size = int.from_bytes(data[:2])
    name, at = data[2 : 2 + size], 2 + size
    count, at = int.from_bytes(data[at : at + 2]), at + 2
    fields = []
    for _ in range(count):
        size = int.from_bytes(data[at : at + 4])
        fields.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(data)
    return name, fields


@given(LABELS, FIELDS)
def test_pae_can_be_read_back(name: bytes, fields: list[bytes]) -> None:
    assert decode(pae(name, *fields)) == (name, fields)


@given(st.binary(min_size=1, max_size=30), st.data())
def test_pae_of_the_same_bytes_cut_elsewhere_differs(joined: bytes, data: st.DataObject) -> None:
    cuts = st.lists(st.integers(0, len(joined)), max_size=4).map(sorted)

    def cut(at: list[int]) -> tuple[bytes, ...]:
        edges = [0, *at, len(joined)]
        return tuple(joined[a:b] for a, b in itertools.pairwise(edges))

    first, second = cut(data.draw(cuts)), cut(data.draw(cuts))
    # The first piece serves as the label, so bytes also move between the label and the fields.
    assert (pae(*first) == pae(*second)) == (first == second)


def test_pae_known_answer() -> None:
    assert pae(b"L", b"", b"ab").hex() == "0001" + "4c" + "0002" + "00000000" + "00000002" + "6162"
    assert pae(b"").hex() == "00000000"


def test_every_label_starts_with_the_suite() -> None:
    assert label("x") == SUITE.encode("ascii") + b"/x"
    assert SUITE == "tabwarden/1 Ed25519+ML-DSA-87 X25519+ML-KEM-1024 HKDF-SHA384 AES-256-GCM HMAC-SHA384"


@given(LABELS, FIELDS)
def test_parse_pae_returns_the_fields(name: bytes, fields: list[bytes]) -> None:
    assert parse_pae(name, len(fields), pae(name, *fields)) == fields


@given(LABELS, st.lists(st.binary(max_size=20), max_size=4))
@settings(max_examples=40)
def test_parse_pae_refuses_what_is_cut_off_or_added(name: bytes, fields: list[bytes]) -> None:
    data = pae(name, *fields)
    for end in range(len(data)):
        with pytest.raises(MalformedError):
            parse_pae(name, len(fields), data[:end])
    for extra in (b"\x00", b"\x00" * 4, pae(name, *fields)):
        with pytest.raises(MalformedError, match="trailing"):
            parse_pae(name, len(fields), data + extra)


@pytest.mark.parametrize(
    ("name", "count"), [(b"M", 2), (b"", 2), (b"LL", 2), (b"L", 1), (b"L", 3), (b"L", 0), (b"L\x00", 2)]
)
def test_parse_pae_refuses_another_label_or_count(name: bytes, count: int) -> None:
    with pytest.raises(MalformedError, match="label or field count"):
        parse_pae(name, count, pae(b"L", b"one", b"two"))


def test_parse_pae_refuses_a_length_that_lies() -> None:
    data = bytearray(pae(b"L", b"one", b"two"))
    data[5:9] = (2**32 - 1).to_bytes(4)
    with pytest.raises(MalformedError, match="field length"):
        parse_pae(b"L", 2, bytes(data))


@given(st.binary(max_size=60), st.integers(0, 4))
def test_parse_pae_of_anything_is_exact_or_refused(data: bytes, count: int) -> None:
    try:
        fields = parse_pae(b"", count, b"\x00\x00" + data)
    except MalformedError:
        return
    assert pae(b"", *fields) == b"\x00\x00" + data


@pytest.mark.parametrize("value", [-1, 2**64, 2**200])
def test_u64_refuses_what_has_no_eight_bytes(value: int) -> None:
    with pytest.raises(MalformedError, match="integer range"):
        u64(value)


def test_u64_is_big_endian() -> None:
    assert u64(1) == bytes(7) + b"\x01"
    assert u64(2**64 - 1) == b"\xff" * 8


@given(st.binary(max_size=70))
def test_base64url_has_no_padding_and_comes_back(data: bytes) -> None:
    text = base64url(data)
    assert "=" not in text
    assert parse_base64url(text.encode(), len(data)) == data


@pytest.mark.parametrize("length", [1, 2, 4, 16, 32])
def test_base64url_has_one_spelling(length: int) -> None:
    """Of all the spellings that a lax decoder takes for the same bytes, one is accepted."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    data = bytes(range(length))
    text = base64url(data)
    accepted = []
    for last in alphabet:
        candidate = text[:-1] + last
        padded = candidate + "=" * (-len(candidate) % 4)
        if base64.urlsafe_b64decode(padded) == data:
            try:
                parse_base64url(candidate.encode(), length)
            except MalformedError:
                continue
            accepted.append(candidate)
    assert accepted == [text]


GOOD = base64url(bytes(range(200, 232)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD[:-1],
        GOOD + "A",
        GOOD + "=",
        GOOD + "\n",
        GOOD[:-1] + "\n",
        " " + GOOD[1:],
        GOOD[:5] + "+" + GOOD[6:],
        GOOD[:5] + "/" + GOOD[6:],
        GOOD[:5] + "=" + GOOD[6:],
        GOOD[:5] + "\u00e9" + GOOD[6:],
        GOOD[:5] + "\uff21" + GOOD[6:],
        GOOD[:5] + "\ud800" + GOOD[6:],
        GOOD[:5] + "\x00" + GOOD[6:],
        GOOD[:-1] + chr(ord(GOOD[-1]) + 1),
    ],
)
def test_base64url_refuses(text: str) -> None:
    assert parse_base64url(GOOD.encode(), 32) == bytes(range(200, 232))
    with pytest.raises(MalformedError):
        parse_base64url(text.encode("utf-8", "surrogatepass"), 32)


def test_base64url_refuses_another_length() -> None:
    for length in (31, 33, 0, 48):
        with pytest.raises(MalformedError):
            parse_base64url(GOOD.encode(), length)


@given(st.integers(0, 2**63 - 1))
def test_a_decimal_comes_back(value: int) -> None:
    assert parse_decimal(str(value).encode(), 2**63 - 1) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"00",
        b"01",
        b"-0",
        b"-1",
        b"+1",
        b" 1",
        b"1 ",
        b"1\n",
        b"1.0",
        b"1e2",
        b"0x1",
        b"1_0",
        "\u0661".encode(),
        "\u00b2".encode(),
        b"11",
        b"18446744073709551616",
        b"9" * 21,
        b"9" * 100_000,
    ],
)
def test_a_decimal_has_one_spelling_and_a_maximum(text: bytes) -> None:
    assert parse_decimal(b"10", 10) == 10
    assert parse_decimal(b"0", 10) == 0
    with pytest.raises(MalformedError):
        parse_decimal(text, 10)
