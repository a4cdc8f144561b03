"""The passphrase protector, and where a passphrase comes from."""

import os
import pty
import secrets
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden_adapters.credentials import PassphraseProtector, passphrase_source
from tabwarden_adapters.credentials import passphrase as module

PLAINTEXT, CONTEXT = b"a token and two public keys", b"context"
PASSPHRASE = b"correct horse battery staple"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost for tests that make many keys. The real one has tests of its own."""
    monkeypatch.setattr(module, "_N", 2**8)


def says(passphrase: bytes) -> Callable[[bool], bytes]:
    return lambda new: passphrase


@pytest.fixture
def protector(cheap: None) -> PassphraseProtector:
    return PassphraseProtector(says(PASSPHRASE))


def test_whoever_knows_it_opens_and_nobody_else(protector: PassphraseProtector) -> None:
    sealed = protector.protect(PLAINTEXT, CONTEXT)
    assert PassphraseProtector(says(PASSPHRASE)).unprotect(sealed, CONTEXT) == PLAINTEXT
    with pytest.raises(DescriptorError, match="passphrase is wrong"):
        PassphraseProtector(says(PASSPHRASE + b"r")).unprotect(sealed, CONTEXT)
    for at in (16, 28, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(DescriptorError, match="or the descriptor was changed"):
            protector.unprotect(bytes(changed), CONTEXT)
    for changed_length in (b"", sealed[:15], sealed[:16], sealed[:40]):
        with pytest.raises(DescriptorError):
            protector.unprotect(changed_length, CONTEXT)
    with pytest.raises(DescriptorError):
        protector.unprotect(sealed, b"another context")


def test_the_salt_counts_too(protector: PassphraseProtector) -> None:
    sealed = bytearray(protector.protect(PLAINTEXT, CONTEXT))
    sealed[0] ^= 1
    with pytest.raises(DescriptorError, match="passphrase is wrong"):
        protector.unprotect(bytes(sealed), CONTEXT)


def test_the_key_is_that_of_rfc_7914_at_the_stated_cost() -> None:
    # Computed by another implementation (OpenSSL through the cryptography package).
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    derived = module._Derived(b"s" * 16, PASSPHRASE)
    assert derived.key == Scrypt(salt=b"s" * 16, length=32, n=131072, r=8, p=1).derive(PASSPHRASE)


def test_a_lower_cost_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = PassphraseProtector(says(PASSPHRASE)).protect(PLAINTEXT, CONTEXT)
    monkeypatch.setattr(module, "_N", 2**8)
    with pytest.raises(DescriptorError, match="passphrase is wrong"):
        PassphraseProtector(says(PASSPHRASE)).unprotect(sealed, CONTEXT)


def test_it_is_asked_for_once_and_not_kept(cheap: None) -> None:
    asked: list[bool] = []

    def ask(new: bool) -> bytes:
        asked.append(new)
        return PASSPHRASE

    protector = PassphraseProtector(ask)
    one, two = protector.protect(PLAINTEXT, CONTEXT), protector.protect(PLAINTEXT, CONTEXT)
    assert protector.unprotect(one, CONTEXT) == protector.unprotect(two, CONTEXT) == PLAINTEXT
    assert one != two
    assert asked == [True]
    shown = repr(protector) + repr(vars(protector))
    assert "key=" not in shown
    assert PASSPHRASE.decode() not in shown


@pytest.mark.parametrize("short", [b"", b"x", b"eleven byte"])
def test_a_short_one_is_refused(short: bytes) -> None:
    with pytest.raises(DescriptorError, match="too short") as caught:
        PassphraseProtector(says(short)).protect(PLAINTEXT, CONTEXT)
    assert len(short) < 2 or short.decode() not in str(caught.value)


def test_without_anybody_to_ask() -> None:
    with pytest.raises(ConfigurationError, match="--passphrase-fd"):
        PassphraseProtector(None)


class TestDescriptor:
    def given(self, data: bytes) -> Callable[[bool], bytes]:
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        return passphrase_source(read)

    def test_one_line_read_once(self) -> None:
        source = self.given(b"correct horse\nthe rest")
        assert source(True) == source(False) == b"correct horse"

    def test_what_follows_the_line_is_left(self) -> None:
        read, write = os.pipe()
        os.write(write, b"first line here\nsecond line here\n")
        assert passphrase_source(read)(False) == b"first line here"
        assert passphrase_source(read)(False) == b"second line here"
        assert not os.get_inheritable(read)
        os.close(read)
        os.close(write)

    @pytest.mark.parametrize("data", [b"", b"\n", b"x" * 1025])
    def test_empty_and_endless(self, data: bytes) -> None:
        with pytest.raises(DescriptorError, match=r"is empty|is longer") as caught:
            self.given(data)(False)
        assert "xxx" not in str(caught.value)

    def test_nobody_writes(self) -> None:
        read, write = os.pipe()
        with pytest.raises(DescriptorError, match="no passphrase came"):
            passphrase_source(read, limit_s=0.05)(False)
        os.close(read)
        os.close(write)

    @pytest.mark.parametrize("number", [-1, 987, 1024, 2**40])
    def test_no_such_descriptor(self, number: int) -> None:
        with pytest.raises(ConfigurationError, match="--passphrase-fd"):
            passphrase_source(number)

    def test_one_that_cannot_be_read(self, tmp_path: Path) -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(DescriptorError, match="Is a directory"):
            passphrase_source(folder)(False)
        os.close(folder)


# The source in a session of its own: fd 3 is its terminal, if it has one.
AT_A_TERMINAL = """
import fcntl, sys, termios
from tabwarden.errors import DescriptorError
from tabwarden_adapters.credentials import passphrase_source
if sys.argv[1] != "none":
    fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
