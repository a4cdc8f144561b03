"""A descriptor's place on disk may hold anything: one message that names the file and what is wrong in it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden_adapters.credentials import (
    DescriptorStore,
    KeyFileProtector,
    PrincipalStore,
    load_descriptor,
)
from tabwarden_adapters.credentials.descriptor_json import (
    descriptor_to_json,
    envelope_to_json,
    protection_context,
)
from tabwarden_adapters.credentials.store import descriptor_file_name

from tests.credentials.test_store import DESCRIPTOR, TOKEN_TEXTS
from tests.support.places import PRIVATE, Place, directory, sparse

NONE = "the file is not a connection descriptor: pair again"
UNKNOWN = "the descriptor has an unknown format: pair again with this version"
TWICE = "the descriptor has a member twice: pair again"

CONTENTS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("empty", lambda good: b"", NONE),
    ("truncated", lambda good: good[: len(good) // 2], NONE),
    ("not UTF-8", lambda good: good.replace(b"format", b"form\xff", 1).replace(b"token", b"t\xff"), NONE),
    ("UTF-16", lambda good: good.decode().encode("utf-16"), NONE),
    ("BOM", lambda good: b"\xef\xbb\xbf" + good, NONE),
    ("zeros", lambda good: bytes(2048), NONE),
    ("twice", lambda good: good + good, NONE),
    ("array", lambda good: b"[" + good + b"]", NONE),
    ("null", lambda good: b"null", NONE),
    ("deep", lambda good: b"[" * 8000, NONE),
    ("key twice", lambda good: good.replace(b"{", b'{"protocol":"x",', 1), TWICE),
    ("NaN", lambda good: good.replace(b"{", b'{"more":NaN,', 1), UNKNOWN),
    ("huge number", lambda good: good.replace(b"{", b'{"more":%s,' % (b"9" * 5000), 1), NONE),
    ("more", lambda good: good.replace(b"{", b'{"more":1,', 1), UNKNOWN),
    ("nothing in it", lambda good: b"{}", UNKNOWN),
]
contents = pytest.mark.parametrize(
    ("change", "message"), [pytest.param(*rest, id=name) for name, *rest in CONTENTS]
)
WRONG = (None, 1.5, True, [], {}, ["x"])


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def store(tmp_path: Path, keys: Path) -> DescriptorStore:
    made = DescriptorStore(tmp_path / "room" / "agent.json", KeyFileProtector(keys))
    made.write(DESCRIPTOR)
    return made


def refusal(path: Path, keys: Path) -> str:
    """What loading it says: with its name, in one line, and without the token."""
    with pytest.raises(DescriptorError) as caught:
        load_descriptor(path, key_directory=keys)
    said = str(caught.value)
    assert path.name in said
    assert "\n" not in said
    assert not any(secret in said for secret in TOKEN_TEXTS)
    return said


def usable_again(store: DescriptorStore, keys: Path) -> None:
    """What was there did not matter to the next pairing."""
    store.write(replace(DESCRIPTOR, generation=4))
    assert load_descriptor(store.path, key_directory=keys).generation == 4


def seal(store: DescriptorStore, keys: Path, plain: bytes) -> None:
    """Put something in the descriptor's place that the right key sealed."""
    context = protection_context(DESCRIPTOR.protocol)
    protector = KeyFileProtector(keys)
    data = envelope_to_json(protector.format, DESCRIPTOR.protocol, protector.protect(plain, context))
    store.path.write_bytes(data)


