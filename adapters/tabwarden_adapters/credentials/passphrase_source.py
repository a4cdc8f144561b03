"""Where a passphrase comes from: the terminal, or an open file descriptor. Never argv or the environment,
which other programs can read. Both are bounded: nobody there is an error, not a wait."""

import contextlib
import os
import select
import termios
import time
from collections.abc import Callable, Iterator

from tabwarden.errors import ConfigurationError, DescriptorError

LIMIT_S = 60.0
_MAX_PASSPHRASE = 1024


def passphrase_source(descriptor: int | None = None, *, limit_s: float = LIMIT_S) -> Callable[[bool], bytes]:
    """Asks at the terminal, or reads one line from file descriptor `descriptor` (read once, then kept).

    The source raises `DescriptorError` when nobody answers within `limit_s`. Raises `ConfigurationError`
    when `descriptor` is not open.
    """
    if descriptor is None:
        return lambda new: _asked(new, limit_s)
    try:
        os.fstat(descriptor)
        select.select([descriptor], [], [], 0)  # it takes no number above 1023
        os.set_inheritable(descriptor, False)  # no child may read what follows
    except (OSError, ValueError, OverflowError):
        raise ConfigurationError(
            f"--passphrase-fd {descriptor} cannot be read from: open it, below 1024"
        ) from None
    lines: list[bytes] = []

    def read(new: bool) -> bytes:
        if not lines:
            lines.append(_line(descriptor, limit_s, f"file descriptor {descriptor}"))
        return lines[0]

    return read


def _asked(new: bool, limit_s: float) -> bytes:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise DescriptorError(
            "a passphrase is needed and there is no terminal to ask at: give --passphrase-fd"
        ) from None
    try:
        with _without_echo(terminal):
            os.write(terminal, b"New passphrase: " if new else b"Passphrase: ")
            given = _line(terminal, limit_s, "the terminal")
            if new:
                os.write(terminal, b"\nThe same again: ")
                if _line(terminal, limit_s, "the terminal") != given:
                    raise DescriptorError("the two passphrases differ: try again")
            os.write(terminal, b"\n")
            return given
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _without_echo(terminal: int) -> Iterator[None]:
    before = termios.tcgetattr(terminal)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSAFLUSH, silent)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def _line(descriptor: int, limit_s: float, shown: str) -> bytes:
    """Up to the first newline or the end. Raises `DescriptorError`, which holds nothing of it."""
    ends = time.monotonic() + limit_s
    line = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, ends - time.monotonic()))
        if not ready:
            raise DescriptorError(f"no passphrase came from {shown} within {limit_s:g} s")
        try:
            # One byte each: what follows the line is not ours, and two of them must not share a line.
            byte = os.read(descriptor, 1)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise DescriptorError(f"no passphrase can be read from {shown}: {reason}") from None
        if byte in (b"", b"\n"):
            break
        line += byte
        if len(line) > _MAX_PASSPHRASE:
            raise DescriptorError(f"the passphrase from {shown} is longer than {_MAX_PASSPHRASE} bytes")
    if not line:
        raise DescriptorError(f"the passphrase from {shown} is empty")
    return line
