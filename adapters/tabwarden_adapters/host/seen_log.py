"""What an engine says that it sent to its model: scrubbed once more, counted, and kept in a bounded ring."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import trio

from tabwarden_adapters.host.limits import HostLimits
from tabwarden_adapters.host.ports import Scrubber
from tabwarden_adapters.host.values import LogBody, LogEntry, readable


@dataclass(frozen=True, slots=True)
class LogCounts:
    """`unclean` entries had something left to scrub: the engine's own filter missed it. `withheld` ones
    are kept without their text: there was no scrubber, or it failed. `dropped` fell out of the ring."""

    taken: int = 0
    unclean: int = 0
    withheld: int = 0
    dropped: int = 0


class SeenLog:
    """The ring. Sequence numbers start at 1 and never repeat."""

    def __init__(self, scrubber: Scrubber | None, limits: HostLimits) -> None:
        self._scrubber = scrubber
        self._limits = limits
        self._entries: deque[tuple[int, int, LogEntry]] = deque()
        self._characters = 0
        self._changed = trio.Event()
        self.last = 0
        self.counts = LogCounts()

    async def take(self, body: LogBody, origin: str, at_ms: int) -> LogEntry:
        """Scrub and keep one entry. What the scrubber raises ends in a withheld text, never here."""
        text, meta, clean = await self._scrubbed(body)
        entry = LogEntry(
            type=readable(body.type),
            origin=origin,
            text=text,
            tokens=int(body.tokens),
            at_ms=at_ms,
            meta=meta,
            clean=clean,
        )
        self._append(entry)
        return entry

    def after(self, sequence: int) -> Sequence[tuple[int, LogEntry]]:
        """The entries with a higher number than `sequence` that are still kept, in order."""
        return [(number, entry) for number, _, entry in self._entries if number > sequence]

    async def wait(self, sequence: int) -> None:
        """Return when there is an entry with a higher number than `sequence`."""
        while self.last <= sequence:
            await self._changed.wait()

    async def _scrubbed(self, body: LogBody) -> tuple[str | None, dict[str, Any] | None, bool | None]:
        if self._scrubber is None:
            return None, None, None
        try:
            text = await self._scrub(body.text)
            meta = None if body.meta is None else await self._scrub_meta(body.meta)
        except Exception:
            # A filter that fails has not looked: the text may hold anything, and so may what it raised.
            return None, None, None
        return text, meta, text == body.text and meta == body.meta

    async def _scrub(self, text: str) -> str:
        scrubbed: object = await self._scrubber(text) if self._scrubber is not None else None
        if not isinstance(scrubbed, str):
            raise TypeError("a scrubber answers with text")
        return scrubbed

    async def _scrub_meta(self, meta: dict[str, Any]) -> dict[str, Any] | None:
        """As one text, because a secret may be a key or lie across values; kept only if still an object."""
        written = msgspec.json.encode(meta).decode()
        scrubbed = await self._scrub(written)
        if scrubbed == written:
            return meta
        try:
            value = msgspec.json.decode(scrubbed)
        except (msgspec.DecodeError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def _append(self, entry: LogEntry) -> None:
        self.last += 1
        size = len(entry.text or "") + len(entry.type) + len(entry.origin)
        if entry.meta is not None:
            size += len(msgspec.json.encode(entry.meta))
        self._entries.append((self.last, size, entry))
        self._characters += size
        dropped = 0
        while len(self._entries) > self._limits.log_entries or self._characters > self._limits.log_characters:
            _, old, _ = self._entries.popleft()
            self._characters -= old
            dropped += 1
        counts = self.counts
        self.counts = LogCounts(
            taken=counts.taken + 1,
            unclean=counts.unclean + (entry.clean is False),
            withheld=counts.withheld + (entry.clean is None),
            dropped=counts.dropped + dropped,
        )
        self._changed.set()
        self._changed = trio.Event()
