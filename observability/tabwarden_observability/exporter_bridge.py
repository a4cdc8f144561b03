"""The export thread: empties the ring into an outlet. A thread, so that a slow collector, the encoding and
the sockets never run on the event loop."""

import logging
import threading
from time import monotonic, sleep
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from tabwarden_observability.mute import muted
from tabwarden_observability.observers import Observers
from tabwarden_observability.outlets import Outlet
from tabwarden_observability.record_ring import Item, RecordRing, span_count
from tabwarden_observability.records import RawRequest

_LOG: Final = logging.getLogger("tabwarden.observability")

NAP_S: Final = 0.000_05  # lets the event loop have the interpreter at once

_EXPORTER_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class ExportBridge:
    """Runs the export thread from `start` to `stop`. `interval_s`: instead of the outlet's."""

    def __init__(
        self, ring: RecordRing, outlet: Outlet, observers: Observers, *, interval_s: float | None = None
    ) -> None:
        self._ring = ring
        self._outlet = outlet
        self._observers = observers
        self._interval_s = outlet.interval_s if interval_s is None else interval_s
        self._lock = threading.Lock()
        self._flushes: list[threading.Event] = []
        self._stopping = False
        self._abandoned = False
        self._in_hand = 0  # spans that were taken off the ring and not handed on yet
        self._dropped = 0
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="tabwarden-trace-export", daemon=True)

    @property
    def dropped(self) -> int:
        """Spans lost so far: pushed out of the ring, not taken by the outlet, or given up at the end."""
        return self._ring.dropped + self._dropped

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Blocks. True when all that was pushed before was handed on (or refused) within `timeout_s`."""
        done = threading.Event()
        with self._lock:
            self._flushes.append(done)
        self._wake()
        return done.wait(timeout_s)

    def ask_to_stop(self) -> None:
        """Let the thread empty the ring once more and end. Does not block."""
        self._stopping = True
        self._wake()

    def stop(self, timeout_s: float) -> None:
        """Blocks for `timeout_s` at most. What has not been handed on by then is counted as dropped."""
        deadline = monotonic() + timeout_s
        self.ask_to_stop()
        # A quarter of the time is kept for an exporter that waits between two tries and must be told.
        self._thread.join(0.75 * timeout_s)
        if self._thread.is_alive():
            self._outlet.abort()
            self._thread.join(max(deadline - monotonic(), 0.0))
        self.give_up()

    def give_up(self) -> None:
        """Count whatever is left as dropped. Does not block; harmless when nothing is left."""
        self._ring.close()
        with self._lock:
            self._abandoned = True
            self._dropped += self._in_hand
            self._in_hand = 0

    def _wake(self) -> None:
        self._ring.hurry.set()
        self._ring.work.set()

    def _run(self) -> None:
        # Otherwise an instrumented HTTP library would make spans of our exports, and those would be exported.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        with muted(_EXPORTER_LOGGER):
            try:
                self._work()
            finally:
                self._outlet.close()

    def _work(self) -> None:
        ring = self._ring
        while True:
            ring.work.wait()
            ring.hurry.wait(self._interval_s)
            ring.hurry.clear()
            ring.work.clear()
            last = self._stopping
            with self._lock:
                flushes, self._flushes = self._flushes, []
            ring.rest()
            self._empty()
            for done in flushes:
                done.set()
            if last:
                return

    def _empty(self) -> None:
        since_nap = 0
        while not self._abandoned and (item := self._ring.take()) is not None:
            self._add(item)
            if self._in_hand >= self._outlet.batch_spans:
                self._deliver()
            since_nap += 1
            if since_nap >= self._outlet.requests_a_nap and not self._stopping:
                since_nap = 0
                sleep(NAP_S)
        if self._in_hand:
            self._deliver()

    def _add(self, item: Item) -> None:
        if isinstance(item, RawRequest):
            self._observers.see(item)
        try:
            added, lost = self._outlet.add(item), 0
        except Exception:
            added, lost = 0, span_count(item)
        with self._lock:
            if self._abandoned:  # what was in hand before is counted already
                lost += added
            else:
                self._in_hand += added
            self._dropped += lost

    def _deliver(self) -> None:
        with self._lock:
            handed = self._in_hand
            if self._abandoned:
                return
        taken = self._outlet.deliver()
        with self._lock:
            # After give_up the whole batch is counted already, whatever became of it.
            lost = 0 if self._abandoned else handed - taken
            self._in_hand = 0
            self._dropped += lost
        if lost and not self._failing:
            _LOG.warning("traces cannot be exported; %d spans dropped so far", self.dropped)
        self._failing = bool(lost)
