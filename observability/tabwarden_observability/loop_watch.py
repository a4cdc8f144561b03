"""How busy the event loop is, by an instrument of trio that costs two clock readings a pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Final

import trio

from tabwarden_observability.metric_table import LOOP_BUSY, LOOP_LAG, TASKS, THREADS
from tabwarden_observability.metrics import Metrics

_NS: Final = 1_000_000_000
_SAMPLE_NS: Final = _NS  # tasks and threads are counted once in so long


class LoopWatch(trio.abc.Instrument):
    """A pass is the time from one look at the sockets to the next: so long, whoever was ready had to wait.

    The four readings may be taken from another thread.
    """

    def __init__(self) -> None:
        self._limiter = trio.to_thread.current_default_thread_limiter()
        self._since = perf_counter_ns()
        self._sampled = 0
        self._longest = 0
        self._busy = 0
        self.tasks = 0
        self.threads = 0

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins."""
        self._since = perf_counter_ns()

    def before_io_wait(self, timeout: float) -> None:
        """It ends."""
        now = perf_counter_ns()
        took = now - self._since
        self._busy += took
        if took > self._longest:
            self._longest = took
        if now - self._sampled > _SAMPLE_NS:
            self._sampled = now
            self.tasks = trio.lowlevel.current_statistics().tasks_living
            self.threads = int(self._limiter.borrowed_tokens)

    def take_lag(self) -> float:
        """The longest pass in seconds since this was last called."""
        longest, self._longest = self._longest, 0
        return longest / _NS

    @property
    def busy(self) -> float:
        """Seconds spent in passes so far."""
        return self._busy / _NS


@contextmanager
def watching_loop(metrics: Metrics) -> Iterator[LoopWatch]:
    """Watch the running event loop while the block runs. Call it within the loop."""
    watch = LoopWatch()
    metrics.observe(LOOP_LAG, lambda: {(): watch.take_lag()})
    metrics.observe(LOOP_BUSY, lambda: {(): watch.busy})
    metrics.observe(TASKS, lambda: {(): watch.tasks})
    metrics.observe(THREADS, lambda: {(): watch.threads})
    trio.lowlevel.add_instrument(watch)
    try:
        yield watch
    finally:
        trio.lowlevel.remove_instrument(watch)