@contents
def test_a_descriptor_file_with_other_contents(
    store: DescriptorStore, keys: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    spoilt = change(store.path.read_bytes())
    store.path.write_bytes(spoilt)
    assert refusal(store.path, keys) == f"{store.path}: {message}"
    assert not store.remove()
    assert store.path.read_bytes() == spoilt
    usable_again(store, keys)


@contents
def test_a_sealed_descriptor_with_other_contents(
    store: DescriptorStore, keys: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    seal(store, keys, change(descriptor_to_json(DESCRIPTOR)))
    assert refusal(store.path, keys) == f"{store.path}: {message}"


@pytest.mark.parametrize("field", ["format", "protocol", "sealed"])
def test_a_descriptor_file_with_another_type(store: DescriptorStore, keys: Path, field: str) -> None:
    good = json.loads(store.path.read_bytes())
    for value in (*WRONG, 1):
        store.path.write_text(json.dumps({**good, field: value}))
        assert f"damaged ({field}): pair again" in refusal(store.path, keys)
    store.path.write_text(json.dumps({name: good[name] for name in good if name != field}))
    assert UNKNOWN in refusal(store.path, keys)


@pytest.mark.parametrize("field", list(json.loads(descriptor_to_json(DESCRIPTOR))))
def test_a_sealed_descriptor_with_another_type(store: DescriptorStore, keys: Path, field: str) -> None:
    good: dict[str, Any] = json.loads(descriptor_to_json(DESCRIPTOR))
    for value in WRONG[1:] if field == "expires_at_ms" else WRONG:
        seal(store, keys, json.dumps({**good, field: value}).encode())
        assert f"damaged ({field}): pair again" in refusal(store.path, keys)
    seal(store, keys, json.dumps({name: good[name] for name in good if name != field}).encode())
    assert UNKNOWN in refusal(store.path, keys)


PLACES = {**PRIVATE, sparse: "is too large for a descriptor: pair again"}
places = pytest.mark.parametrize(("make", "message"), PLACES.items())


@places
def test_a_descriptor_that_is_no_file(store: DescriptorStore, keys: Path, make: Place, message: str) -> None:
    store.path.unlink()
    make(store.path)
    assert message in refusal(store.path, keys)
    if make is not directory:
        usable_again(store, keys)


@places
def test_a_key_that_is_no_file(store: DescriptorStore, keys: Path, make: Place, message: str) -> None:
    key = keys / "descriptor.key"
    key.unlink()
    make(key)
    before = store.path.read_bytes()
    for attempt in (
        lambda: load_descriptor(store.path, key_directory=keys),
        lambda: store.write(replace(DESCRIPTOR, generation=4)),
    ):
        with pytest.raises(DescriptorError) as caught:
            attempt()
        said = str(caught.value)
        assert (message if make is not sparse else "is not a key of ours: remove it") in said
        assert "descriptor.key" in said
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("size", [0, 1, 31])
def test_a_key_that_was_not_written_whole_is_made_anew(store: DescriptorStore, keys: Path, size: int) -> None:
    """Nothing was ever sealed with it. What was sealed with another one is refused, and written anew."""
    (keys / "descriptor.key").write_bytes(bytes(size))
    assert "there is no key in" in refusal(store.path, keys)
    usable_again(store, keys)


# ---- the folder of issued principals --------------------------------------------------------------


@places
def test_a_lock_that_is_no_file(tmp_path: Path, keys: Path, make: Place, message: str) -> None:
    folder = tmp_path / "agents"
    folder.mkdir(mode=0o700)
    (folder / descriptor_file_name("other", 1)).write_text("of a broker before")
    make(folder / "principals.lock")
    if make is sparse:
        return PrincipalStore(folder, KeyFileProtector(keys)).close()
    with pytest.raises(ConfigurationError) as caught:
        PrincipalStore(folder, KeyFileProtector(keys))
    assert message in str(caught.value)
    assert "principals.lock" in str(caught.value)
    # Without the lock nothing there is touched.
    assert (folder / descriptor_file_name("other", 1)).exists()
    return None


@places
def test_what_is_at_a_principals_place(tmp_path: Path, keys: Path, make: Place, message: str) -> None:
    """Left there by whatever was before: it goes, or the folder is not used. It is never read or followed."""
    folder = tmp_path / "agents"
    folder.mkdir(mode=0o700)
    path = folder / descriptor_file_name("agent", 3)
    make(path)
    if make is directory:
        with pytest.raises(ConfigurationError, match=r"cannot use the folder .*agents: Is a directory"):
            PrincipalStore(folder, KeyFileProtector(keys))
        return
    principals = PrincipalStore(folder, KeyFileProtector(keys))
    assert not path.is_symlink()
    assert not path.exists()
    make(path)
    principals.write(DESCRIPTOR)
    assert load_descriptor(path, key_directory=keys) == DESCRIPTOR
    principals.close()
