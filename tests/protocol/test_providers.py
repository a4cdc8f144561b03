"""What every post-quantum provider must do, run over those present; and how one is chosen."""

import ctypes.util
import sys
from itertools import product
from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.limits import (
    MLDSA_PUBLIC_BYTES,
    MLDSA_SIGNATURE_BYTES,
    MLKEM_CIPHERTEXT_BYTES,
    MLKEM_PUBLIC_BYTES,
)
from tabwarden.protocol.primitives import (
    NativeProvider,
    OqsProvider,
    PqProvider,
    check_kem_public,
)
from tabwarden.providers import load_provider

from tests.protocol.corpus import unreduced_kem_keys
from tests.protocol.present import PROVIDERS

Q = 3329
PAIRS = list(product(PROVIDERS, PROVIDERS))


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> PqProvider:
    return PROVIDERS[request.param]


def with_coefficient(public: bytes, index: int, value: int) -> bytes:
    """An ML-KEM key whose coefficient at `index` is `value` (twelve bits, little-endian)."""
    packed = int.from_bytes(public[:-32], "little")
    packed = packed & ~(0xFFF << 12 * index) | value << 12 * index
    return packed.to_bytes(MLKEM_PUBLIC_BYTES - 32, "little") + public[-32:]


@pytest.mark.parametrize(("holder", "sender"), PAIRS)
def test_both_ends_of_a_kem_agree(holder: str, sender: str) -> None:
    key = PROVIDERS[holder].kem_key()
    assert len(key.public) == MLKEM_PUBLIC_BYTES
    ciphertext, secret = PROVIDERS[sender].encapsulate(key.public)
    assert (len(ciphertext), len(secret)) == (MLKEM_CIPHERTEXT_BYTES, 32)
    assert key.decapsulate(ciphertext) == secret


def test_kem_keys_and_secrets_are_fresh(provider: PqProvider) -> None:
    one, other = provider.kem_key(), provider.kem_key()
    assert one.public != other.public
    (first, secret), (second, another) = provider.encapsulate(one.public), provider.encapsulate(one.public)
    assert first != second
    assert secret != another
    assert other.decapsulate(first) != secret


def test_a_forged_ciphertext_gives_an_unrelated_secret(provider: PqProvider) -> None:
    """Implicit rejection (FIPS 203 section 6.3): no error that would tell a forger anything."""
    key = provider.kem_key()
    ciphertext, secret = provider.encapsulate(key.public)
    for at in (0, 700, MLKEM_CIPHERTEXT_BYTES - 1):
        forged = bytearray(ciphertext)
        forged[at] ^= 1
        wrong = key.decapsulate(bytes(forged))
        assert len(wrong) == 32
        assert wrong != secret
        assert key.decapsulate(bytes(forged)) == wrong
    assert len(key.decapsulate(bytes(MLKEM_CIPHERTEXT_BYTES))) == 32


@pytest.mark.parametrize("length", [0, 1, 32, 1088, 1567, 1569, 3136])
def test_a_kem_value_of_another_length_is_refused(provider: PqProvider, length: int) -> None:
    with pytest.raises(MalformedError):
        provider.kem_key().decapsulate(bytes(length))
    with pytest.raises(MalformedError):
        provider.encapsulate(bytes(length))
    with pytest.raises(MalformedError):
        check_kem_public(bytes(length))


@pytest.mark.parametrize("index", [0, 1, 2, 255, 256, 511, 1022, 1023])
def test_an_unreduced_kem_key_is_refused(provider: PqProvider, index: int) -> None:
    """FIPS 203 section 7.2: q - 1 is the last coefficient that passes."""
    public = provider.kem_key().public
    provider.encapsulate(with_coefficient(public, index, Q - 1))
    check_kem_public(with_coefficient(public, index, Q - 1))
    for value in (Q, Q + 1, 0xFFF):
        with pytest.raises(MalformedError, match="ml-kem key"):
            provider.encapsulate(with_coefficient(public, index, value))
        with pytest.raises(MalformedError, match="ml-kem key"):
            check_kem_public(with_coefficient(public, index, value))


def test_the_published_unreduced_kem_keys_are_refused(provider: PqProvider) -> None:
    keys = unreduced_kem_keys()
    assert len(keys) in (0, 1040)
    for public in keys:
        with pytest.raises(MalformedError):
            provider.encapsulate(public)


def test_the_published_unreduced_kem_keys_fail_our_own_check() -> None:
    for public in unreduced_kem_keys():
        with pytest.raises(MalformedError):
            check_kem_public(public)


@pytest.mark.parametrize(("maker", "judge"), PAIRS)
@pytest.mark.parametrize("context", [b"", b"c", b"x" * 255])
@pytest.mark.parametrize("data", [b"", b"m", b"m" * 5000])
def test_a_signature_verifies(maker: str, judge: str, context: bytes, data: bytes) -> None:
    signer = PROVIDERS[maker].signer()
    signature = signer.sign(data, context)
    assert (len(signer.public), len(signature)) == (MLDSA_PUBLIC_BYTES, MLDSA_SIGNATURE_BYTES)
    assert PROVIDERS[judge].verify(signer.public, signature, data, context) is True


