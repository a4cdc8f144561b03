"""Metrics: what the broker's parts count anyway, read by OpenTelemetry when it exports.

Set up from `OTEL_METRICS_EXPORTER` and the endpoints, as traces are (`environment`); the SDK reads
`OTEL_METRIC_EXPORT_INTERVAL` (milliseconds). Reading and exporting happen in a thread of the SDK, or in the
one that answers Prometheus (`scrape_server`), never in the path of a call. What there is stands in
`metric_table`.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, TextIO

import trio
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from tabwarden.errors import ConfigurationError

from tabwarden_observability.attributes import RESOURCE_ATTRIBUTES, clean
from tabwarden_observability.environment import Exporter, disabled, exporters_named, own_resource
from tabwarden_observability.histograms import MeterHistogram, OwnHistograms, Recorder
from tabwarden_observability.metric_table import EGRESS_CONNECTIONS, Kind, Metric, Values, attributes_of
from tabwarden_observability.mute import muted
from tabwarden_observability.prometheus_endpoint import prometheus_endpoint
from tabwarden_observability.scrape_server import ScrapeServer
from tabwarden_observability.setup import SHUTDOWN_S
from tabwarden_observability.spans import SCOPE

_LOGGERS: Final = ("opentelemetry.exporter.otlp.proto.http.metric_exporter", "opentelemetry.sdk.metrics")

Readings = Mapping[Values, float]
Counts = Mapping[tuple[str, str], int]


class Metrics:
    """What `setup_metrics` returns. Name what is to be observed; await `shutdown` at the end."""

    def __init__(
        self,
        provider: MeterProvider,
        own: sdk.MeterProvider | None = None,
        histograms: OwnHistograms | None = None,
        *,
        wanted: bool,
        scrapes: ScrapeServer | None = None,
    ) -> None:
        self._meter = provider.get_meter(SCOPE.name, SCOPE.version)
        self._own = own
        self._scrapes = scrapes
        self._histograms = histograms
        self._wanted = wanted

    @property
    def exporting(self) -> bool:
        """True when a thread of ours exports what is observed."""
        return self._own is not None

    @property
    def wanted(self) -> bool:
        """True when anybody asks for what is observed: a thread of ours, or a host's provider."""
        return self._wanted

    @property
    def scrape_port(self) -> int | None:
        """Where a Prometheus may ask for the figures; None when they are not served, or not any more."""
        return self._scrapes.port if self._scrapes is not None and self._own is not None else None

    def observe(self, metric: Metric, read: Callable[[], Readings]) -> None:
        """Export what `read` gives: the value of each combination of the metric's attributes.

        `read` is called from the exporting thread; when it raises, this metric is left out this time. It
        must bound the number of combinations, and take none from a page.
        """

        def look(_: CallbackOptions) -> Iterable[Observation]:
            try:
                return [Observation(value, attributes_of(metric, values)) for values, value in read().items()]
            except Exception:  # the SDK would log its text
                return []

        make = {
            Kind.COUNTER: self._meter.create_observable_counter,
            Kind.UP_DOWN: self._meter.create_observable_up_down_counter,
            Kind.GAUGE: self._meter.create_observable_gauge,
        }[metric.kind]
        make(metric.name, [look], unit=metric.unit, description=metric.description)

    def histogram(self, metric: Metric) -> Recorder:
        """For values that come one by one, in a thread that exports."""
        return (
            self._histograms.add(metric)
            if self._histograms is not None
            else MeterHistogram(self._meter, metric)
        )

    def observe_egress(self, read: Callable[[], Counts]) -> None:
        """Connections of the browser through its proxies: (host, outcome) -> how many so far. `read` as for
        `observe`; it must name no host that only a page has chosen."""
        self.observe(EGRESS_CONNECTIONS, lambda: {(*names,): count for names, count in read().items()})

    async def shutdown(self, timeout: float = SHUTDOWN_S) -> None:
        """Export once more, for `timeout` seconds at most. Runs off the event loop, also below a cancelled
        scope. A host's provider is left alone."""
        own, self._own = self._own, None
        if own is None:
            return
        if self._scrapes is not None:
            self._scrapes.ask_to_stop()
        with trio.move_on_after(timeout, shield=True):
            await trio.to_thread.run_sync(_shut_down, own, self._scrapes, timeout, abandon_on_cancel=True)


def setup_metrics(
    *,
    provider: MeterProvider | None = None,
    exporters: Sequence[MetricExporter] | None = None,
    console: TextIO | None = None,
) -> Metrics:
    """Make a meter and, if anything is to be exported, start its thread.

    `provider`: a host's own, which is used and never shut down. `exporters`: instead of those of the
    environment. `console` is where the console exporter writes: standard error by default. Raises
    `ConfigurationError` for an exporter, protocol or port that cannot be used.
    """
    if provider is not None:
        if exporters is not None:
            raise ConfigurationError("give a provider or exporters: a provider has its own")
        return Metrics(provider, wanted=True)
    histograms = OwnHistograms()
    readers: list[MetricReader] = []
    scrapes: ScrapeServer | None = None
    if exporters is None:
        named = [] if disabled() else exporters_named("METRICS")
        exporters = _exporters_of_environment(named, console)
        if "prometheus" in named:
            reader, scrapes = prometheus_endpoint(histograms)
            readers.append(reader)
    resource = Resource(clean(own_resource().attributes, RESOURCE_ATTRIBUTES))
    readers += [PeriodicExportingMetricReader(_Outlet(exporter, histograms)) for exporter in exporters]
    own = sdk.MeterProvider(
        readers,
        resource=resource,
        exemplar_filter=sdk.AlwaysOffExemplarFilter(),  # they carry attributes that no table names
        shutdown_on_exit=False,  # an exit handler could wait for a dead collector
    )
    if scrapes is not None:
        scrapes.start()
    return Metrics(own, own if readers else None, histograms, wanted=bool(readers), scrapes=scrapes)


class _Outlet(MetricExporter):
    """Another exporter that gets `histograms` as well, logs nothing and never raises: the SDK would log the
    text of what it raises."""

    def __init__(self, exporter: MetricExporter, histograms: OwnHistograms) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter = exporter
        self._histograms = histograms

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        try:
            with muted(*_LOGGERS):
                whole = self._histograms.added_to(metrics_data)
                return self._exporter.export(whole, timeout_millis=timeout_millis, **kwargs)
        except Exception:
            return MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        with muted(*_LOGGERS):
            self._exporter.shutdown(timeout_millis, **kwargs)


def _shut_down(provider: sdk.MeterProvider, scrapes: ScrapeServer | None, timeout: float) -> None:
    deadline = monotonic() + timeout
    with muted(*_LOGGERS):
        provider.shutdown(timeout * 1000)
    if scrapes is not None:
        scrapes.stop(max(deadline - monotonic(), 0.0))


def _exporters_of_environment(named: Sequence[Exporter], console: TextIO | None) -> list[MetricExporter]:
    return [
        OTLPMetricExporter() if name == "otlp" else ConsoleMetricExporter(out=console or sys.stderr)
        for name in named
        if name != "prometheus"
    ]
