"""The primitives against published answers, and what they do with values of the wrong form."""

from itertools import pairwise
from pathlib import Path

import cryptography_vectors
import pytest
from tabwarden.errors import MalformedError
from tabwarden.protocol.primitives import (
    Ed25519Signer,
    NativeProvider,
    X25519Key,
    aead_open,
    aead_seal,
    ed25519_verify,
    equal,
    hkdf_expand,
    hkdf_extract,
    hmac_sha384,
    sha384,
)

from tests.protocol.corpus import packaged_vectors, wycheproof, wycheproof_cases
from tests.protocol.present import PROVIDERS

NATIVE = NativeProvider()
hexed = bytes.fromhex


# ---- hashes, MACs and key derivation -------------------------------------------------------------------


def test_sha384_known_answer() -> None:
    """FIPS 180-4, the message "abc"."""
    assert sha384(b"abc").hex() == (
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    )


def test_hmac_sha384_rfc_4231() -> None:
    records = packaged_vectors("HMAC", "rfc-4231-sha384.txt")
    assert len(records) == 6
    for record in records:
        assert hmac_sha384(hexed(record["Key"]), hexed(record["Msg"])).hex() == record["MD"]


@pytest.mark.parametrize("name", wycheproof("hmac_sha384_test.json"))
def test_hmac_sha384_wycheproof(name: str) -> None:
    for group, test in wycheproof_cases(name):
        mac = hmac_sha384(hexed(test["key"]), hexed(test["msg"]))[: group["tagSize"] // 8]
        assert equal(mac, hexed(test["tag"])) is (test["result"] == "valid"), test["tcId"]


@pytest.mark.parametrize("name", wycheproof("hkdf_sha384_test.json"))
def test_hkdf_sha384_wycheproof(name: str) -> None:
    for _, test in wycheproof_cases(name):
        # An absent salt is a block of zeros (RFC 5869 section 2.2), which HMAC makes of an empty key.
        key = hkdf_extract(hexed(test["salt"]), hexed(test["ikm"]))
        if test["result"] == "valid":
            assert hkdf_expand(key, hexed(test["info"]), test["size"]) == hexed(test["okm"]), test["tcId"]
        else:
            with pytest.raises(ValueError, match="larger than 12240"):
                hkdf_expand(key, hexed(test["info"]), test["size"])


def test_hkdf_expand_is_one_stream() -> None:
    """The short form for one block and the library's form for more must agree."""
    key = sha384(b"key")
    outputs = [hkdf_expand(key, b"info", length) for length in (1, 12, 32, 47, 48, 49, 96, 97, 500)]
    for shorter, longer in pairwise(outputs):
        assert longer.startswith(shorter)
    assert hkdf_expand(key, b"infp", 48) != outputs[4]
    assert hkdf_expand(sha384(b"kez"), b"info", 48) != outputs[4]


def test_equal() -> None:
    assert equal(b"abc", b"abc")
    assert not equal(b"abc", b"abd")
    assert not equal(b"abc", b"ab")
    assert not equal(b"", b"a")


# ---- AES-256-GCM ----------------------------------------------------------------------------------------


def test_aes_gcm_nist() -> None:
    """CAVP: every case with a nonce and a tag of our sizes."""
    seen = {True: 0, False: 0}
    for record in packaged_vectors("ciphers", "AES", "GCM", "gcmDecrypt256.rsp"):
        if (record["IVlen"], record["Taglen"]) != ("96", "128"):
            continue
        sealed = hexed(record["CT"]) + hexed(record["Tag"])
        args = hexed(record["Key"]), hexed(record["IV"]), sealed, hexed(record["AAD"])
        good = "FAIL" not in record
        seen[good] += 1
        if good:
            assert aead_open(*args) == hexed(record["PT"])
            assert aead_seal(args[0], args[1], hexed(record["PT"]), args[3]) == sealed
        else:
            with pytest.raises(MalformedError):
                aead_open(*args)
    assert min(seen.values()) > 100


@pytest.mark.parametrize("name", wycheproof("aes_gcm_test.json"))
def test_aes_gcm_wycheproof(name: str) -> None:
    seen = 0
    for group, test in wycheproof_cases(name):
        if (group["ivSize"], group["keySize"], group["tagSize"]) != (96, 256, 128):
            continue
        seen += 1
        key, nonce, associated = hexed(test["key"]), hexed(test["iv"]), hexed(test["aad"])
        sealed = hexed(test["ct"]) + hexed(test["tag"])
        if test["result"] == "valid":
            assert aead_open(key, nonce, sealed, associated) == hexed(test["msg"]), test["tcId"]
            assert aead_seal(key, nonce, hexed(test["msg"]), associated) == sealed, test["tcId"]
        else:
            with pytest.raises(MalformedError):
                aead_open(key, nonce, sealed, associated)
    assert seen > 50


def test_aes_gcm_notices_every_bit() -> None:
    key, nonce = sha384(b"k")[:32], sha384(b"n")[:12]
    sealed = aead_seal(key, nonce, b"plaintext", b"associated")
    assert aead_open(key, nonce, sealed, b"associated") == b"plaintext"
    for at in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(MalformedError, match="seal"):
            aead_open(key, nonce, bytes(changed), b"associated")
    for associated in (b"", b"associateD", b"associated\x00"):
        with pytest.raises(MalformedError, match="seal"):
            aead_open(key, nonce, sealed, associated)
    for end in range(len(sealed)):
        with pytest.raises(MalformedError, match="seal"):
            aead_open(key, nonce, sealed[:end], b"associated")


# ---- Ed25519 --------------------------------------------------------------------------------------------


def test_ed25519_published_signatures() -> None:
    """The first 256 of the 1,024 answers of the reference implementation."""
    path = Path(cryptography_vectors.__file__).parent / "asymmetric" / "Ed25519" / "sign.input"
    for line in path.read_text().splitlines()[:256]:
        secret, public, message, signed = line.split(":")[:4]
        signer = Ed25519Signer(hexed(secret)[:32])
        assert signer.public.hex() == public
        assert (signer.sign(hexed(message)) + hexed(message)).hex() == signed
        assert ed25519_verify(hexed(public), hexed(signed)[:64], hexed(message)) is True


@pytest.mark.parametrize("name", wycheproof("ed25519_test.json"))
def test_ed25519_wycheproof(name: str) -> None:
    for group, test in wycheproof_cases(name):
        good = ed25519_verify(hexed(group["publicKey"]["pk"]), hexed(test["sig"]), hexed(test["msg"]))
        assert good is (test["result"] == "valid"), test["tcId"]


def test_ed25519_refuses_what_was_changed() -> None:
    signer = Ed25519Signer()
    signature = signer.sign(b"m")
    assert ed25519_verify(signer.public, signature, b"m") is True
    assert ed25519_verify(signer.public, signature, b"n") is False
    assert ed25519_verify(Ed25519Signer().public, signature, b"m") is False
    for at in range(512):
        changed = bytearray(signature)
        changed[at // 8] ^= 1 << at % 8
        assert ed25519_verify(signer.public, bytes(changed), b"m") is False
    for wrong in (b"", signature[:-1], signature + b"\x00", bytes(64), b"\xff" * 64):
        assert ed25519_verify(signer.public, wrong, b"m") is False
    for wrong in (b"", signer.public[:-1], signer.public + b"\x00", b"\xff" * 32):
        assert ed25519_verify(wrong, signature, b"m") is False


def test_ed25519_s_is_reduced() -> None:
    """S + L gives a second valid-looking signature of the same message (RFC 8032 section 5.1.7)."""
    order = 2**252 + 27742317777372353535851937790883648493
    signer = Ed25519Signer(bytes(32))
    signature = signer.sign(b"m")
    s = int.from_bytes(signature[32:], "little") + order
    assert ed25519_verify(signer.public, signature[:32] + s.to_bytes(32, "little"), b"m") is False


# ---- X25519 ---------------------------------------------------------------------------------------------

# Points of low order, with the spellings that are not reduced modulo 2^255 - 19.
LOW_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.mark.parametrize("top_bit", [0, 0x80])
@pytest.mark.parametrize("point", LOW_ORDER)
def test_x25519_refuses_a_point_of_low_order(point: str, top_bit: int) -> None:
    """The top bit is ignored (RFC 7748 section 5), so it must not let one through."""
    public = bytearray(hexed(point))
    public[31] |= top_bit
    with pytest.raises(MalformedError, match="x25519"):
        X25519Key().exchange(bytes(public))


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_x25519_refuses_another_length(length: int) -> None:
    with pytest.raises(MalformedError, match="x25519 length"):
        X25519Key().exchange(b"\x09" + bytes(length - 1) if length else b"")


def test_x25519_rfc_7748() -> None:
    records = packaged_vectors("asymmetric", "X25519", "rfc7748.txt")
    assert len(records) >= 2
    for record in records:
        key = X25519Key(hexed(record["INPUT_SCALAR"]))
        assert key.exchange(hexed(record["INPUT_U"])).hex() == record["OUTPUT_U"]


def test_x25519_both_ends_agree() -> None:
    one, other = X25519Key(), X25519Key()
    assert one.public != other.public
    assert one.exchange(other.public) == other.exchange(one.public)


@pytest.mark.parametrize("name", wycheproof("x25519_test.json"))
def test_x25519_wycheproof(name: str) -> None:
    refused = 0
    for _, test in wycheproof_cases(name):
        key = X25519Key(hexed(test["private"]))
        shared = hexed(test["shared"])
        if any(shared):
            assert key.exchange(hexed(test["public"])) == shared, test["tcId"]
        else:
            refused += 1
            with pytest.raises(MalformedError):
                key.exchange(hexed(test["public"]))
    assert refused > 10


# ---- ML-KEM-1024 ----------------------------------------------------------------------------------------


def test_ml_kem_known_answers() -> None:
    """NIST's answers, with decapsulation of the good and of the rejected ciphertext."""
    for record in packaged_vectors("asymmetric", "MLKEM", "kat_MLKEM_1024.rsp")[:50]:
        key = NATIVE.kem_key(hexed(record["d"]) + hexed(record["z"]))
        assert key.public.hex() == record["pk"]
        assert key.decapsulate(hexed(record["ct"])).hex() == record["ss"]
        assert key.decapsulate(hexed(record["ct_n"])).hex() == record["ss_n"]


@pytest.mark.parametrize("name", wycheproof("mlkem_1024_keygen_seed_test.json"))
def test_ml_kem_key_generation_wycheproof(name: str) -> None:
    for _, test in wycheproof_cases(name):
        assert NATIVE.kem_key(hexed(test["seed"])).public == hexed(test["ek"]), test["tcId"]


@pytest.mark.parametrize("name", wycheproof("mlkem_1024_test.json"))
def test_ml_kem_decapsulation_wycheproof(name: str) -> None:
    for _, test in wycheproof_cases(name):
        if test["result"] == "valid":
            key = NATIVE.kem_key(hexed(test["seed"]))
            assert key.public == hexed(test["ek"]), test["tcId"]
            assert key.decapsulate(hexed(test["c"])) == hexed(test["K"]), test["tcId"]
        else:
            with pytest.raises(MalformedError):
                NATIVE.kem_key(hexed(test["seed"])).decapsulate(hexed(test["c"]))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", wycheproof("mlkem_1024_encaps_test.json"))
def test_ml_kem_encapsulation_key_check_wycheproof(name: str, provider: str) -> None:
    """Encapsulation takes no seed here, so only which keys it accepts is compared."""
    for _, test in wycheproof_cases(name):
        if test["result"] == "valid":
            PROVIDERS[provider].encapsulate(hexed(test["ek"]))
        elif len(test["m"]) == 64:
            with pytest.raises(MalformedError):
                PROVIDERS[provider].encapsulate(hexed(test["ek"]))


# ---- ML-DSA-87 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_ml_dsa_known_answers(provider: str) -> None:
    for record in packaged_vectors("asymmetric", "MLDSA", "kat_MLDSA_87_det_pure.rsp")[:50]:
        public, signature = hexed(record["pk"]), hexed(record["sm"])[:4627]
        assert NATIVE.signer(hexed(record["xi"])).public == public
        verify = PROVIDERS[provider].verify
        assert verify(public, signature, hexed(record["msg"]), hexed(record["ctx"])) is True
        assert verify(public, signature, hexed(record["msg"]), b"") is False


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", wycheproof("mldsa_87_verify_test.json"))
def test_ml_dsa_verification_wycheproof(name: str, provider: str) -> None:
    for group, test in wycheproof_cases(name):
        good = PROVIDERS[provider].verify(
            hexed(group["publicKey"]), hexed(test["sig"]), hexed(test["msg"]), hexed(test.get("ctx", ""))
        )
        assert good is (test["result"] == "valid"), test["tcId"]


@pytest.mark.parametrize("name", wycheproof("mldsa_87_sign_seed_test.json"))
def test_ml_dsa_keys_from_seeds_wycheproof(name: str) -> None:
    """Signing is hedged here, so the recorded signature is verified and a fresh one made beside it."""
    for group, test in wycheproof_cases(name):
        if test["result"] != "valid" or "Internal" in test.get("flags", []):
            continue
        signer = NATIVE.signer(hexed(group["privateSeed"]))
        message, context = hexed(test["msg"]), hexed(test.get("ctx", ""))
        assert signer.public == hexed(group["publicKey"]), test["tcId"]
        assert NATIVE.verify(signer.public, hexed(test["sig"]), message, context), test["tcId"]
        assert NATIVE.verify(signer.public, signer.sign(message, context), message, context)
