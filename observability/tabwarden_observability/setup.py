"""Sets tracing up from the standard `OTEL_*` environment, and takes it down again within a bound.

Without an exporter or an endpoint in the environment (`environment`) nothing is exported, and the latest
requests are kept in memory for the person who runs the broker.
"""

import sys
from collections.abc import Sequence
from typing import Final, TextIO

import trio
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter
from tabwarden.errors import ConfigurationError

from tabwarden_observability.attributes import SpanNames
from tabwarden_observability.environment import disabled, exporters_named, own_resource
from tabwarden_observability.exporter_bridge import (
    INTERVAL_S,
    ExportBridge,
    ExporterSink,
    ProcessorSink,
    SpanSink,
)
from tabwarden_observability.record_ring import RING_REQUESTS, RecordRing, RingSpanProcessor
from tabwarden_observability.records import FinishedRequest, RawRequest, finished
from tabwarden_observability.spans import build_spans
from tabwarden_observability.tracing import KEPT_REQUESTS, RingTracer

SHUTDOWN_S: Final = 2.0  # a person waits for the program to end


class Tracing:
    """What `setup_tracing` returns. Give `tracer` to the broker; await `shutdown` once the broker is closed.

    `provider` is for an adapter that makes OpenTelemetry spans of its own: the host's, or ours, which is
    never made the global one. Its spans pass the same allow-list.
    """

    def __init__(self, tracer: RingTracer, provider: TracerProvider, bridge: ExportBridge | None) -> None:
        self.tracer = tracer
        self.provider = provider
        self._bridge = bridge

    @property
    def exporting(self) -> bool:
        """True when finished requests go anywhere but into the local store."""
        return self._bridge is not None

    @property
    def dropped(self) -> int:
        """Spans that should have been exported and were not. Always 0 when nothing is exported."""
        return 0 if self._bridge is None else self._bridge.dropped

    def recent(self, count: int = 20) -> list[FinishedRequest]:
        """The last `count` finished requests, oldest first, out of the local store."""
        return self.tracer.recent(count)

    async def flush(self, timeout: float = SHUTDOWN_S) -> bool:
        """True when all that was finished before was handed on, or given up, within `timeout` seconds."""
        if self._bridge is None:
            return True
        with trio.move_on_after(timeout):
            return await trio.to_thread.run_sync(self._bridge.flush, timeout, abandon_on_cancel=True)
        return False

    async def shutdown(self, timeout: float = SHUTDOWN_S) -> int:
        """Export what is left, for `timeout` seconds at most, and end the export thread; gives `dropped`.

        Runs off the event loop, also below a cancelled scope (its own bound is the only one), and may be
        called again. A host's provider is neither flushed nor shut down.
        """
        bridge = self._bridge
        if bridge is None:
            return 0
        bridge.ask_to_stop()
        with trio.move_on_after(timeout, shield=True):
            await trio.to_thread.run_sync(bridge.stop, timeout, abandon_on_cancel=True)
        bridge.give_up()
        return bridge.dropped


def setup_tracing(
    *,
    provider: TracerProvider | None = None,
    exporters: Sequence[SpanExporter] | None = None,
    keep: int = KEPT_REQUESTS,
    ring: int = RING_REQUESTS,
    interval_s: float = INTERVAL_S,
    console: TextIO | None = None,
) -> Tracing:
    """Make a tracer and, if anything is to be exported, start its export thread.

    `provider`: a host's own; finished spans then go to its processors, with its resource and sampler, and
    the environment is not asked for exporters. `exporters`: instead of those of the environment. `keep`:
    requests in the local store. `ring`: requests that may wait for the export thread. `interval_s`: how long
    the first of a batch waits. `console` is where the console exporter writes: standard error by default,
    because standard output may carry a protocol.

    Raises `ConfigurationError` for an exporter, protocol or provider that cannot be used.
    """
    if provider is not None:
        if not isinstance(provider, TracerProvider):
            raise ConfigurationError("provider must be an opentelemetry.sdk.trace.TracerProvider")
        if exporters is not None:
            raise ConfigurationError("give a provider or exporters: a provider has its own")
    if disabled():
        return Tracing(RingTracer(keep=keep), provider or _own_provider(), None)
    waiting = RecordRing(ring)
    sink: SpanSink
    if provider is not None:
        sink = ProcessorSink(provider._active_span_processor)
    else:
        if exporters is None:
            exporters = _exporters_of_environment(console)
        provider = _own_provider()
        if not exporters:
            return Tracing(RingTracer(keep=keep), provider, None)
        provider.add_span_processor(RingSpanProcessor(waiting))
        sink = ExporterSink(exporters)
    bridge = ExportBridge(waiting, sink, _Builder(provider), interval_s=interval_s)
    bridge.start()
    return Tracing(RingTracer(keep=keep, sink=waiting), provider, bridge)


class _Builder:
    """Makes the spans of one request as `provider` would: with its resource and its sampler."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._names = SpanNames()

    def __call__(self, raw: RawRequest) -> list[ReadableSpan]:
        provider = self._provider
        return build_spans(finished(raw, self._names), provider.resource, provider.sampler)


def _own_provider() -> TracerProvider:
    # No exit handler: it could wait for a dead collector.
    return TracerProvider(resource=own_resource(), shutdown_on_exit=False)


def _exporters_of_environment(console: TextIO | None) -> list[SpanExporter]:
    return [
        OTLPSpanExporter() if name == "otlp" else ConsoleSpanExporter(out=console or sys.stderr)
        for name in exporters_named("TRACES")
    ]
