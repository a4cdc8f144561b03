"""The descriptor file: stored sealed and whole, loaded with every check."""

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden.model import ConnectionDescriptor
from tabwarden_adapters.credentials import (
    DescriptorStore,
    KeyFileProtector,
    auto_protector,
    default_runtime_dir,
    descriptor_file_name,
    load_descriptor,
)
from tabwarden_adapters.credentials.descriptor_json import (
    descriptor_from_json,
    descriptor_to_json,
    envelope_from_json,
)
from tabwarden_adapters.credentials.selection import KINDS

DESCRIPTOR = ConnectionDescriptor(
    address="127.0.0.1:4711",
    token=bytes(range(32)),
    ed_public=bytes(range(32, 64)),
    pq_public=bytes(range(256)) * 10 + bytes(32),
    instance=bytes(range(64, 96)),
    principal_id="agent",
    generation=3,
    protocol="tabwarden/1",
    expires_at_ms=1_900_000_000_000,
)
TOKEN_TEXTS = (
    base64.urlsafe_b64encode(DESCRIPTOR.token).rstrip(b"=").decode(),
    DESCRIPTOR.token.hex(),
    repr(DESCRIPTOR.token)[2:-1],
)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def store(tmp_path: Path, keys: Path) -> DescriptorStore:
    return DescriptorStore(tmp_path / "room" / "agent.json", KeyFileProtector(keys))


async def test_stored_and_loaded(store: DescriptorStore, keys: Path) -> None:
    await store(DESCRIPTOR)
    assert load_descriptor(store.path, key_directory=keys, protocol="tabwarden/1", now_ms=0) == DESCRIPTOR
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert os.listdir(store.path.parent) == ["agent.json"]
    envelope = json.loads(store.path.read_bytes())
    assert set(envelope) == {"format", "protocol", "sealed"}
    assert envelope["format"] == "key-file-v1"
    assert not any(text in store.path.read_text() for text in TOKEN_TEXTS)


async def test_a_new_descriptor_replaces_the_old_one(store: DescriptorStore, keys: Path) -> None:
    await store(DESCRIPTOR)
    await store(ConnectionDescriptor(**{**_members(), "generation": 4, "expires_at_ms": None}))
    assert load_descriptor(store.path, key_directory=keys, now_ms=2**53).generation == 4
    assert os.listdir(store.path.parent) == ["agent.json"]


def test_a_link_at_its_place_is_replaced_and_not_followed(store: DescriptorStore, tmp_path: Path) -> None:
    store.path.parent.mkdir(mode=0o700)
    store.path.symlink_to(tmp_path / "elsewhere")
    store.write(DESCRIPTOR)
    assert not store.path.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_open_to_others_is_refused(store: DescriptorStore) -> None:
    store.path.parent.mkdir(mode=0o700)
    store.path.parent.chmod(0o755)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        store.write(DESCRIPTOR)
    assert not store.path.exists()


def test_a_failed_store_leaves_the_old_one_and_no_rest(store: DescriptorStore, keys: Path) -> None:
    store.path.mkdir(parents=True, mode=0o700)
    store.path.parent.chmod(0o700)
    with pytest.raises(ConfigurationError, match="cannot write the descriptor"):
        store.write(DESCRIPTOR)
    assert os.listdir(store.path.parent) == ["agent.json"]


class TestRemove:
    def test_removes_what_it_wrote_once(self, store: DescriptorStore) -> None:
        store.write(DESCRIPTOR)
        assert store.remove()
        assert not store.path.exists()
        assert not store.remove()

    def test_keeps_the_file_of_another_broker(self, store: DescriptorStore, keys: Path) -> None:
        store.write(DESCRIPTOR)
        DescriptorStore(store.path, KeyFileProtector(keys)).write(DESCRIPTOR)
        assert not store.remove()
        assert store.path.exists()

    def test_before_anything_was_written(self, store: DescriptorStore) -> None:
        store.path.parent.mkdir(mode=0o700)
        store.path.write_text("x")
        assert not store.remove()
        assert store.path.exists()

    def test_when_somebody_else_removed_it(self, store: DescriptorStore) -> None:
        store.write(DESCRIPTOR)
        store.path.unlink()
        assert not store.remove()


