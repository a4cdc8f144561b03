"""Our own detectors, without the catalogue: what they find and what they leave."""

import base64
import contextlib
import random
from urllib.parse import quote

import pytest
from tabwarden_adapters.dlp.faults import TooManyPlaces, TooSlow

from tests.dlp import samples
from tests.dlp.samples import ANNOUNCED, NUMBERS, SELF_EVIDENT, clean_lines
from tests.dlp.support import found, kinds, parts


@pytest.mark.parametrize("kind", [*SELF_EVIDENT, *ANNOUNCED], ids=repr)
def test_credentials_are_found(kind):
    chosen = random.Random(1)
    for around in samples.AROUND:
        assert kinds(around.format(kind.make(chosen))) >= {"credential"}


@pytest.mark.parametrize("kind", SELF_EVIDENT, ids=repr)
def test_a_whole_credential_is_replaced(kind):
    made = kind.make(random.Random(2))
    places = found(f"a {made} b")
    # Of an address, from what says whose it is, to before what does not open it.
    assert min(one.start for one in places) <= 2 + max(0, made.find("hooks."))
    assert max(one.end for one in places) >= 2 + len(made.partition("@db7")[0])


@pytest.mark.parametrize("kind", NUMBERS, ids=repr)
def test_numbers_are_found_whole(kind):
    chosen = random.Random(3)
    for around in samples.AROUND:
        for _ in range(20):
            made = kind.make(chosen)
            assert made in parts(around.format(made))


def test_numbers_with_a_wrong_digit_are_none():
    chosen = random.Random(4)
    for kind in NUMBERS:
        for _ in range(50):
            made = kind.make(chosen)
            at = len(made) - 1
            wrong = made[:at] + str((int(made[at]) + 1) % 10 if made[at].isdigit() else 1)
            assert wrong not in parts(wrong)


def test_cards_among_other_numbers():
    one = "4111 1111 1111 1111"
    assert parts(f"12 {one} 12 27 123") == [one]
    assert parts(f"{one}\n5500 0000 0000 0004") == [one, "5500 0000 0000 0004"]
    assert parts(f"{one} 5500 0000 0000 0004 4111 1111 1111 1111") == [one, "5500 0000 0000 0004", one]
    row = "1234 4111 1111 1111 1111 5678 9012 3456 7890"
    assert parts(row) == []
    assert parts(f"credit cards: {row}") == [one]
    assert parts("4111\n1111\n1111\n1111") == ["4111\n1111\n1111\n1111"]
    assert parts("0.4111111111111111") == []
    assert parts("ab4111111111111111cdef0123") == []  # within a long hexadecimal number
    assert parts("x4111111111111111y") == ["4111111111111111"]


def test_what_documentation_writes_is_no_credential():
    for text in ("AKIA" + "IOSFODNN7EXAMPLE", "gh" + "p_" + "x" * 36, "https://user:pass@example.org/"):
        assert kinds(text) == set()
    assert kinds("TODAYIN" + "ASIA" + "SACKOFRICEFELLOVER") == set()


def test_names_are_no_secrets():
    for line in (
        'credentialsId: "29f63271-dc2f-4734-8221-5b31b5169bac"',
        'public_key = "9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit"',
        "secret_length = X25519.secret_length",
        "hash_key = hash_key_conditions[0][1] if hash_key_conditions else None",
        "token = get_token(request, 'X-Api-Token-V2', timeout_30)",
        "password: your_password_123",
        "api_key = ${API_KEY_2024}",
        "keyring/credentials.py,sha256=PWFUzeAEX9FqjYonSIST4y6WHqQ2lKceLcvicKSaipY,2092",
    ):
        assert kinds(line) == set(), line


def test_other_spellings():
    token = SELF_EVIDENT[6].make(random.Random(5))
    assert parts(f"https://a.test/?q={quote(token).replace('_', '%5F')}")
    spelt = "".join(f"%{byte:02X}" for byte in token.encode())
    assert kinds(f"x {spelt} y") == {"credential"}
    hidden = base64.b64encode(f'{{"k": "{token}"}}'.encode()).decode()
    assert parts(f"data {hidden} end") == [hidden.rstrip("=")]
    assert kinds(quote(hidden)) == {"credential"}
    assert kinds(f"%zz {token}%") == {"credential"}


def test_a_key_without_its_end_is_one():
    key = samples.private_key(random.Random(6))
    begun = key[: len(key) // 2]
    assert parts(f"a\n{begun}")[0] == begun
    assert kinds(key[len(key) // 2 :]) == {"credential"}


def test_clean_lines_are_clean():
    hits = [line for line in clean_lines(seed=1, count=1200) if found(line)]
    assert len(hits) <= 1200 * 0.005, hits


HOSTILE = [
    "1 " * 100_000,
    "4111 " * 80_000,
    "9" * 400_000,
    "api_key = a1b2c3d4e5f6 " * 17_000,
    "password:" * 40_000,
    "de12 " * 80_000,
    "%41" * 130_000,
    "QUFB" * 100_000,
    "AKIA" * 100_000,
    "https://a:bcd@c " * 25_000,
    "-----BEGIN PRIVATE KEY-----" * 14_000,
    "\u200b" * 400_000,
    "\uff21" * 400_000,
    "eyJ" * 130_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_hostile_text_ends(text):
    """The test's own time limit is what ends one that does not."""
    with contextlib.suppress(TooManyPlaces, TooSlow):
        found(text)


@pytest.mark.parametrize("kind", SELF_EVIDENT, ids=repr)
def test_what_follows_does_not_hide_it(kind):
    """Padding makes a token look like what documentation writes, if it is taken for a part of it."""
    made = kind.make(random.Random(7))
    for padding in ("0" * 200, "x" * 200, "EXAMPLE", "=" * 20):
        assert "credential" in kinds(made + padding)
        assert "credential" in kinds(padding + made)
