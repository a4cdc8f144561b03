"""The bounded ring between the path of a call and the export thread."""

import threading
from collections import deque
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from tabwarden_observability.records import RawRequest

RING_REQUESTS: Final = 4096  # a second of calls at the most that one broker does, while a collector is slow

Item = RawRequest | ReadableSpan


def span_count(item: Item) -> int:
    """How many spans an item of the ring stands for."""
    return item.span_count if isinstance(item, RawRequest) else 1


class RecordRing:
    """Holds at most `capacity` items; the oldest gives way to a new one and is counted in `dropped` (spans).

    `push` costs an append, except for the first push after a rest and the one that makes the ring half full:
    those wake the export thread. An idle broker wakes nobody.
    """

    __slots__ = ("_capacity", "_half", "_queue", "_resting", "closed", "dropped", "hurry", "work")

    def __init__(self, capacity: int = RING_REQUESTS) -> None:
        self._queue: deque[Item] = deque()
        self._capacity = capacity
        self._half = max(capacity // 2, 1)
        self._resting = True
        self.closed = False
        self.dropped = 0
        self.work = threading.Event()
        self.hurry = threading.Event()

    def __len__(self) -> int:
        return len(self._queue)

    def push(self, item: Item, /) -> None:
        """Add one item. Never blocks, never raises."""
        if self.closed:
            self.dropped += span_count(item)
            return
        queue = self._queue
        if len(queue) >= self._capacity and (oldest := self.take()) is not None:
            self.dropped += span_count(oldest)
        queue.append(item)
        if self._resting:
            self._resting = False
            self.work.set()
        if len(queue) == self._half:
            self.hurry.set()

    def take(self) -> Item | None:
        """The oldest item, or None."""
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def rest(self) -> None:
        """Ask to be woken by the next push. Call it before emptying the ring, so that none is missed."""
        self._resting = True

    def close(self) -> None:
        """Take nothing any more; what is left counts as dropped."""
        self.closed = True
        while (item := self.take()) is not None:
            self.dropped += span_count(item)


class RingSpanProcessor(SpanProcessor):
    """Sends spans that somebody makes with our own provider through the same ring, and so the same filter."""

    def __init__(self, ring: RecordRing) -> None:
        self._ring = ring

    def on_start(self, span: Span, parent_context: object = None) -> None:
        """Nothing to do."""

    def on_end(self, span: ReadableSpan) -> None:
        """Push `span` unless it is not sampled."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._ring.push(span)
