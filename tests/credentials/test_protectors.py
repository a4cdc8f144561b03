"""Both protectors: what they seal opens again, and nothing else does."""

import os
import secrets
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.errors import DescriptorError
from tabwarden.ports import CredentialProtector
from tabwarden_adapters.credentials import KernelKeyringProtector, KeyFileProtector
from tabwarden_adapters.credentials.key_file import KEY_NAME
from tabwarden_adapters.credentials.keyctl import USER_KEYRING, KeyCalls
from tabwarden_adapters.credentials.sealing import seal, unseal

PLAINTEXT = b"a token and two public keys"
CONTEXT = b"context"


@pytest.fixture
def keyring() -> Iterator[KernelKeyringProtector]:
    try:
        protector = KernelKeyringProtector(description=f"tabwarden:test:{secrets.token_hex(8)}")
        protector.protect(b"", b"")
        protector.forget()
    except (OSError, DescriptorError) as error:
        pytest.skip(f"no kernel keyring here: {error}")
    yield protector
    protector.forget()


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFileProtector:
    return KeyFileProtector(tmp_path / "keys")


@pytest.fixture(params=["keyring", "key_file"])
def protector(request: pytest.FixtureRequest) -> CredentialProtector:
    made: CredentialProtector = request.getfixturevalue(request.param)
    return made


