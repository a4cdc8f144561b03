"""A pseudo-terminal with a person at the other end: what shows there, and what is typed."""

import os
import re

import trio

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """The master's side. `path` is the terminal."""

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self.raw = ""
        self._seen = 0

    def close(self) -> None:
        os.close(self._slave)
        self.hang_up()

    def hang_up(self) -> None:
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def shows(self, text: str) -> str:
        """Wait until `text` shows, after all that was waited for before; return what showed up to it."""
        with trio.fail_after(20):
            while (at := self.text.find(text, self._seen)) < 0:
                await trio.lowlevel.wait_readable(self._master)
                self.raw += os.read(self._master, 65536).decode()
        before, self._seen = self._seen, at + len(text)
        return self.text[before : self._seen]

    @property
    def text(self) -> str:
        """All that showed so far, without styles."""
        return _STYLE.sub("", self.raw).replace("\r\n", "\n")

    @property
    def rest(self) -> str:
        """What showed after the last text that was waited for."""
        return self.text[self._seen :]
