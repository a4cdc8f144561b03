"""Which protector is chosen: by name exactly that one, else the strongest that works, with every reason."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden_adapters.credentials import (
    PROTECTOR_NAMES,
    DescriptorStore,
    KeyFileProtector,
    Tpm2Protector,
    auto_protector,
    availability,
    chosen_protector,
    descriptor_format,
    load_descriptor,
    passphrase,
    selection,
)
from tabwarden_adapters.credentials.selection import KINDS, Kind

from tests.credentials.services import gnome_keyring, session_bus, simulated_tpm
from tests.credentials.test_store import DESCRIPTOR

BY_NAME = {kind.name: kind for kind in KINDS}


class Broken(KeyFileProtector):
    """Can be made, and fails at use."""

    format = "broken-v1"

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        raise DescriptorError("it broke")


class Liar(KeyFileProtector):
    """Gives back something else."""

    format = "liar-v1"

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        return b"something else"


def kind(name: str, make: Any) -> Kind:
    return Kind(name, f"{name}-v1", f"gives {name}", lambda directory, _: make(directory))


def only(*names: str) -> list[Kind]:
    return [BY_NAME[name] for name in names]


@pytest.fixture(autouse=True)
def no_bus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's own stores are not touched."""
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/none")


@pytest.fixture
def desktop(no_bus: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with session_bus(tmp_path / "home") as variables, gnome_keyring(variables):
        for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS"):
            monkeypatch.setenv(name, variables[name])
        yield


def test_every_name_and_format_is_one_kinds_own() -> None:
    assert len(set(PROTECTOR_NAMES)) == len(KINDS) + 1
    assert len({kind.format for kind in KINDS}) == len(KINDS)
    assert PROTECTOR_NAMES[0] == "auto"
    assert [kind.name for kind in KINDS if not kind.automatic] == ["passphrase"]


def test_what_fails_at_use_is_skipped_with_its_reason(tmp_path: Path) -> None:
    kinds = [kind("broken", Broken), kind("liar", Liar), *only("key-file")]
    chosen = auto_protector(tmp_path / "keys", kinds=kinds)
    assert chosen.protector.format == "key-file-v1"
    assert "not used: broken: it broke; liar: what was sealed came back changed" in chosen.reason


def test_the_first_that_works_is_taken(tmp_path: Path) -> None:
    kinds = [kind("strong", KeyFileProtector), kind("broken", Broken)]
    assert auto_protector(tmp_path / "keys", kinds=kinds).reason == "strong: gives strong"


def test_none_that_works(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be protected here: broken: it broke"):
        auto_protector(tmp_path / "keys", kinds=[kind("broken", Broken)])


def test_auto_never_asks_a_person(tmp_path: Path) -> None:
    asking = replace(kind("asking", KeyFileProtector), automatic=False)
    with pytest.raises(ConfigurationError):
        auto_protector(tmp_path / "keys", kinds=[asking])


def test_by_name_nothing_weaker_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "KINDS", (kind("broken", Broken), *only("key-file")))
    with pytest.raises(ConfigurationError, match="protector broken cannot be used: it broke"):
        chosen_protector("broken", key_directory=tmp_path / "keys")


@pytest.mark.parametrize("name", ["", "Auto", "rot13", "linux-keyring-v1"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigurationError, match="one of auto, kernel-keyring, tpm2"):
        chosen_protector(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("keychain", "macOS only"),
        ("dpapi", "Windows only"),
        ("secret-service", "cannot be reached"),
        ("passphrase", "--passphrase-fd"),
    ],
)
def test_one_that_is_not_here_says_what_to_do(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"protector {name} cannot be used: .*{says}"):
        chosen_protector(name, key_directory=tmp_path / "keys")
    with pytest.raises(DescriptorError, match="cannot be opened here"):
        selection.protector_for(BY_NAME[name].format, tmp_path / "keys")


def test_the_desktops_store_by_name_and_by_auto(desktop: None, tmp_path: Path) -> None:
    chosen = chosen_protector("secret-service", key_directory=tmp_path / "keys")
    assert chosen.protector.format == "secret-service-v1"
    assert "asked for by name" in chosen.reason
    auto = auto_protector(tmp_path / "keys", kinds=only("dpapi", "keychain", "secret-service", "key-file"))
    assert auto.protector.format == "secret-service-v1"
    assert "dpapi: DPAPI exists on Windows only" in auto.reason
    assert dict(availability(tmp_path / "keys"))["secret-service"] is None


def test_a_tpm_comes_before_the_desktops_store(desktop: None, tmp_path: Path) -> None:
    with simulated_tpm(tmp_path / "tpm") as address:
        tpm = replace(BY_NAME["tpm2"], make=lambda _, __: Tpm2Protector(simulator=address))
        kinds = [tpm if kind.name == "tpm2" else kind for kind in KINDS if kind.name != "kernel-keyring"]
        assert auto_protector(tmp_path / "keys", kinds=kinds).protector.format == "tpm2-sealed-v1"


def test_to_ask_what_is_available_stores_nothing(tmp_path: Path) -> None:
    found = dict(availability(tmp_path / "keys"))
    assert set(found) == {kind.name for kind in KINDS if kind.automatic}
    assert found["key-file"] is None
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("name", ["passphrase", "key-file", "systemd-creds", "tpm2"])
def test_the_file_says_how_it_is_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "systemd-creds" and os.geteuid() != 0:
        pytest.skip("systemd-creds is for root")
    with contextlib.ExitStack() as running:
        if name == "tpm2":
            address = running.enter_context(simulated_tpm(tmp_path / "tpm"))
            tpm = replace(BY_NAME["tpm2"], make=lambda _, __: Tpm2Protector(simulator=address))
            monkeypatch.setattr(selection, "KINDS", (tpm,))
        monkeypatch.setattr(passphrase, "_N", 2**8)
        ask = {"ask": lambda new: b"correct horse battery staple"}
        chosen = chosen_protector(name, key_directory=tmp_path / "keys", **ask)
        path = tmp_path / "room" / "agent.json"
        DescriptorStore(path, chosen.protector).write(DESCRIPTOR)
        assert descriptor_format(path) == BY_NAME[name].format
        assert load_descriptor(path, key_directory=tmp_path / "keys", **ask) == DESCRIPTOR
        if name == "passphrase":
            with pytest.raises(DescriptorError, match="a passphrase is needed"):
                load_descriptor(path)
