"""The export thread: empties the ring, makes spans, hands them on. A thread, so that a slow collector, the
encoding and the sockets never run on the event loop."""

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Final, Protocol

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tabwarden_observability.allow_list_exporter import AllowListExporter
from tabwarden_observability.mute import muted
from tabwarden_observability.record_ring import RecordRing, span_count
from tabwarden_observability.records import RawRequest

_LOG: Final = logging.getLogger("tabwarden.observability")

INTERVAL_S: Final = 0.2  # how long the first of a batch waits for company
BATCH_SPANS: Final = 64  # encoding them holds the interpreter for a ms or two, and the event loop waits
NAP_S: Final = 0.000_05  # after each request: lets the event loop have the interpreter at once

_EXPORTER_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class SpanSink(Protocol):
    """Where spans leave this package. Called by the export thread, but for `abort`."""

    def deliver(self, spans: Sequence[ReadableSpan]) -> int:
        """Hand on `spans`; say how many were taken. Must not raise."""
        ...

    def abort(self) -> None:
        """End a running `deliver` soon, from another thread."""
        ...

    def close(self) -> None:
        """Let go of everything that is ours."""
        ...


class ExporterSink:
    """Our own exporters, each behind the allow-list. A span counts as delivered when every one took it."""

    def __init__(self, exporters: Sequence[SpanExporter]) -> None:
        self._exporters = tuple(AllowListExporter(exporter) for exporter in exporters)
        self._lock = threading.Lock()
        self._closed = False

    def deliver(self, spans: Sequence[ReadableSpan]) -> int:
        """Export to each; 0 when one of them failed."""
        results = [exporter.export(spans) for exporter in self._exporters]
        return len(spans) if all(result is SpanExportResult.SUCCESS for result in results) else 0

    def abort(self) -> None:
        """Shut the exporters down: the OTLP exporter then gives up waiting for its next try."""
        self.close()

    def close(self) -> None:
        """Shut the exporters down, once."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            for exporter in self._exporters:
                exporter.shutdown()


class ProcessorSink:
    """A host's own span processor. It stays the host's: never flushed, never shut down from here."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor

    def deliver(self, spans: Sequence[ReadableSpan]) -> int:
        """Call `on_end` for each span."""
        taken = 0
        for span in spans:
            try:
                self._processor.on_end(span)
            except Exception:  # noqa: S112 - the host's fault; its text may not be logged by us
                continue
            taken += 1
        return taken

    def abort(self) -> None:
        """Nothing of ours to end."""

    def close(self) -> None:
        """Nothing of ours to close."""


class ExportBridge:
    """Runs the export thread from `start` to `stop`. `build` makes the spans of one request."""

    def __init__(
        self,
        ring: RecordRing,
        sink: SpanSink,
        build: Callable[[RawRequest], Sequence[ReadableSpan]],
        *,
        interval_s: float = INTERVAL_S,
        batch_spans: int = BATCH_SPANS,
    ) -> None:
        self._ring = ring
        self._sink = sink
        self._build = build
        self._interval_s = interval_s
        self._batch_spans = batch_spans
        self._lock = threading.Lock()
        self._flushes: list[threading.Event] = []
        self._stopping = False
        self._abandoned = False
        self._in_hand = 0
        self._dropped = 0
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="tabwarden-trace-export", daemon=True)

    @property
    def dropped(self) -> int:
        """Spans lost so far: pushed out of the ring, not taken by the sink, or given up at the end."""
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
            self._sink.abort()
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
                self._sink.close()

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
        batch: list[ReadableSpan] = []
        while not self._abandoned and (item := self._ring.take()) is not None:
            if isinstance(item, RawRequest):
                try:
                    batch.extend(self._build(item))
                except Exception:
                    with self._lock:
                        self._dropped += span_count(item)
                if not self._stopping:
                    sleep(NAP_S)
            else:
                batch.append(item)
            if len(batch) >= self._batch_spans:
                self._deliver(batch)
                batch = []
        if batch:
            self._deliver(batch)

    def _deliver(self, batch: list[ReadableSpan]) -> None:
        with self._lock:
            if self._abandoned:
                self._dropped += len(batch)
                return
            self._in_hand = len(batch)
        taken = self._sink.deliver(batch)
        with self._lock:
            # After give_up the whole batch is counted already, whatever became of it.
            lost = 0 if self._in_hand == 0 else len(batch) - taken
            self._in_hand = 0
            self._dropped += lost
        if lost and not self._failing:
            _LOG.warning("traces cannot be exported; %d spans dropped so far", self.dropped)
        self._failing = bool(lost)
