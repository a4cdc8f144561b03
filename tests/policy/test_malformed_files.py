"""Files of a policy that are no such files: whatever is at their place, one message, and all stays as it was.

What documents and signatures may say wrongly is in `test_malformed`; here is what a disk may hold instead.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.cli import policy_work
from tabwarden_adapters.credentials import KeyFileProtector
from tabwarden_adapters.policy import (
    MAX_ENVELOPE_BYTES,
    StateFile,
    read_private_file,
    read_private_keys,
    read_public_file,
    read_public_keys,
    write_public_keys,
)
from tabwarden_adapters.policy.keys import new_private_keys
from tabwarden_adapters.policy.reading import MAX_DOCUMENT_BYTES

from tests.policy.signed_support import HELPER, KEYS, Device, rule, signed
from tests.policy.test_malformed import _edit, _resealed
from tests.support.places import PRIVATE, PUBLIC, Place, sparse

STRICT = "is not strict UTF-8 JSON"

CONTENTS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("empty", lambda good: b"", STRICT),
    ("one byte", lambda good: b"{", STRICT),
    ("truncated", lambda good: good[: len(good) // 2], STRICT),
    ("without its last brace", lambda good: good.rstrip()[:-1], STRICT),
    ("not UTF-8", lambda good: good.replace(b"format", b"form\xffat", 1), STRICT),
    ("UTF-16", lambda good: good.decode().encode("utf-16"), STRICT),
    ("BOM", lambda good: b"\xef\xbb\xbf" + good, STRICT),
    ("zeros", lambda good: bytes(4096), STRICT),
    ("a zero behind", lambda good: good + b"\0", STRICT),
    ("twice", lambda good: good + good, f"{STRICT} (trailing bytes)"),
    ("key twice", lambda good: good.replace(b"{", b'{"format": "x", ', 1), f"{STRICT} (duplicate key)"),
    ("NaN", lambda good: good.replace(b"{", b'{"more": NaN, ', 1), f"{STRICT} (not a number)"),
    ("Infinity", lambda good: good.replace(b"{", b'{"more": -Infinity, ', 1), f"{STRICT} (not a number)"),
    ("huge number", lambda good: good.replace(b"{", b'{"more": %s, ' % (b"9" * 5000), 1), "(number range)"),
    ("huge exponent", lambda good: good.replace(b"{", b'{"more": 1e999, ', 1), f"{STRICT} (number range)"),
    ("deep", lambda good: good.replace(b"{", b'{"more": ' + b"[" * 90 + b"]" * 90 + b", ", 1), "(depth)"),
    ("lone surrogate", lambda good: good.replace(b"{", b'{"more": "\\ud800", ', 1), STRICT),
    ("more", lambda good: good.replace(b"{", b'{"more": 1, ', 1), "more: there is no such field"),
    ("in an array", lambda good: b"[" + good + b"]", "expected object, got array"),
    ("null", lambda good: b"null", "expected object, got null"),
]  # fmt: skip
contents = pytest.mark.parametrize(
    ("change", "message"), [pytest.param(*rest, id=name) for name, *rest in CONTENTS]
)


public_places = pytest.mark.parametrize(("make", "message"), PUBLIC.items())
private_places = pytest.mark.parametrize(("make", "message"), {**PRIVATE, sparse: "is larger than"}.items())

WRONG = (None, 1, 1.5, True, [], {}, ["x"])


FIVE, SIX = signed(), signed(version=6)


@pytest.fixture
def current(tmp_path: Path) -> Device:
    """A device with version 5 in force."""
    one = Device(tmp_path)
    one.file.write_bytes(FIVE)
    assert one.policy.load().kind == "taken"
    return one


def stands(current: Device, before: object, message: str) -> None:
    """A reload says what is wrong, once, and what was in force and remembered still is."""
    told = len(current.reports)

    async def look() -> None:
        report = await current.policy.reload()
        assert (report.kind, report.version) == ("refused", 5)
        assert str(current.file) in report.message
        assert message in report.message
        assert "version 5 stays in force until it expires" in report.message
        assert "\n" not in report.message
        assert await rule(current, HELPER, "read") == "grant:helper"

    trio.run(look)
    assert len(current.reports) == told + 1
    assert current.state.load() == before


# ---- the signed policy ----------------------------------------------------------------------------


@contents
def test_a_signed_policy_with_other_contents(
    current: Device, change: Callable[[bytes], bytes], message: str
) -> None:
    before = current.state.load()
    current.file.write_bytes(change(SIX))
    stands(current, before, message)


@public_places
def test_a_signed_policy_that_is_no_file(current: Device, make: Place, message: str) -> None:
    before = current.state.load()
    current.file.unlink()
    make(current.file)
    stands(current, before, message)


@pytest.mark.parametrize("field", ["format", "keys", "document", "ed25519", "mlDsa87"])
def test_a_signed_policy_with_another_type(current: Device, field: str) -> None:
    before, good = current.state.load(), json.loads(SIX)
    for value in WRONG:
        current.file.write_text(json.dumps({**good, field: value}))
        stands(current, before, f"{field}: expected str, got ")


def test_a_signed_policy_that_is_too_large(current: Device) -> None:
    before = current.state.load()
    current.file.write_bytes(SIX + b" " * MAX_ENVELOPE_BYTES)
    stands(current, before, "is larger than")


def test_a_signed_policy_may_be_a_link_to_one(current: Device) -> None:
    """What is in it is signed: whose name leads there does not matter."""
    elsewhere = current.file.with_name("elsewhere")
    elsewhere.write_bytes(SIX)
    current.file.unlink()
    current.file.symlink_to(elsewhere)
    assert current.policy.load().version == 6


# ---- what the device remembers --------------------------------------------------------------------


def unusable(current: Device, message: str) -> None:
    """The state cannot be read: nothing new comes in, nothing is written, and a restart allows nothing."""
    with pytest.raises(ConfigurationError) as caught:
        current.state.load()
    said = str(caught.value)
    assert message in said
    assert str(current.state.path) in said
    assert "\n" not in said
    current.file.write_bytes(SIX)

    async def look() -> None:
        report = await current.policy.reload()
        assert (report.kind, report.version) == ("refused", 5)
        assert await rule(current, HELPER, "read") == "grant:helper"
        with pytest.raises(ConfigurationError):
            current.start().load()
        assert await rule(current, HELPER, "read") == "policy.none"

    trio.run(look)
    assert not [
        name for name in os.listdir(current.folder) if name.startswith(".state.json.") and "lock" not in name
    ]


@contents
def test_a_state_with_other_contents(current: Device, change: Callable[[bytes], bytes], message: str) -> None:
    spoilt = change(current.state.path.read_bytes())
    current.state.path.write_bytes(spoilt)
    unusable(current, message)
    assert current.state.path.read_bytes() == spoilt


@contents
def test_a_sealed_state_with_other_contents(
    current: Device, change: Callable[[bytes], bytes], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealed by the right key: whoever has it is still held to the form."""
    protect = KeyFileProtector.protect

    def other(self: KeyFileProtector, plain: bytes, context: bytes) -> bytes:
        return protect(self, change(plain.replace(b'{"keys"', b'{"format": 1, "keys"')), context)

    with monkeypatch.context() as patched:
        patched.setattr(KeyFileProtector, "protect", other)
        current.file.write_bytes(SIX)
        current.policy.load()
    with pytest.raises(ConfigurationError) as caught:
        current.state.load()
    assert str(current.state.path) in str(caught.value)
    assert "tabwarden policy enrol" in str(caught.value)


