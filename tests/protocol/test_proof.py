"""From the token to the keys, and from the keys to the five headers of a request."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.protocol.codec import base64url, pae, parse_pae
from tabwarden.protocol.primitives import hmac_sha384, sha384
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_AGENT_REQUEST_MAC,
    L_CHALLENGE_REQUEST,
    METHOD,
    PROOF_HEADERS,
    CapabilityKeys,
    Proof,
    challenge_body,
    instance_id,
    is_principal_id,
    mac_input,
)

INPUTS = {
    "token": bytes(range(32)),
    "instance": b"i" * 32,
    "principal_id": "agent-7",
    "generation": 3,
    "ed_public": b"e" * 32,
    "pq_public": b"p" * 2592,
}
OTHER = {
    "token": bytes(range(1, 33)),
    "instance": b"j" * 32,
    "principal_id": "agent-8",
    "generation": 4,
    "ed_public": b"f" * 32,
    "pq_public": b"q" * 2592,
}


def four(**inputs: object) -> list[bytes]:
    keys = CapabilityKeys.derive(**inputs)  # type: ignore[arg-type]
    return [keys.challenge, keys.binding, keys.request, keys.psk]


def test_every_input_gives_four_unrelated_keys() -> None:
    made = four(**INPUTS)
    for name in INPUTS:
        made += four(**{**INPUTS, name: OTHER[name]})
    assert all(len(key) == 48 for key in made)
    assert len(set(made)) == len(made) == 4 * 7
    assert four(**INPUTS) == made[:4]


def test_the_derivation_step_by_step() -> None:
    """As written in the protocol, from HMAC and SHA-384 alone."""
    suite = b"tabwarden/1 Ed25519+ML-DSA-87 X25519+ML-KEM-1024 HKDF-SHA384 AES-256-GCM HMAC-SHA384/"
    scope = pae(suite + b"capability", b"i" * 32, b"agent-7", (3).to_bytes(8), b"e" * 32, b"p" * 2592)
    prk = hmac_sha384(sha384(scope), bytes(range(32)))
    names = (b"challenge", b"binding", b"request", b"psk")
    assert four(**INPUTS) == [hmac_sha384(prk, suite + b"capability-" + name + b"\x01") for name in names]


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_token_has_32_bytes(length: int) -> None:
    with pytest.raises(MalformedError, match="token length"):
        four(**{**INPUTS, "token": bytes(length)})


def test_an_instance_names_its_keys_and_address() -> None:
    base = instance_id(b"e" * 32, b"p" * 2592, "127.0.0.1:1")
    assert len(base) == 32
    others = {
        instance_id(b"f" * 32, b"p" * 2592, "127.0.0.1:1"),
        instance_id(b"e" * 32, b"q" * 2592, "127.0.0.1:1"),
        instance_id(b"e" * 32, b"p" * 2592, "127.0.0.1:2"),
        instance_id(b"e" * 32 + b"p", b"p" * 2591, "127.0.0.1:1"),
        instance_id(b"e" * 32, b"p" * 2592 + b"1", "27.0.0.1:1"),
    }
    assert len(others | {base}) == 6


@pytest.mark.parametrize("name", ["a", "0", "legacy", "A.b_c-9", "x" * 64, "a..", "a--"])
def test_a_principal_id(name: str) -> None:
    assert is_principal_id(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 65,
        ".a",
        "-a",
        "_a",
        "a b",
        "a\n",
        "\na",
        "a\x00",
        "a/b",
        "a:b",
        "a,b",
        "\u00e9",
        "a\u0301",
        "\uff21",
        "\ud800",
        "a%41",
    ],
)
def test_not_a_principal_id(name: str) -> None:
    assert not is_principal_id(name)


PROOF = Proof("agent-7", 3, 1_000_000, bytes(range(32)), bytes(range(48)))
HEADERS = PROOF.headers()

proofs = st.builds(
    Proof,
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.binary(min_size=32, max_size=32),
    st.binary(min_size=48, max_size=48),
)


@given(proofs, st.randoms(use_true_random=False))
def test_a_proof_comes_back_from_its_headers_in_any_order(proof: Proof, random: object) -> None:
    headers = [*proof.headers(), (b"host", b"x"), (b"content-length", b"1")]
    random.shuffle(headers)  # type: ignore[attr-defined]
    assert Proof.parse(headers) == proof


def test_the_headers_as_they_travel() -> None:
    assert [name for name, _ in HEADERS] == list(PROOF_HEADERS)
    assert [value for _, value in HEADERS[:3]] == [b"agent-7", b"3", b"1000000"]
    assert HEADERS[3][1] == b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    assert len(HEADERS[4][1]) == 64


@pytest.mark.parametrize("at", range(5))
def test_each_header_comes_exactly_once(at: int) -> None:
    for headers in (
        HEADERS[:at] + HEADERS[at + 1 :],
        [*HEADERS, HEADERS[at]],
        [HEADERS[at], *HEADERS],
        [*HEADERS[:at], (HEADERS[at][0] + b"s", HEADERS[at][1]), *HEADERS[at + 1 :]],
        [*HEADERS, (b"tabwarden-extra", b"1")],
        [],
    ):
        with pytest.raises(MalformedError, match="proof headers"):
            Proof.parse(headers)


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (0, b"", "principal id"),
        (0, b"agent 7", "principal id"),
        (0, b"-agent", "principal id"),
        (0, b"x" * 65, "principal id"),
        (0, b"agent-7\n", "principal id"),
        (0, "agent\u00e9".encode(), "proof headers"),
        (0, b"\xff", "proof headers"),
        (1, b"", "decimal"),
        (1, b"03", "decimal"),
        (1, b"+3", "decimal"),
        (1, b"-3", "decimal"),
        (1, b"3 ", "decimal"),
        (1, b"9223372036854775808", "decimal"),
        (2, b"1e6", "decimal"),
        (2, b"1000000.0", "decimal"),
        (2, b"01000000", "decimal"),
        (2, b"9223372036854775808", "decimal"),
        (3, b"", "base64url"),
        (3, HEADERS[3][1][:-1], "base64url"),
        (3, HEADERS[3][1] + b"A", "base64url"),
        (3, HEADERS[3][1] + b"=", "base64url"),
        (3, HEADERS[3][1][:-1] + b"9", "base64url"),
        (3, b"+" + HEADERS[3][1][1:], "base64url"),
        (3, b"\xe9" * 43, "base64url"),
        (4, b"", "base64url"),
        (4, HEADERS[4][1][:-1], "base64url"),
        (4, HEADERS[4][1] + b"A", "base64url"),
        (4, base64url(bytes(32)).encode(), "base64url"),
        (4, b"!" * 64, "base64url"),
        (4, b"\xff" * 64, "base64url"),
    ],
)
def test_a_header_in_another_spelling_is_refused(at: int, value: bytes, why: str) -> None:
    headers = [*HEADERS[:at], (HEADERS[at][0], value), *HEADERS[at + 1 :]]
    with pytest.raises(MalformedError) as caught:
        Proof.parse(headers)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    "fields",
    [
        ("agent 7", 3, 1, bytes(32), bytes(48)),
        ("agent-7", 3, 1, bytes(31), bytes(48)),
        ("agent-7", 3, 1, bytes(33), bytes(48)),
        ("agent-7", 3, 1, bytes(32), bytes(47)),
        ("agent-7", 3, 1, bytes(32), bytes(49)),
    ],
)
def test_a_proof_is_checked_when_it_is_built(fields: tuple[object, ...]) -> None:
    with pytest.raises(MalformedError):
        Proof(*fields)  # type: ignore[arg-type]


M1 = (L_CHALLENGE_REQUEST, METHOD, CHALLENGE_ROUTE, b"i" * 32, "agent-7", 3, 5, bytes(32), b"body")


def test_a_mac_covers_every_field() -> None:
    others = (L_AGENT_REQUEST_MAC, b"GET", AGENT_ROUTE, b"j" * 32, "agent-8", 4, 6, b"n" * 32, b"bodY")
    inputs = [mac_input(*M1)]
    for at, other in enumerate(others):
        inputs.append(mac_input(*(*M1[:at], other, *M1[at + 1 :])))  # type: ignore[arg-type]
    assert len(set(inputs)) == 10
    # Generation and timestamp are not exchangeable, nor are method and route.
    assert mac_input(*M1[:5], 5, 3, *M1[7:]) != inputs[0]
    for first, second in combinations(inputs, 2):
        assert hmac_sha384(b"k", first) != hmac_sha384(b"k", second)


def test_the_mac_input_names_what_it_covers() -> None:
    fields = parse_pae(L_CHALLENGE_REQUEST, 8, mac_input(*M1))
    assert fields == [
        b"POST",
        b"/v1/challenge",
        b"i" * 32,
        b"agent-7",
        (3).to_bytes(8),
        (5).to_bytes(8),
        bytes(32),
        sha384(b"body"),
    ]


def test_the_body_of_m1_names_the_request_it_is_for() -> None:
    assert challenge_body() == challenge_body(b"POST", b"/v1/agent")
    assert challenge_body(b"POST", b"/v1/agenT") != challenge_body()
    assert len(challenge_body()) <= 256
