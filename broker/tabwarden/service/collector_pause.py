"""Python's cyclic garbage collector, held off while revoked calls end.

Ending a call makes enough objects to set it off, and a collection stops everything for milliseconds, in a
large program for tens of them: nothing else between a revocation and its last effect takes as long. What
reference counting frees is freed as ever; the rest waits for the next collection.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Collector:
    """There is one, and there may be a broker in each of several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._was_enabled = False

    def pause(self) -> None:
        with self._lock:
            if not self._pauses:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._pauses += 1

    def resume(self) -> None:
        with self._lock:
            self._pauses -= 1
            if not self._pauses and self._was_enabled:
                gc.enable()


_COLLECTOR = _Collector()


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection begins by itself while the block runs, or any other such block: use it for a bounded
    time. A collector that its program has switched off stays off."""
    _COLLECTOR.pause()
    try:
        yield
    finally:
        _COLLECTOR.resume()