@private_places
def test_a_state_that_is_no_file(current: Device, make: Place, message: str) -> None:
    current.state.path.unlink()
    make(current.state.path)
    unusable(current, message)


@pytest.mark.parametrize("field", ["format", "protection", "sealed"])
def test_a_state_with_another_type(current: Device, field: str) -> None:
    good = current.state.path.read_bytes()
    for value in WRONG:
        current.state.path.write_bytes(good)
        _edit(current.state, field, value)
        with pytest.raises(ConfigurationError, match=f"{field}: expected str, got "):
            current.state.load()


@pytest.mark.parametrize("field", ["keys", "nextKeys", "version", "digest", "generations", "wallMs"])
def test_a_sealed_state_with_another_type(current: Device, field: str) -> None:
    good = current.state.path.read_bytes()
    for value in (1.5, "x" * 65, True, [], -1, 2**60):
        current.state.path.write_bytes(good)
        _resealed(current.state, lambda plain, value=value: plain.update({field: value}))
        with pytest.raises(ConfigurationError, match=rf"{field}|\(number range\)"):
            current.state.load()


# ---- keys -----------------------------------------------------------------------------------------


def enrolled_with(path: Path, tmp_path: Path) -> str:
    """What `tabwarden policy enrol` says; nothing may have been pinned."""
    folder = tmp_path / "new-device"
    with pytest.raises(ConfigurationError) as caught:
        policy_work.enrol(path, folder, "key-file", 1)
    assert not (folder / policy_work.STATE_NAME).exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@contents
def test_public_keys_with_other_contents(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(change(write_public_keys(KEYS.public)))
    assert message in enrolled_with(path, tmp_path)


@public_places
def test_public_keys_that_are_no_file(tmp_path: Path, make: Place, message: str) -> None:
    path = tmp_path / "keys.json"
    make(path)
    said = enrolled_with(path, tmp_path)
    assert message in said
    assert str(path) in said


@pytest.mark.parametrize("field", ["format", "ed25519", "mlDsa87"])
def test_public_keys_with_another_type(tmp_path: Path, field: str) -> None:
    good = json.loads(write_public_keys(KEYS.public))
    for value in WRONG:
        with pytest.raises(ConfigurationError, match=f"{field}: expected str, got "):
            read_public_keys(json.dumps({**good, field: value}).encode())


@contents
def test_private_keys_with_other_contents(change: Callable[[bytes], bytes], message: str) -> None:
    data, _ = new_private_keys(None)
    with pytest.raises(ConfigurationError) as caught:
        read_private_keys(change(data), None)
    assert message in str(caught.value)
    assert json.loads(data)["seeds"] not in str(caught.value)


@private_places
def test_private_keys_that_are_no_file(tmp_path: Path, make: Place, message: str) -> None:
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    make(folder / "private.json")
    with pytest.raises(ConfigurationError) as caught:
        read_private_file(folder / "private.json", 16 * 1024)
    assert message in str(caught.value)


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("a\0b", "x" * 300):
        with pytest.raises(ConfigurationError, match="cannot read"):
            read_public_file(tmp_path / name, MAX_DOCUMENT_BYTES)


def test_a_state_whose_folder_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    state = StateFile(tmp_path / "file" / "state.json", KeyFileProtector(tmp_path / "keys"))
    with pytest.raises(ConfigurationError, match="is not a folder: choose another place"):
        state.load()
