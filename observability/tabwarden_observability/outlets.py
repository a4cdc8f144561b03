"""Where the export thread takes what it finds in the ring: made into spans of the SDK, and handed on."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tabwarden_observability.allow_list_exporter import AllowListExporter
from tabwarden_observability.finishing import RequestReader
from tabwarden_observability.record_ring import Item
from tabwarden_observability.records import RawRequest
from tabwarden_observability.spans import build_spans


class Outlet(Protocol):
    """Takes one batch after the other. Called by the export thread, but for `abort`.

    `interval_s`: how long the first of a batch waits for company. `batch_spans`: a batch as large as that
    is handed on at once. `requests_a_nap`: after so many, the event loop may have the interpreter.
    """

    interval_s: float
    batch_spans: int
    requests_a_nap: int

    def add(self, item: Item, /) -> int:
        """Add an item to the batch; says how many spans it made. When it raises, nothing was added."""
        ...

    def deliver(self) -> int:
        """Hand on the batch and begin another; says how many spans were taken. Must not raise."""
        ...

    def abort(self) -> None:
        """End a running `deliver` soon, from another thread."""
        ...

    def close(self) -> None:
        """Let go of everything that is ours."""
        ...


class SpanSink(Protocol):
    """Where spans leave this package."""

    def deliver(self, spans: Sequence[ReadableSpan]) -> int:
        """Hand on `spans`; say how many were taken. Must not raise."""
        ...

    def close(self) -> None:
        """Let go of everything that is ours; from any thread, and more than once. A running `deliver` ends
        soon."""
        ...


class SpanOutlet:
    """Makes the spans of `provider`, with its resource and sampler, for `sink`."""

    interval_s = 0.2
    batch_spans = 64  # encoding them holds the interpreter for a ms or two, and the event loop waits
    requests_a_nap = 1

    def __init__(self, provider: TracerProvider, read: RequestReader, sink: SpanSink) -> None:
        self._provider = provider
        self._read = read
        self._sink = sink
        self._batch: list[ReadableSpan] = []

    def add(self, item: Item, /) -> int:
        """See `Outlet`."""
        if not isinstance(item, RawRequest):
            self._batch.append(item)
            return 1
        spans = build_spans(self._read(item), self._provider.resource, self._provider.sampler)
        self._batch.extend(spans)
        return len(spans)

    def deliver(self) -> int:
        """See `Outlet`."""
        batch, self._batch = self._batch, []
        return self._sink.deliver(batch)

    def abort(self) -> None:
        """See `Outlet`."""
        self._sink.close()

    def close(self) -> None:
        """See `Outlet`."""
        self._sink.close()


class NoOutlet:
    """For a thread that only shows requests to observers."""

    interval_s = 0.2
    batch_spans = 1
    requests_a_nap = 1

    def add(self, item: Item, /) -> int:
        """Makes no spans."""
        return 0

    def deliver(self) -> int:
        """Has none."""
        return 0

    def abort(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is open."""


class ShutDownOnce:
    """Shuts exporters down, once, from any thread. That of OTLP then gives up waiting for its next try."""

    def __init__(self, exporters: Sequence[SpanExporter]) -> None:
        self._exporters = exporters
        self._lock = threading.Lock()
        self.done = False

    def __call__(self) -> None:
        """Do it, unless it was done."""
        with self._lock:
            done, self.done = self.done, True
        if not done:
            for exporter in self._exporters:
                with suppress(Exception):
                    exporter.shutdown()


class ExporterSink:
    """Our own exporters, each behind the allow-list. A span counts as delivered when every one took it."""

    def __init__(self, exporters: Sequence[SpanExporter]) -> None:
        self._exporters = tuple(AllowListExporter(exporter) for exporter in exporters)
        self._shut_down = ShutDownOnce(self._exporters)

    def deliver(self, spans: Sequence[ReadableSpan]) -> int:
        """Export to each; 0 when one of them failed."""
        results = [exporter.export(spans) for exporter in self._exporters]
        return len(spans) if all(result is SpanExportResult.SUCCESS for result in results) else 0

    def close(self) -> None:
        """Shut the exporters down."""
        self._shut_down()


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

    def close(self) -> None:
        """Nothing of ours to close."""
