"""The Secret Service protector against a real gnome-keyring on a bus of its own."""

import base64
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import secretstorage
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden_adapters.credentials import KeychainProtector, SecretServiceProtector
from tabwarden_adapters.credentials.keyring_store import ACCOUNT, SERVICE

from tests.credentials.services import gnome_keyring, session_bus, silent_bus

PLAINTEXT, CONTEXT = b"a token and two public keys", b"context"


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    with session_bus(tmp_path / "home") as variables:
        for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS"):
            monkeypatch.setenv(name, variables[name])
        monkeypatch.delenv("PYTHON_KEYRING_BACKEND", raising=False)
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        yield variables


@pytest.fixture
def keyring(bus: dict[str, str]) -> Iterator[None]:
    with gnome_keyring(bus):
        yield


@pytest.fixture
def protector(keyring: None, tmp_path: Path) -> SecretServiceProtector:
    return SecretServiceProtector(tmp_path / "keys")


def stored(replace: str | None = None) -> list[str]:
    """Every key of ours in the store. With `replace`, the first is changed to it."""
    bus = secretstorage.dbus_init()
    try:
        collection = secretstorage.Collection(bus)
        items = list(collection.search_items({"service": SERVICE, "username": ACCOUNT}))
        if replace is not None:
            items[0].set_secret(replace.encode())
        return [item.get_secret().decode() for item in items]
    finally:
        bus.close()


def lock() -> None:
    bus = secretstorage.dbus_init()
    try:
        secretstorage.Collection(bus).lock()
    finally:
        bus.close()


def test_seals_and_opens_and_nothing_else_does(protector: SecretServiceProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    assert protector.unprotect(sealed, CONTEXT) == PLAINTEXT
    assert protector.format == "secret-service-v1"
    for at in range(0, len(sealed), 7):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(DescriptorError, match="pair again"):
            protector.unprotect(bytes(changed), CONTEXT)
    with pytest.raises(DescriptorError, match="pair again"):
        protector.unprotect(sealed, b"another context")
    assert len(stored()) == 1


def test_the_key_is_nowhere_but_in_the_store(protector: SecretServiceProtector, tmp_path: Path) -> None:
    protector.protect(PLAINTEXT, CONTEXT)
    (text,) = stored()
    key = base64.b64decode(text)
    assert len(key) == 32
    assert text not in repr(protector) + repr(vars(protector))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            contents = path.read_bytes()
            assert key not in contents
            assert text.encode() not in contents


def test_a_new_process_opens_it(protector: SecretServiceProtector, bus: dict[str, str]) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    program = (
        "import sys; from tabwarden_adapters.credentials import SecretServiceProtector as P;"
        "sys.stdout.buffer.write(P().unprotect(sys.stdin.buffer.read(), b'context'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=sealed, capture_output=True, env=bus, check=True
    )
    assert done.stdout == PLAINTEXT


def test_a_forgotten_key_opens_nothing(protector: SecretServiceProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    assert protector.forget()
    assert not protector.forget()
    with pytest.raises(DescriptorError, match="gone"):
        protector.unprotect(sealed, CONTEXT)
    assert stored() == []
    protector.protect(PLAINTEXT, CONTEXT)
    with pytest.raises(DescriptorError, match="pair again"):
        protector.unprotect(sealed, CONTEXT)


def test_a_key_that_is_not_ours(protector: SecretServiceProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    for other in ("", "?", base64.b64encode(bytes(31)).decode()):
        stored(replace=other)
        with pytest.raises(DescriptorError, match="not a key of ours"):
            protector.unprotect(sealed, CONTEXT)


def test_a_locked_store_is_an_error_and_opens_no_prompt(
    protector: SecretServiceProtector, tmp_path: Path
) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    lock()
    with pytest.raises(DescriptorError, match="locked: unlock"):
        protector.unprotect(sealed, CONTEXT)
    with pytest.raises(DescriptorError, match="locked: unlock"):
        protector.protect(PLAINTEXT, CONTEXT)
    with pytest.raises(ConfigurationError, match="locked: unlock"):
        SecretServiceProtector(tmp_path / "keys")


def test_many_at_once_share_one_key(protector: SecretServiceProtector, tmp_path: Path) -> None:
    start = threading.Barrier(4)
    sealed: list[bytes] = []

    def run() -> None:
        mine = SecretServiceProtector(tmp_path / "keys")
        start.wait()
        sealed.append(mine.protect(PLAINTEXT, CONTEXT))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored()) == 1
    assert [protector.unprotect(item, CONTEXT) for item in sealed] == [PLAINTEXT] * 4


def test_without_a_default_keyring_none_is_made(bus: dict[str, str], tmp_path: Path) -> None:
    with (
        gnome_keyring(bus, password=None),
        pytest.raises(ConfigurationError, match="no default keyring"),
    ):
        SecretServiceProtector(tmp_path / "keys")


@pytest.mark.parametrize("backend", ["null", "fail", "chainer", "macOS", "nonexistent"])
def test_what_keyring_might_use_instead_is_refused(
    keyring: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    if backend == "chainer":  # with nothing in it that is the Secret Service
        monkeypatch.setattr("keyring.backends.chainer.ChainerBackend.backends", [])
    monkeypatch.setenv(
        "PYTHON_KEYRING_BACKEND",
        f"keyring.backends.{backend}.{'ChainerBackend' if backend == 'chainer' else 'Keyring'}",
    )
    with pytest.raises(ConfigurationError, match=r"not the Secret Service|refuses \("):
        SecretServiceProtector(tmp_path / "keys")
    assert stored() == []


def test_keyring_that_a_person_has_switched_off(keyring: None, bus: dict[str, str], tmp_path: Path) -> None:
    config = Path(bus["HOME"]) / ".config" / "python_keyring" / "keyringrc.cfg"
    config.parent.mkdir(parents=True)
    config.write_text("[backend]\ndefault-keyring=keyring.backends.null.Keyring\n")
    with pytest.raises(ConfigurationError, match=r"keyring\.backends\.null"):
        SecretServiceProtector(tmp_path / "keys")


def test_a_chain_that_holds_the_store_uses_the_store_alone(
    keyring: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keyring.backends import SecretService, null

    monkeypatch.setattr(
        "keyring.backends.chainer.ChainerBackend.backends", [null.Keyring(), SecretService.Keyring()]
    )
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.chainer.ChainerBackend")
    protector = SecretServiceProtector(tmp_path / "keys")
    assert protector.unprotect(protector.protect(PLAINTEXT, CONTEXT), CONTEXT) == PLAINTEXT
    assert len(stored()) == 1


def test_a_service_that_never_answers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with silent_bus(tmp_path) as variables:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", variables["DBUS_SESSION_BUS_ADDRESS"])
        with pytest.raises(ConfigurationError, match="did not answer within"):
            SecretServiceProtector(tmp_path / "keys", limit_s=0.2)


def test_without_a_bus_or_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        SecretServiceProtector(tmp_path / "keys")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'tabwarden\[keyring\]'"):
        SecretServiceProtector(tmp_path / "keys")


def test_a_folder_open_to_others_is_refused(protector: SecretServiceProtector, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys").chmod(0o755)
    with pytest.raises(DescriptorError, match="chmod 700"):
        protector.protect(PLAINTEXT, CONTEXT)
    assert stored() == []


@pytest.mark.skipif(sys.platform == "darwin", reason="there is a Keychain here")
def test_the_keychain_is_refused_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match="macOS only"):
        KeychainProtector()
