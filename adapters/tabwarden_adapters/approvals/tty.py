"""One terminal, read and written without ever holding up the event loop or stopping the process.

The terminal is opened by its path, so that being non-blocking is our own affair and not that of everybody
who inherited it. POSIX.1-2017, chapter 11 (General Terminal Interface); tty_ioctl(4).
"""

import errno
import os
import select
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from tabwarden.errors import ConfigurationError, TabwardenError

LINE_BYTES = 256  # an answer is a letter and a number
_NARROWEST, _USUAL = 24, 80


class TerminalGone(TabwardenError):
    """Hung up, or taken to another process: nobody can answer there now."""


class Terminal:
    """An open terminal. Close it."""

    def __init__(self, path: str) -> None:
        """Raises `ConfigurationError` when there is no terminal at `path`."""
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigurationError(
                f"there is no terminal to ask a person at ({path}: {error.strerror}): start it in one"
            ) from None
        if not os.isatty(self._fd):
            os.close(self._fd)
            raise ConfigurationError(f"{path} is no terminal: nobody can be asked there")

    def close(self) -> None:
        os.close(self._fd)

    @property
    def width(self) -> int:
        """In columns."""
        try:
            columns = os.get_terminal_size(self._fd).columns
        except OSError:
            columns = 0
        return max(columns or _USUAL, _NARROWEST)

    @property
    def in_front(self) -> bool:
        """Whether what is typed there is for us. True for a terminal that does not control this process."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError as error:
            return error.errno == errno.ENOTTY

    def forget_input(self) -> None:
        """Throw away all that was typed and not read, a line that is not finished too."""
        try:
            with _not_stopped():
                termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error:
            raise TerminalGone from None

    async def ignore_input(self, seconds: float) -> None:
        """Throw away whatever is typed for so long."""
        with trio.move_on_after(seconds):
            while True:
                await self._some()
        self.forget_input()

    async def read_line(self) -> str:
        """What is typed up to the next end of line. "" for nothing, or for more than an answer can be.

        Raises `TerminalGone`.
        """
        typed = b""
        while len(typed) <= LINE_BYTES:
            data = await self._some()
            line, end, _ = (typed + data).replace(b"\r", b"\n").partition(b"\n")
            if end or not data:
                return line.decode(errors="replace") if len(line) <= LINE_BYTES else ""
            typed += data
        return ""

    async def write(self, text: str) -> None:
        """Raises `TerminalGone`."""
        left = text.encode(errors="backslashreplace")
        while left:
            try:
                with _not_stopped():
                    written = os.write(self._fd, left)
            except BlockingIOError:
                # Somebody pressed Ctrl-S, or looks at it slowly.
                await trio.lowlevel.wait_writable(self._fd)
                continue
            except OSError:
                raise TerminalGone from None
            left = left[written:]
        await trio.lowlevel.checkpoint()

    async def _some(self) -> bytes:
        """Some typed bytes; none for an end-of-file character (Ctrl-D)."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                with _not_stopped():
                    data = os.read(self._fd, LINE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                raise TerminalGone from None
            if not data and self.hung_up:
                raise TerminalGone
            return data

    @property
    def hung_up(self) -> bool:
        """Whether nobody is at the other end any more."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


@contextmanager
def _not_stopped() -> Iterator[None]:
    """Another job in front is an error here (EIO), not a signal that stops the whole broker."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN, signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
