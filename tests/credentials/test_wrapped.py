"""Protectors that let somebody else wrap a fresh key: a TPM (swtpm), systemd, and Windows' interface."""

import ctypes
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden.ports import CredentialProtector
from tabwarden_adapters.credentials import DpapiProtector, SystemdCredsProtector, Tpm2Protector
from tabwarden_adapters.credentials import programs as runner
from tabwarden_adapters.credentials.dpapi import DataBlob
from tabwarden_adapters.credentials.programs import find_program, run_program
from tabwarden_adapters.credentials.wrapping import seal_wrapped, unseal_wrapped

from tests.credentials.services import needs, simulated_tpm

PLAINTEXT, CONTEXT = b"a token and two public keys", b"context"


@pytest.fixture
def tpm(tmp_path: Path) -> Iterator[Tpm2Protector]:
    with simulated_tpm(tmp_path / "tpm") as address:
        yield Tpm2Protector(simulator=address)


@pytest.fixture
def systemd() -> SystemdCredsProtector:
    if os.geteuid() != 0:
        pytest.skip("systemd-creds is for root")
    needs("systemd-creds")
    return SystemdCredsProtector()


class Windows:
    """What crypt32 and kernel32 do, through their C interface; the "encryption" is none."""

    def __init__(self) -> None:
        blob, pointer = ctypes.POINTER(DataBlob), ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(ctypes.c_int, blob, pointer, pointer, pointer, pointer, ctypes.c_uint32, blob)
        self.flags: list[int] = []
        self.held: dict[int, Any] = {}
        self.CryptProtectData = kind(lambda i, d, e, r, p, f, o: self._give(self._data(i, f)[::-1] + b"!", o))
        self.CryptUnprotectData = kind(lambda i, d, e, r, p, f, o: self._undo(self._data(i, f), o))

    def _data(self, source: Any, flags: int) -> bytes:
        self.flags.append(flags)
        return ctypes.string_at(source.contents.data, source.contents.size)

    def _undo(self, data: bytes, result: Any) -> int:
        return self._give(data[-2::-1], result) if data.endswith(b"!") else 0

    def _give(self, data: bytes, result: Any) -> int:
        memory = ctypes.create_string_buffer(data, len(data))
        address = ctypes.addressof(memory)
        self.held[address] = memory
        result.contents.size, result.contents.data = len(data), address
        return 1

    def local_free(self, address: int) -> None:
        memory = self.held.pop(address)
        assert memory.raw == bytes(len(memory))  # wiped before it is given back


@pytest.fixture
def windows() -> Windows:
    return Windows()


@pytest.fixture
def dpapi(windows: Windows) -> DpapiProtector:
    return DpapiProtector(crypt32=windows, local_free=windows.local_free)


@pytest.fixture(params=["tpm", "systemd", "dpapi"])
def protector(request: pytest.FixtureRequest) -> CredentialProtector:
    made: CredentialProtector = request.getfixturevalue(request.param)
    return made


def test_seals_and_opens(protector: CredentialProtector) -> None:
    sealed = protector.protect(PLAINTEXT * 200, CONTEXT)
    assert protector.unprotect(sealed, CONTEXT) == PLAINTEXT * 200
    assert PLAINTEXT not in sealed
    assert protector.protect(PLAINTEXT * 200, CONTEXT) != sealed


