"""Server-sent events out of bytes, with bounds (WHATWG HTML, 9.2.6). Only `data` fields matter here."""

import re
from collections.abc import Iterator

from tabwarden_adapters.ai.faults import ANSWER, ENDLESS, failed
from tabwarden_adapters.ai.limits import GatewayLimits

_ENDS = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class EventReader:
    """Feed it what arrives; it gives the data of each event that is whole. A last one without its blank line
    is dropped, as the standard says."""

    def __init__(self, limits: GatewayLimits) -> None:
        self._limits = limits
        self._buffer = b""
        self._looked = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._first = True
        self._bytes = self._lines = self._events = self._pieces = 0

    def feed(self, piece: bytes) -> Iterator[str]:
        """Raises `ActionError` for what is not UTF-8, or more than the limits allow."""
        limits = self._limits
        self._pieces += 1
        self._bytes += len(piece)
        if self._bytes > limits.bytes or self._pieces > limits.pieces:
            raise failed(ENDLESS)
        for line in self._split(piece):
            self._lines += 1
            if self._lines > limits.lines:
                raise failed(ENDLESS)
            event = self._take(line)
            if event is not None:
                self._events += 1
                if self._events > limits.events:
                    raise failed(ENDLESS)
                yield event

    def _split(self, piece: bytes) -> Iterator[bytes]:
        buffer = self._buffer + piece
        begin, look = 0, self._looked
        while (end := _ENDS.search(buffer, look)) is not None:
            if end.group() == b"\r" and end.end() == len(buffer):
                break  # its line feed may still come
            line, begin = buffer[begin : end.start()], end.end()
            look = begin
            if len(line) > self._limits.line_bytes:
                raise failed(ENDLESS)
            if self._first:
                line, self._first = line.removeprefix(_BOM), False
            yield line
        self._buffer = buffer[begin:]
        self._looked = max(0, len(self._buffer) - 1)
        if len(self._buffer) > self._limits.line_bytes:
            raise failed(ENDLESS)

    def _take(self, line: bytes) -> str | None:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._data_bytes += len(value) + 1
                if self._data_bytes > self._limits.line_bytes:
                    raise failed(ENDLESS)
            return None
        if not self._data:
            return None
        data, self._data, self._data_bytes = b"\n".join(self._data), [], 0
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
        raise failed(ANSWER)