def test_round_trip(protector: CredentialProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    assert protector.unprotect(sealed, CONTEXT) == PLAINTEXT
    assert PLAINTEXT not in sealed
    assert protector.protect(PLAINTEXT, CONTEXT) != sealed


def test_every_bit_counts(protector: CredentialProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1 << (at % 8)
        with pytest.raises(DescriptorError, match="pair again"):
            protector.unprotect(bytes(changed), CONTEXT)


def test_short_long_and_foreign(protector: CredentialProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    for changed in (b"", sealed[:12], sealed[:27], sealed[:-1], sealed + b"\0", os.urandom(len(sealed))):
        with pytest.raises(DescriptorError):
            protector.unprotect(changed, CONTEXT)
    for context in (b"", b"Context", CONTEXT + b"\0"):
        with pytest.raises(DescriptorError):
            protector.unprotect(sealed, context)


def test_opening_never_makes_a_key(protector: CredentialProtector) -> None:
    with pytest.raises(DescriptorError, match="pair again"):
        protector.unprotect(os.urandom(64), CONTEXT)
    with pytest.raises(DescriptorError, match="pair again"):
        protector.unprotect(os.urandom(64), CONTEXT)


def test_nothing_secret_in_repr(protector: CredentialProtector) -> None:
    protector.protect(PLAINTEXT, CONTEXT)
    assert "key=" not in repr(protector)
    assert not any(isinstance(value, bytes) for value in vars(protector).values())


@given(st.text("ab-", max_size=3), st.binary(max_size=3), st.text("ab-", max_size=3), st.binary(max_size=3))
def test_format_and_context_are_bound_apart(name: str, context: bytes, other: str, wrong: bytes) -> None:
    key = bytes(32)
    sealed = seal(key, b"x", name, context)
    if (name, context) == (other, wrong):
        assert unseal(key, sealed, other, wrong) == b"x"
    else:
        with pytest.raises(DescriptorError):
            unseal(key, sealed, other, wrong)


def race(protectors: list[CredentialProtector]) -> None:
    """All seal their first at once; each must be able to open every other's."""
    start = threading.Barrier(len(protectors))
    sealed: list[bytes] = []

    def run(protector: CredentialProtector) -> None:
        start.wait()
        sealed.append(protector.protect(PLAINTEXT, CONTEXT))

    threads = [threading.Thread(target=run, args=(protector,)) for protector in protectors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sealed) == len(protectors)
    assert all(protectors[0].unprotect(item, CONTEXT) == PLAINTEXT for item in sealed)


class TestKeyFile:
    def test_files_are_closed_to_others(self, key_file: KeyFileProtector, tmp_path: Path) -> None:
        key_file.protect(PLAINTEXT, CONTEXT)
        folder = tmp_path / "keys"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {path.name for path in folder.iterdir()} == {"descriptor.key", "descriptor.key.lock"}
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
        assert (folder / KEY_NAME).stat().st_size == 32

    @pytest.mark.parametrize("what", ["folder-mode", "file-mode", "link", "hard-link", "folder-link", "fifo"])
    def test_is_checked_on_every_use(self, key_file: KeyFileProtector, tmp_path: Path, what: str) -> None:
        sealed = key_file.protect(PLAINTEXT, CONTEXT)
        folder, key = tmp_path / "keys", tmp_path / "keys" / KEY_NAME
        match what:
            case "folder-mode":
                folder.chmod(0o750)
            case "file-mode":
                key.chmod(0o640)
            case "link":
                key.rename(folder / "moved")
                key.symlink_to("moved")
            case "hard-link":
                (folder / "copy").hardlink_to(key)
            case "folder-link":
                folder.rename(tmp_path / "moved")
                folder.symlink_to("moved")
            case "fifo":
                key.unlink()
                os.mkfifo(key, 0o600)
        for _ in range(2):
            with pytest.raises(DescriptorError):
                key_file.unprotect(sealed, CONTEXT)
            with pytest.raises(DescriptorError):
                key_file.protect(PLAINTEXT, CONTEXT)

    def test_a_key_that_is_not_ours(self, key_file: KeyFileProtector, tmp_path: Path) -> None:
        key_file.protect(PLAINTEXT, CONTEXT)
        (tmp_path / "keys" / KEY_NAME).write_bytes(bytes(33))
        with pytest.raises(DescriptorError, match="not a key of ours"):
            key_file.protect(PLAINTEXT, CONTEXT)

    def test_a_key_whose_making_was_interrupted_is_made_anew(
        self, key_file: KeyFileProtector, tmp_path: Path
    ) -> None:
        sealed = key_file.protect(PLAINTEXT, CONTEXT)
        os.truncate(tmp_path / "keys" / KEY_NAME, 31)
        with pytest.raises(DescriptorError, match="there is no key"):
            key_file.unprotect(sealed, CONTEXT)
        again = key_file.protect(PLAINTEXT, CONTEXT)
        assert key_file.unprotect(again, CONTEXT) == PLAINTEXT
        with pytest.raises(DescriptorError, match="pair again"):
            key_file.unprotect(sealed, CONTEXT)

    def test_errors_hold_no_key(self, key_file: KeyFileProtector, tmp_path: Path) -> None:
        sealed = key_file.protect(PLAINTEXT, CONTEXT)
        key = (tmp_path / "keys" / KEY_NAME).read_bytes()
        with pytest.raises(DescriptorError) as caught:
            key_file.unprotect(sealed[:-1], CONTEXT)
        text = repr(caught.value) + repr(caught.value.__context__) + str(caught.value.__cause__)
        assert key.hex() not in text
        assert repr(key) not in text

    def test_many_at_once_share_one_key(self, tmp_path: Path) -> None:
        for turn in range(10):
            race([KeyFileProtector(tmp_path / str(turn)) for _ in range(8)])


# A child that may not possess the user keyring: another user where we are root, in a session of its own.
FOREIGN_SESSION = """
import ctypes, os, sys
from tabwarden_adapters.credentials import KernelKeyringProtector
from tabwarden_adapters.credentials.keyctl import KeyCalls
protector = KernelKeyringProtector(description=sys.argv[1])
if os.geteuid() == 0:
    os.setgid(54321); os.setuid(54321)
calls = KeyCalls()
for turn in range(2):
    calls._control(1, None)  # KEYCTL_JOIN_SESSION_KEYRING: a new one with no name
    sealed = protector.protect(b"x", b"") if turn == 0 else sealed
    assert protector.unprotect(sealed, b"") == b"x"
assert protector.forget()
"""


class TestKernelKeyring:
    def test_the_key_is_closed_to_others(self, keyring: KernelKeyringProtector) -> None:
        keyring.protect(PLAINTEXT, CONTEXT)
        calls = KeyCalls()
        uid, mask = calls.describe(calls.search(USER_KEYRING, keyring._description))
        assert uid == os.geteuid()
        assert mask == 0x3B0B0000  # the possessor: all but write; the user: view, read, search; others: none

    def test_nobody_changes_it_by_adding_it_again(self, keyring: KernelKeyringProtector) -> None:
        sealed = keyring.protect(PLAINTEXT, CONTEXT)
        with pytest.raises(PermissionError):
            KeyCalls().add(keyring._description, bytes(32), USER_KEYRING)
        assert keyring.unprotect(sealed, CONTEXT) == PLAINTEXT

    def test_a_forgotten_key_opens_nothing(self, keyring: KernelKeyringProtector) -> None:
        sealed = keyring.protect(PLAINTEXT, CONTEXT)
        assert keyring.forget()
        assert not keyring.forget()
        with pytest.raises(DescriptorError, match="gone"):
            keyring.unprotect(sealed, CONTEXT)
        keyring.protect(PLAINTEXT, CONTEXT)
        with pytest.raises(DescriptorError, match="pair again"):
            keyring.unprotect(sealed, CONTEXT)

    def test_a_key_of_another_size(self, keyring: KernelKeyringProtector) -> None:
        for size in (16, 33, 5000):
            KeyCalls().add(keyring._description, bytes(size), USER_KEYRING)
            with pytest.raises(DescriptorError, match="not ours"):
                keyring.protect(PLAINTEXT, CONTEXT)
            keyring.forget()

    def test_a_key_that_is_open_to_others(self, keyring: KernelKeyringProtector) -> None:
        calls = KeyCalls()
        calls.set_permissions(calls.add(keyring._description, bytes(32), USER_KEYRING), 0x3F030003)
        with pytest.raises(DescriptorError, match="open to other users"):
            keyring.protect(PLAINTEXT, CONTEXT)

    def test_many_at_once_share_one_key(self, keyring: KernelKeyringProtector) -> None:
        for _ in range(20):
            race([KernelKeyringProtector(description=keyring._description) for _ in range(8)])
            keyring.forget()

    def test_works_in_a_session_without_the_user_keyring(self, keyring: KernelKeyringProtector) -> None:
        description = keyring._description + ":foreign"
        done = subprocess.run(
            [sys.executable, "-c", FOREIGN_SESSION, description], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