class TestLoad:
    def refusal(self, path: Path, keys: Path, **options: Any) -> str:
        with pytest.raises(DescriptorError) as caught:
            load_descriptor(path, key_directory=keys, **options)
        text = str(caught.value)
        assert not any(secret in text + repr(caught.value) for secret in TOKEN_TEXTS)
        return text

    def test_absent(self, store: DescriptorStore, keys: Path) -> None:
        assert "start the broker" in self.refusal(store.path, keys)

    def test_a_plaintext_descriptor(self, store: DescriptorStore, keys: Path) -> None:
        store.path.parent.mkdir(mode=0o700)
        store.path.write_bytes(descriptor_to_json(DESCRIPTOR))
        store.path.chmod(0o600)
        assert "not protected: delete the file" in self.refusal(store.path, keys)

    @pytest.mark.parametrize("change", ["mode", "link", "hard-link", "fifo", "huge", "owner"])
    def test_a_file_that_is_not_private(
        self, store: DescriptorStore, keys: Path, change: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.write(DESCRIPTOR)
        path = store.path
        match change:
            case "mode":
                path.chmod(0o644)
            case "link":
                path.rename(path.with_name("moved"))
                path.symlink_to("moved")
            case "hard-link":
                path.with_name("copy").hardlink_to(path)
            case "fifo":
                path.unlink()
                os.mkfifo(path, 0o600)
            case "huge":
                os.truncate(path, 2**40)
            case "owner":
                other = os.geteuid() + 54321
                monkeypatch.setattr(os, "geteuid", lambda: other)
        assert path.name in self.refusal(path, keys)

    @pytest.mark.parametrize("name", ["format", "protocol", "sealed"])
    def test_every_member_of_the_envelope_is_bound(
        self, store: DescriptorStore, keys: Path, name: str
    ) -> None:
        store.write(DESCRIPTOR)
        envelope = json.loads(store.path.read_bytes())
        replaced = {"format": "linux-keyring-v1", "protocol": "tabwarden/0", "sealed": "AAAA" * 20}
        store.path.write_text(json.dumps({**envelope, name: replaced[name]}))
        self.refusal(store.path, keys)

    @pytest.mark.parametrize(
        "contents",
        [
            b"",
            b"null",
            b"[]",
            b"{}",
            b"\xff",
            b"[" * 10_000,
            b'{"format":"rot13","protocol":"x","sealed":""}',
            b'{"format":"key-file-v1","protocol":"x","sealed":"", "extra":1}',
            b'{"format":"key-file-v1","format":"key-file-v1","protocol":"x","sealed":""}',
            b'{"format":1,"protocol":"x","sealed":""}',
            b'{"format":"key-file-v1","protocol":"x","sealed":5}',
            b'{"format":"key-file-v1","protocol":"x","sealed":"A"}',
            b'{"format":"key-file-v1","protocol":"x","sealed":"QUI="}',
            b'{"format":"key-file-v1","protocol":"x","sealed":"+/+/"}',
            b'{"format":"key-file-v1","protocol":"x","sealed":"QUJ"}',
            b'{"format":"key-file-v1","protocol":"\\ud800","sealed":"AAAA"}',
        ],
    )
    def test_what_is_no_envelope(self, store: DescriptorStore, keys: Path, contents: bytes) -> None:
        store.write(DESCRIPTOR)
        store.path.write_bytes(contents)
        self.refusal(store.path, keys)

    def test_another_protocol_and_expiry(self, store: DescriptorStore, keys: Path) -> None:
        store.write(DESCRIPTOR)
        assert "protocol" in self.refusal(store.path, keys, protocol="tabwarden/2")
        assert "expired" in self.refusal(store.path, keys, now_ms=1_900_000_000_000)
        load_descriptor(store.path, key_directory=keys, now_ms=1_899_999_999_999)


def _members() -> dict[str, Any]:
    return {name: getattr(DESCRIPTOR, name) for name in DESCRIPTOR.__dataclass_fields__}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "AAAA"),
        ("pq_public", ""),
        ("instance", None),
        ("address", "10.0.0.1:80"),
        ("address", 5),
        ("generation", True),
        ("generation", "3"),
        ("expires_at_ms", 1.5),
        ("expires_at_ms", False),
        ("principal_id", None),
        ("protocol", ["x"]),
    ],
)
def test_a_sealed_descriptor_is_not_believed_blindly(name: str, value: object) -> None:
    members = json.loads(descriptor_to_json(DESCRIPTOR))
    with pytest.raises(DescriptorError):
        descriptor_from_json(json.dumps({**members, name: value}).encode())
    del members[name]
    with pytest.raises(DescriptorError):
        descriptor_from_json(json.dumps(members).encode())


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_a_typed_error(data: bytes) -> None:
    with pytest.raises(DescriptorError):
        descriptor_from_json(data)
    with pytest.raises(DescriptorError):
        envelope_from_json(data)


def test_file_names_tell_nothing_and_differ() -> None:
    names = {descriptor_file_name(who, generation) for who in ("a", "a1", "\ud800") for generation in (1, 11)}
    assert len(names) == 6
    for name in names:
        assert name.startswith("agent-")
        assert name.endswith(".json")
        assert len(name) == 43


class TestRuntimeDir:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        return home

    def test_in_the_runtime_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "run").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
        assert default_runtime_dir() == tmp_path / "run" / "tabwarden"

    @pytest.mark.parametrize("value", ["", "absent", "relative", "/tmp", "open", "link"])  # noqa: S108
    def test_else_in_the_home_folder(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o755)
        (tmp_path / "private").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to("private")
        named = {"": "", "relative": "private", "/tmp": "/tmp"}.get(value, str(tmp_path / value))  # noqa: S108
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_RUNTIME_DIR", named)
        made = default_runtime_dir()
        assert made == home / ".local" / "state" / "tabwarden"
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
        assert not (tmp_path / "absent").exists()

    def test_never_in_a_home_that_others_may_write(self, home: Path) -> None:
        home.chmod(0o777)
        with pytest.raises(ConfigurationError, match="others may write"):
            default_runtime_dir()

    def test_a_home_that_is_not_absolute(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "somewhere")
        with pytest.raises(ConfigurationError, match="HOME"):
            default_runtime_dir()


def test_the_strongest_that_works_is_chosen(tmp_path: Path) -> None:
    chosen = auto_protector(tmp_path / "keys")
    assert chosen.protector.format in {kind.format for kind in KINDS if kind.automatic}
    assert "protects against other users" in chosen.reason
    path = tmp_path / "room" / "x.json"
    DescriptorStore(path, chosen.protector).write(DESCRIPTOR)
    assert load_descriptor(path, key_directory=tmp_path / "keys") == DESCRIPTOR


def test_the_key_file_is_chosen_where_there_is_no_keyring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "unknown")
    kinds = [kind for kind in KINDS if kind.name in ("kernel-keyring", "key-file")]
    chosen = auto_protector(tmp_path / "keys", kinds=kinds)
    assert chosen.protector.format == "key-file-v1"
    assert "other users only" in chosen.reason
    (tmp_path / "keys").chmod(0o755)
    with pytest.raises(ConfigurationError, match="cannot be protected here"):
        auto_protector(tmp_path / "keys", kinds=kinds)