def test_what_was_changed_is_refused(protector: CredentialProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    end = 2 + int.from_bytes(sealed[:2], "big")
    for at in (0, 1, 2, end // 2, end - 1, end, end + 12, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(DescriptorError):
            protector.unprotect(bytes(changed), CONTEXT)
    for changed_length in (sealed[:0], sealed[:1], sealed[:2], sealed[:end], sealed[:-1], sealed + b"\0"):
        with pytest.raises(DescriptorError):
            protector.unprotect(changed_length, CONTEXT)
    with pytest.raises(DescriptorError, match="pair again"):
        protector.unprotect(sealed, b"another context")


def test_the_wrapped_key_is_bound_to_what_it_seals(protector: CredentialProtector) -> None:
    one, two = protector.protect(PLAINTEXT, CONTEXT), protector.protect(PLAINTEXT, CONTEXT)
    end = 2 + int.from_bytes(one[:2], "big")
    if len(one) == len(two):
        with pytest.raises(DescriptorError, match="pair again"):
            protector.unprotect(one[:end] + two[end:], CONTEXT)


def test_not_even_bits_that_the_unwrapper_ignores_may_change() -> None:
    keys: list[bytes] = []
    sealed = bytearray(seal_wrapped(lambda key: keys.append(key) or b"wrapped", PLAINTEXT, "x-v1", CONTEXT))
    assert unseal_wrapped(lambda _: keys[0], bytes(sealed), "x-v1", CONTEXT) == PLAINTEXT
    sealed[2] ^= 1
    with pytest.raises(DescriptorError, match="pair again"):
        unseal_wrapped(lambda _: keys[0], bytes(sealed), "x-v1", CONTEXT)


def test_one_formats_descriptor_is_not_anothers(dpapi: DpapiProtector) -> None:
    sealed = dpapi.protect(PLAINTEXT, CONTEXT)
    dpapi.format = "windows-dpapi-user-v2"
    with pytest.raises(DescriptorError, match="pair again"):
        dpapi.unprotect(sealed, CONTEXT)


class TestTpm:
    def test_another_tpm_opens_nothing(self, tpm: Tpm2Protector, tmp_path: Path) -> None:
        sealed = tpm.protect(PLAINTEXT, CONTEXT)
        with (
            simulated_tpm(tmp_path / "other") as address,
            pytest.raises(DescriptorError, match="another TPM's"),
        ):
            Tpm2Protector(simulator=address).unprotect(sealed, CONTEXT)

    def test_the_same_tpm_after_a_restart_does(self, tmp_path: Path) -> None:
        with simulated_tpm(tmp_path / "tpm") as address:
            sealed = Tpm2Protector(simulator=address).protect(PLAINTEXT, CONTEXT)
        with simulated_tpm(tmp_path / "tpm") as address:
            assert Tpm2Protector(simulator=address).unprotect(sealed, CONTEXT) == PLAINTEXT

    def test_a_cleared_tpm_does_not(self, tpm: Tpm2Protector) -> None:
        sealed = tpm.protect(PLAINTEXT, CONTEXT)
        subprocess.run(["tpm2_clear", "-T", str(tpm._simulator)], check=True)
        with pytest.raises(DescriptorError, match="cleared"):
            tpm.unprotect(sealed, CONTEXT)

    def test_an_owner_password_that_we_do_not_have(self, tpm: Tpm2Protector) -> None:
        subprocess.run(["tpm2_changeauth", "-T", str(tpm._simulator), "-c", "o", "owner"], check=True)
        with pytest.raises(DescriptorError, match="tpm2_createprimary failed"):
            tpm.protect(PLAINTEXT, CONTEXT)

    def test_a_tpm_that_is_gone(self, tmp_path: Path) -> None:
        needs("tpm2_createprimary")
        protector = Tpm2Protector(simulator=f"swtpm:path={tmp_path}/none")
        with pytest.raises(DescriptorError, match="tpm2_createprimary failed"):
            protector.protect(PLAINTEXT, CONTEXT)

    def test_an_address_that_is_no_simulators(self) -> None:
        for address in ("device:/dev/tpm0", "swtpm:", "cmd:sh -c true", ""):
            with pytest.raises(ConfigurationError, match="simulator"):
                Tpm2Protector(simulator=address)

    def test_without_tools_or_device(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tabwarden_adapters.credentials.tpm2.DEVICE", str(tmp_path / "tpmrm0"))
        with pytest.raises(ConfigurationError, match="no TPM"):
            Tpm2Protector()
        monkeypatch.setattr(runner, "FOLDERS", str(tmp_path))
        with pytest.raises(ConfigurationError, match="install tpm2-tools"):
            Tpm2Protector()


class TestSystemd:
    def test_another_credential_does_not_pass_for_ours(self, systemd: SystemdCredsProtector) -> None:
        sealed = systemd.protect(PLAINTEXT, CONTEXT)
        program = str(find_program("systemd-creds"))
        foreign = run_program([program, "--with-key=host", "--name=other", "encrypt", "-", "-"], bytes(32))
        end = 2 + int.from_bytes(sealed[:2], "big")
        with pytest.raises(DescriptorError, match="systemd's key does not open it"):
            systemd.unprotect(len(foreign).to_bytes(2, "big") + foreign + sealed[end:], CONTEXT)

    def test_one_forged_under_a_key_that_everybody_knows(self, systemd: SystemdCredsProtector) -> None:
        program, name = str(find_program("systemd-creds")), "--name=tabwarden-descriptor-key"

        def wrap(key: bytes) -> bytes:
            try:  # its name since systemd 256, and before
                return run_program([program, "--with-key=null", name, "encrypt", "-", "-"], key)
            except DescriptorError:
                return run_program([program, "--with-key=tpm2-absent", name, "encrypt", "-", "-"], key)

        forged = seal_wrapped(wrap, b"another broker's address", systemd.format, CONTEXT)
        with pytest.raises(DescriptorError, match="not under systemd's host key"):
            systemd.unprotect(forged, CONTEXT)

    def test_refused_without_root_and_without_systemd(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "systemd-creds").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "systemd-creds").chmod(0o755)
        monkeypatch.setattr(runner, "FOLDERS", str(tmp_path))
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
        with pytest.raises(ConfigurationError, match="needs root"):
            SystemdCredsProtector()
        (tmp_path / "systemd-creds").unlink()
        with pytest.raises(ConfigurationError, match="not installed"):
            SystemdCredsProtector()


class TestDpapi:
    def test_never_asks_and_gives_memory_back_wiped(self, dpapi: DpapiProtector, windows: Windows) -> None:
        dpapi.unprotect(dpapi.protect(PLAINTEXT, CONTEXT), CONTEXT)
        assert windows.flags == [1, 1]
        assert windows.held == {}

    @pytest.mark.skipif(sys.platform == "win32", reason="DPAPI exists here")
    def test_refused_elsewhere(self) -> None:
        with pytest.raises(ConfigurationError, match="Windows only"):
            DpapiProtector()


class TestPrograms:
    def test_one_that_does_not_end_is_ended(self) -> None:
        with pytest.raises(DescriptorError, match=r"sleep did not end within 0\.1 s"):
            run_program([str(find_program("sleep")), "1000"], limit_s=0.1)

    def test_what_it_was_given_is_not_in_the_error(self) -> None:
        secret = secrets.token_hex(16)
        program = "cat; echo ERROR: it broke >&2; echo less >&2; exit 3"
        with pytest.raises(DescriptorError) as caught:
            run_program([str(find_program("sh")), "-c", program], secret.encode())
        assert str(caught.value) == "sh failed: ERROR: it broke"
        assert secret not in repr(caught.value) + repr(caught.value.__context__)

    def test_none_of_our_environment_goes_along(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TABWARDEN_TEST", "seen")
        assert b"TABWARDEN_TEST" not in run_program([str(find_program("env"))])

    def test_one_that_cannot_be_run(self, tmp_path: Path) -> None:
        with pytest.raises(DescriptorError, match="cannot be run"):
            run_program([str(tmp_path / "none")])


# Stands in for each program: notes what others can see of it, then becomes it.
WATCHER = """#!/bin/sh
seen=$(mktemp -p "{seen}")
tr '\\0' '\\n' </proc/$$/cmdline >>"$seen"
tr '\\0' '\\n' </proc/$$/environ >>"$seen"
find "{temporary}" -type f -exec cat {{}} + >>"$seen"
exec "{program}" "$@"
"""


@pytest.mark.parametrize("name", ["tpm", "systemd"])
def test_no_secret_in_arguments_environment_or_temporary_files_of_any_child(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    protector: CredentialProtector = request.getfixturevalue(name)
    folder, seen, temporary = tmp_path / "programs", tmp_path / "seen", tmp_path / "temporary"
    for made in (folder, seen, temporary):
        made.mkdir()
    for program in (
        *("tpm2_createprimary", "tpm2_create", "tpm2_load", "tpm2_unseal", "tpm2_flushcontext"),
        "systemd-creds",
    ):
        if (path := find_program(program)) is not None:
            script = folder / program
            script.write_text(WATCHER.format(seen=seen, temporary=temporary, program=path))
            script.chmod(0o755)
    monkeypatch.setattr(runner, "FOLDERS", f"{folder}:{runner.FOLDERS}")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    if isinstance(protector, SystemdCredsProtector):
        protector = SystemdCredsProtector()
    canary = secrets.token_bytes(32)
    monkeypatch.setattr(os, "urandom", lambda size: canary[:size])
    secret = secrets.token_hex(20).encode()
    assert protector.unprotect(protector.protect(secret, CONTEXT), CONTEXT) == secret
    children = [path.read_bytes() for path in seen.iterdir()]
    assert len(children) >= 2
    for text in children:
        assert b"\nPATH=" in text  # it saw an environment
        assert not any(trace in text for trace in (secret, canary, canary.hex().encode(), canary[:16]))
    assert list(temporary.iterdir()) == []