try:
    print(len(passphrase_source(limit_s=float(sys.argv[3]))(sys.argv[2] == "new")))
except DescriptorError as error:
    print(error)
"""


class TestTerminal:
    def at(self, terminal: int | None, new: bool, limit_s: float = 30.0) -> "subprocess.Popen[str]":
        number = "none" if terminal is None else str(terminal)
        return subprocess.Popen(
            [sys.executable, "-c", AT_A_TERMINAL, number, "new" if new else "old", str(limit_s)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            pass_fds=() if terminal is None else (terminal,),
        )

    def conversation(self, answers: list[bytes], *, new: bool) -> tuple[bytes, str]:
        """Everything the terminal showed, and what the program said."""
        ours, theirs = pty.openpty()
        child = self.at(theirs, new)
        shown = b""
        try:
            for answer in answers:
                while not shown.rstrip(b" ").endswith((b"assphrase:", b"again:")):
                    assert select.select([ours], [], [], 30)[0]
                    shown += os.read(ours, 1000)
                os.write(ours, answer + b"\n")
                shown += b"|"
            said = child.communicate(timeout=30)[0]
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 1000)
        finally:
            child.kill()
            child.communicate()
            os.close(ours)
            os.close(theirs)
        return shown, said.strip()

    def test_it_is_asked_for_without_an_echo(self) -> None:
        shown, said = self.conversation([PASSPHRASE], new=False)
        assert said == str(len(PASSPHRASE))
        assert PASSPHRASE not in shown

    def test_a_new_one_is_asked_for_twice(self) -> None:
        shown, said = self.conversation([PASSPHRASE, PASSPHRASE], new=True)
        assert said == str(len(PASSPHRASE))
        assert b"New passphrase" in shown
        shown, said = self.conversation([PASSPHRASE, b"another one"], new=True)
        assert "differ" in said
        assert PASSPHRASE not in shown

    def test_nobody_there(self) -> None:
        ours, theirs = pty.openpty()
        child = self.at(theirs, new=False, limit_s=0.1)
        assert "no passphrase came from the terminal within 0.1 s" in child.communicate(timeout=30)[0]
        os.close(ours)
        os.close(theirs)

    def test_no_terminal(self) -> None:
        assert "no terminal to ask at" in self.at(None, new=False).communicate(timeout=30)[0]


def test_two_threads_ask_once(cheap: None) -> None:
    asked: list[bool] = []
    secret = secrets.token_hex(20).encode()

    def ask(new: bool) -> bytes:
        asked.append(new)
        return secret

    protector = PassphraseProtector(ask)
    threads = [threading.Thread(target=protector.protect, args=(PLAINTEXT, CONTEXT)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == [True]
