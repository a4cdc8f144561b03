"""Sets tracing up from the standard `OTEL_*` environment, and takes it down again within a bound.

Without an exporter or an endpoint in the environment (`environment`) nothing is exported, and the latest
requests are kept in memory for the person who runs the broker.
"""

import sys
from collections.abc import Sequence
from typing import Any, Final, TextIO

import trio
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter
from tabwarden.errors import ConfigurationError

from tabwarden_observability.environment import disabled, exporters_named, own_resource
from tabwarden_observability.exporter_bridge import ExportBridge
from tabwarden_observability.finishing import RequestReader
from tabwarden_observability.listing import as_plain
from tabwarden_observability.observers import Observer, Observers
from tabwarden_observability.otlp_outlet import OtlpOutlet
from tabwarden_observability.outlets import (
    ExporterSink,
    NoOutlet,
    Outlet,
    ProcessorSink,
    SpanOutlet,
)
from tabwarden_observability.record_ring import RING_REQUESTS, RecordRing, RingSpanProcessor
from tabwarden_observability.records import FinishedRequest
from tabwarden_observability.tracing import KEPT_REQUESTS, RingTracer

SHUTDOWN_S: Final = 2.0  # a person waits for the program to end


class Tracing:
    """What `setup_tracing` returns. Give `tracer` to the broker; await `shutdown` once the broker is closed.

    `provider` is for an adapter that makes OpenTelemetry spans of its own: the host's, or ours, which is
    never made the global one. Its spans pass the same allow-list.
    """

    def __init__(
        self,
        tracer: RingTracer,
        provider: TracerProvider,
        bridge: ExportBridge | None = None,
        observers: Observers | None = None,
    ) -> None:
        self.tracer = tracer
        self.provider = provider
        self._exporting = bridge is not None
        self._bridge = bridge
        self._observers = observers

    @property
    def exporting(self) -> bool:
        """True when finished requests are exported as spans."""
        return self._exporting

    @property
    def dropped(self) -> int:
        """Spans that should have been exported and were not. Always 0 when nothing is exported."""
        return self._bridge.dropped if self._bridge is not None and self.exporting else 0

    def observe(self, observer: Observer) -> None:
        """Have every request that finishes from now on given to `observer`, in the thread that exports.

        That thread is started if there is none. `observer` must not wait; what it raises is dropped.
        Requests that come faster than the thread takes them are left out, as spans are.
        """
        if self._observers is None:
            waiting = RecordRing()
            self._observers = Observers(RequestReader())
            self._bridge = ExportBridge(waiting, NoOutlet(), self._observers)
            self._bridge.start()
            self.tracer.send_to(waiting)
        self._observers.add(observer)

    def recent(self, count: int = 20) -> list[FinishedRequest]:
        """The last `count` finished requests, oldest first, out of the local store."""
        return self.tracer.recent(count)

    async def listed(self, limit: int, after: str | None = None) -> dict[str, Any]:
        """The newest requests as plain JSON values, for another process (`listing`): `limit` at most, and
        only those that finished after the one whose own span has the id `after`."""
        read = self.tracer.listed(limit, after)
        return await trio.to_thread.run_sync(lambda: as_plain(read()))

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
        return self.dropped


def setup_tracing(
    *,
    provider: TracerProvider | None = None,
    exporters: Sequence[SpanExporter] | None = None,
    keep: int = KEPT_REQUESTS,
    ring: int = RING_REQUESTS,
    interval_s: float | None = None,
    console: TextIO | None = None,
) -> Tracing:
    """Make a tracer and, if anything is to be exported, start its export thread.

    `provider`: a host's own; finished spans then go to its processors, with its resource and sampler, and
    the environment is not asked for exporters. `exporters`: instead of those of the environment. `keep`:
    requests in the local store. `ring`: requests that may wait for the export thread. `interval_s`: how long
    the first of a batch waits; by default 1 s when OTLP is the only exporter, else 0.2 s.
    `console` is where the console exporter writes: standard error by default, because standard output may
    carry a protocol.

    Raises `ConfigurationError` for an exporter, protocol or provider that cannot be used.
    """
    if provider is not None:
        if not isinstance(provider, TracerProvider):
            raise ConfigurationError("provider must be an opentelemetry.sdk.trace.TracerProvider")
        if exporters is not None:
            raise ConfigurationError("give a provider or exporters: a provider has its own")
    if disabled():
        return Tracing(RingTracer(keep=keep), provider or _own_provider())
    waiting, read = RecordRing(ring), RequestReader()
    outlet: Outlet
    if provider is not None:
        outlet = SpanOutlet(provider, read, ProcessorSink(provider._active_span_processor))
    else:
        if exporters is None:
            exporters = _exporters_of_environment(console)
        provider = _own_provider()
        if not exporters:
            return Tracing(RingTracer(keep=keep), provider)
        provider.add_span_processor(RingSpanProcessor(waiting))
        outlet = _outlet(exporters, provider, read)
    observers = Observers(read)
    bridge = ExportBridge(waiting, outlet, observers, interval_s=interval_s)
    bridge.start()
    return Tracing(RingTracer(keep=keep, sink=waiting), provider, bridge, observers)


def _outlet(exporters: Sequence[SpanExporter], provider: TracerProvider, read: RequestReader) -> Outlet:
    match exporters:
        # No subclass: it may do anything with the spans.
        case [exporter] if type(exporter) is OTLPSpanExporter and OtlpOutlet.fits(exporter):
            return OtlpOutlet(exporter, provider)
        case _:
            return SpanOutlet(provider, read, ExporterSink(exporters))


def _own_provider() -> TracerProvider:
    # No exit handler: it could wait for a dead collector.
    return TracerProvider(resource=own_resource(), shutdown_on_exit=False)


def _exporters_of_environment(console: TextIO | None) -> list[SpanExporter]:
    return [
        OTLPSpanExporter() if name == "otlp" else ConsoleSpanExporter(out=console or sys.stderr)
        for name in exporters_named("TRACES")
    ]