def test_a_signature_is_for_one_message_one_context_and_one_key(provider: PqProvider) -> None:
    signer = provider.signer()
    signature = signer.sign(b"message", b"context")
    verify = provider.verify
    assert verify(signer.public, signature, b"message", b"context") is True
    assert verify(signer.public, signature, b"messagE", b"context") is False
    assert verify(signer.public, signature, b"", b"context") is False
    for context in (b"", b"contexT", b"contex", b"context\x00", b"x" * 255, b"x" * 256):
        assert verify(signer.public, signature, b"message", context) is False
    # The context and the message are not simply joined.
    assert verify(signer.public, signature, b"tmessage", b"contex") is False
    assert verify(signer.public, signature, b"essage", b"contextm") is False
    assert verify(provider.signer().public, signature, b"message", b"context") is False


@pytest.mark.parametrize("at", [0, 63, 64, 2000, 4543, 4544, 4600, 4619, 4626])
def test_a_changed_signature_does_not_verify(provider: PqProvider, at: int) -> None:
    """The challenge, the responses, the hints and their counts."""
    signer = provider.signer()
    signature = bytearray(signer.sign(b"m", b"c"))
    for bit in (1, 128):
        signature[at] ^= bit
        assert provider.verify(signer.public, bytes(signature), b"m", b"c") is False
        signature[at] ^= bit


def test_a_signature_or_key_of_another_length_does_not_verify(provider: PqProvider) -> None:
    signer = provider.signer()
    public, signature = signer.public, signer.sign(b"m", b"c")
    for other in (b"", signature[:-1], signature + b"\x00", signature[:64], bytes(MLDSA_SIGNATURE_BYTES)):
        assert provider.verify(public, other, b"m", b"c") is False
    for other in (b"", public[:-1], public + b"\x00", public[:32], bytes(MLDSA_PUBLIC_BYTES)):
        assert provider.verify(other, signature, b"m", b"c") is False


def test_many_keys_are_made_and_dropped(provider: PqProvider) -> None:
    """A native key is freed with its object, also when it was never used."""
    for _ in range(50):
        provider.kem_key()
    provider.signer()


def test_seeds_are_for_vectors_and_have_one_length() -> None:
    native = NativeProvider()
    assert native.kem_key(bytes(64)).public == native.kem_key(bytes(64)).public
    assert native.signer(bytes(32)).public == native.signer(bytes(32)).public
    for length in (0, 32, 63, 65):
        with pytest.raises(MalformedError):
            native.kem_key(bytes(length))


# ---- choosing one ------------------------------------------------------------------------------------


def test_the_default_is_cryptography() -> None:
    assert load_provider().name == "cryptography"
    assert type(load_provider("cryptography")) is NativeProvider


@pytest.mark.parametrize("name", ["", "OQS", "liboqs", "oqs ", "os", "Cryptography"])
def test_an_unknown_provider_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="use cryptography or oqs") as caught:
        load_provider(name)
    assert repr(name) in str(caught.value)


@pytest.fixture
def no_liboqs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without liboqs, and an `oqs` module that says when it is imported."""
    (tmp_path / "oqs.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "oqs"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    monkeypatch.setenv("OQS_INSTALL_PATH", str(tmp_path / "oqs-home"))
    return tmp_path / "oqs-home"


def refused_without_import(home: Path) -> None:
    before = sorted(home.parent.rglob("*"))
    with pytest.raises(ConfigurationError, match="needs the liboqs shared library, which is not installed"):
        load_provider("oqs")
    assert "oqs" not in sys.modules
    assert sorted(home.parent.rglob("*")) == before


def test_oqs_without_its_library_says_so_and_imports_nothing(no_liboqs: Path) -> None:
    refused_without_import(no_liboqs)


@pytest.mark.parametrize("content", [b"", b"not a library"])
@pytest.mark.parametrize("folder", ["lib", "lib64", "bin"])
def test_a_library_that_does_not_load_counts_as_absent(no_liboqs: Path, folder: str, content: bytes) -> None:
    """liboqs-python would answer it by building another one."""
    (no_liboqs / folder).mkdir(parents=True)
    for name in ("liboqs.so", "liboqs.dylib", "oqs.dll", "liboqs.dll"):
        (no_liboqs / folder / name).write_bytes(content)
    refused_without_import(no_liboqs)


def test_an_empty_install_path_means_what_it_means_to_liboqs_python(
    no_liboqs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look below the working directory and not in the home folder, and then build."""
    monkeypatch.setenv("OQS_INSTALL_PATH", "")
    monkeypatch.chdir(no_liboqs.parent)
    refused_without_import(no_liboqs)


def test_oqs_without_its_python_package_names_the_extra(
    no_liboqs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Any library that loads will do: only finding it is at stake.
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None if name != "oqs" else "libc.so.6")
    monkeypatch.setitem(sys.modules, "oqs", None)
    with pytest.raises(ConfigurationError, match=r"tabwarden\[oqs\]"):
        load_provider("oqs")


@pytest.mark.parametrize(
    ("kems", "signatures"), [(("ML-KEM-1024",), ("ML-DSA-44",)), (("ML-KEM-768",), ("ML-DSA-87",)), ((), ())]
)
def test_a_liboqs_without_the_algorithms_is_refused(
    kems: tuple[str, ...],
    signatures: tuple[str, ...],
    no_liboqs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what liboqs-python prints when imported does not reach our standard output."""
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None if name != "oqs" else "libc.so.6")
    (no_liboqs.parent / "oqs.py").write_text(
        "print('noise')\n"
        f"def get_enabled_kem_mechanisms(): return {kems!r}\n"
        f"def get_enabled_sig_mechanisms(): return {signatures!r}\n"
    )
    with pytest.raises(ConfigurationError, match="built without"):
        load_provider("oqs")
    assert capsys.readouterr().out == ""


def test_the_oqs_provider_imports_nothing_by_itself() -> None:
    assert OqsProvider(None).name == "oqs"
