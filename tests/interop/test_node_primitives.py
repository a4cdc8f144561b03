"""Post-quantum primitives against two other implementations, each way: liboqs (WebAssembly) and noble."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from tabwarden.errors import MalformedError
from tabwarden.protocol.challenge import L_BATCH
from tabwarden.protocol.primitives import NativeProvider

from tests.interop.node import HERE
from tests.protocol.present import PROVIDERS

OTHERS = ["liboqs", "noble"]
MESSAGE = bytes(range(256)) * 3
Ask = Callable[..., list[dict[str, Any]]]
hexed = bytes.fromhex


@pytest.fixture
def ask(node: str) -> Ask:
    """Ask the other implementations: `(name, operation, *bytes)` each."""

    def run(*questions: tuple[str | bytes, ...]) -> list[dict[str, Any]]:
        encoded = [[part.hex() if isinstance(part, bytes) else part for part in q] for q in questions]
        done = subprocess.run(
            [node, str(HERE / "primitives.mjs")],
            input=json.dumps(encoded),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers

    return run


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("other", OTHERS)
def test_ml_kem_both_ways(ask: Ask, other: str, provider: str) -> None:
    ours = PROVIDERS[provider].kem_key()
    theirs, sent = ask((other, "kemKey"), (other, "encapsulate", ours.public))
    assert ours.decapsulate(hexed(sent["ciphertext"])).hex() == sent["sharedSecret"]
    ciphertext, secret = PROVIDERS[provider].encapsulate(hexed(theirs["publicKey"]))
    forged = bytes([ciphertext[0] ^ 1]) + ciphertext[1:]
    received, rejected, again = ask(
        (other, "decapsulate", ciphertext, hexed(theirs["secretKey"])),
        (other, "decapsulate", forged, hexed(theirs["secretKey"])),
        (other, "decapsulate", forged, hexed(theirs["secretKey"])),
    )
    assert received["sharedSecret"] == secret.hex()
    # Implicit rejection: another secret, the same each time.
    assert rejected["sharedSecret"] != secret.hex()
    assert rejected == again


def test_implicit_rejection_gives_the_same_secret_everywhere(ask: Ask) -> None:
    """All derive it from the same seed (FIPS 203, algorithm 18), here out of an expanded key."""
    key = NativeProvider().kem_key(bytes(64))
    forged = bytes(1568)
    [pair] = ask(("noble", "kemKey", bytes(64)))
    assert hexed(pair["publicKey"]) == key.public
    secret_key = hexed(pair["secretKey"])
    answers = ask(*((other, "decapsulate", forged, secret_key) for other in OTHERS))
    assert [answer["sharedSecret"] for answer in answers] == [key.decapsulate(forged).hex()] * 2


@pytest.mark.parametrize("other", OTHERS)
def test_an_unreduced_key_is_refused_everywhere(ask: Ask, other: str) -> None:
    public = b"\x01\x0d" + NativeProvider().kem_key(bytes(64)).public[2:]  # 0xd01 is q
    [answer] = ask((other, "encapsulate", public))
    assert "error" in answer
    for provider in PROVIDERS.values():
        with pytest.raises(MalformedError):
            provider.encapsulate(public)


# liboqs-js gives no access to contexts, so there it is the empty one.
CONTEXTS = [("liboqs", b""), ("noble", b""), ("noble", L_BATCH), ("noble", b"x" * 255)]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("other", "context"), CONTEXTS, ids=["liboqs", "noble", "noble-label", "noble-255"])
def test_ml_dsa_both_ways(ask: Ask, other: str, context: bytes, provider: str) -> None:
    signer, verify = PROVIDERS[provider].signer(), PROVIDERS[provider].verify
    ours = signer.sign(MESSAGE, context)
    pair, good, bad, changed = ask(
        (other, "signer"),
        (other, "verify", ours, MESSAGE, signer.public, context),
        (other, "verify", ours, MESSAGE + b"x", signer.public, context),
        (other, "verify", bytes([ours[0] ^ 1]) + ours[1:], MESSAGE, signer.public, context),
    )
    assert (good["good"], bad["good"], changed["good"]) == (True, False, False)
    [signed] = ask((other, "sign", MESSAGE, hexed(pair["secretKey"]), context))
    public, theirs = hexed(pair["publicKey"]), hexed(signed["signature"])
    assert verify(public, theirs, MESSAGE, context) is True
    assert verify(public, theirs, MESSAGE, context + b"y" if len(context) < 255 else b"") is False
    assert verify(public, theirs, MESSAGE[:-1], context) is False


def test_a_signature_under_a_context_is_none_without_it_to_liboqs(ask: Ask) -> None:
    signer = NativeProvider().signer()
    with_context, without = signer.sign(MESSAGE, L_BATCH), signer.sign(MESSAGE, b"")
    answers = ask(
        ("liboqs", "verify", with_context, MESSAGE, signer.public, b""),
        ("liboqs", "verify", without, MESSAGE, signer.public, b""),
        ("noble", "verify", with_context, MESSAGE, signer.public, b""),
        ("noble", "verify", with_context, MESSAGE, signer.public, L_BATCH),
    )
    assert [answer["good"] for answer in answers] == [False, True, False, True]


def test_keys_from_a_seed_are_the_same(ask: Ask) -> None:
    kem, dsa = ask(("noble", "kemKey", bytes(64)), ("noble", "signer", bytes(32)))
    assert hexed(kem["publicKey"]) == NativeProvider().kem_key(bytes(64)).public
    assert hexed(dsa["publicKey"]) == NativeProvider().signer(bytes(32)).public
