"""Metrics: what the broker's parts count anyway, read by OpenTelemetry when it exports.

Set up from `OTEL_METRICS_EXPORTER` and the endpoints, as traces are (`environment`); the SDK reads
`OTEL_METRIC_EXPORT_INTERVAL` (milliseconds). Reading and exporting happen in a thread of the SDK, never in
the path of a call.

| metric | kind | unit | attributes |
|---|---|---|---|
| `tabwarden.egress.connections` | counter | `{connection}` | `server.address`, `tabwarden.egress.outcome` |
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

import trio
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from tabwarden.errors import ConfigurationError

from tabwarden_observability.attributes import RESOURCE_ATTRIBUTES, clean
from tabwarden_observability.environment import disabled, exporters_named, own_resource
from tabwarden_observability.mute import muted
from tabwarden_observability.setup import SHUTDOWN_S
from tabwarden_observability.spans import SCOPE

EGRESS_CONNECTIONS: Final = "tabwarden.egress.connections"
SERVER_ADDRESS: Final = "server.address"  # OpenTelemetry semantic conventions, "General attributes"
EGRESS_OUTCOME: Final = "tabwarden.egress.outcome"

_LOGGERS: Final = ("opentelemetry.exporter.otlp.proto.http.metric_exporter", "opentelemetry.sdk.metrics")

Counts = Mapping[tuple[str, str], int]


class Metrics:
    """What `setup_metrics` returns. Name what is to be observed; await `shutdown` at the end."""

    def __init__(self, provider: MeterProvider, own: sdk.MeterProvider | None) -> None:
        self._meter = provider.get_meter(SCOPE.name, SCOPE.version)
        self._own = own

    @property
    def exporting(self) -> bool:
        """True when a thread of ours exports what is observed."""
        return self._own is not None

    def observe_egress(self, read: Callable[[], Counts]) -> None:
        """Connections of the browser through its proxies: (host, outcome) -> how many so far.

        `read` is called from the exporting thread. It must bound the number of hosts, and name none that
        only a page has chosen.
        """

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [
                Observation(count, {SERVER_ADDRESS: host, EGRESS_OUTCOME: outcome})
                for (host, outcome), count in read().items()
            ]

        self._meter.create_observable_counter(
            EGRESS_CONNECTIONS,
            [observe],
            unit="{connection}",
            description="Connections that pages asked the filtering proxy for, by what became of them.",
        )

    async def shutdown(self, timeout: float = SHUTDOWN_S) -> None:
        """Export once more, for `timeout` seconds at most. Runs off the event loop, also below a cancelled
        scope. A host's provider is left alone."""
        own, self._own = self._own, None
        if own is None:
            return
        with trio.move_on_after(timeout, shield=True):
            await trio.to_thread.run_sync(_shut_down, own, timeout, abandon_on_cancel=True)


def setup_metrics(
    *,
    provider: MeterProvider | None = None,
    exporters: Sequence[MetricExporter] | None = None,
    console: TextIO | None = None,
) -> Metrics:
    """Make a meter and, if anything is to be exported, start its thread.

    `provider`: a host's own, which is used and never shut down. `exporters`: instead of those of the
    environment. `console` is where the console exporter writes: standard error by default. Raises
    `ConfigurationError` for an exporter or protocol that cannot be used.
    """
    if provider is not None:
        if exporters is not None:
            raise ConfigurationError("give a provider or exporters: a provider has its own")
        return Metrics(provider, None)
    if exporters is None:
        exporters = [] if disabled() else _exporters_of_environment(console)
    resource = Resource(clean(own_resource().attributes, RESOURCE_ATTRIBUTES))
    own = sdk.MeterProvider(
        [PeriodicExportingMetricReader(_Quiet(exporter)) for exporter in exporters],
        resource=resource,
        shutdown_on_exit=False,  # an exit handler could wait for a dead collector
    )
    return Metrics(own, own if exporters else None)


class _Quiet(MetricExporter):
    """Another exporter that logs nothing and never raises: the SDK would log the text of what it raises."""

    def __init__(self, exporter: MetricExporter) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter = exporter

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        try:
            with muted(*_LOGGERS):
                return self._exporter.export(metrics_data, timeout_millis=timeout_millis, **kwargs)
        except Exception:
            return MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        with muted(*_LOGGERS):
            self._exporter.shutdown(timeout_millis, **kwargs)


def _shut_down(provider: sdk.MeterProvider, timeout: float) -> None:
    with muted(*_LOGGERS):
        provider.shutdown(timeout * 1000)


def _exporters_of_environment(console: TextIO | None) -> list[MetricExporter]:
    return [
        OTLPMetricExporter() if name == "otlp" else ConsoleMetricExporter(out=console or sys.stderr)
        for name in exporters_named("METRICS")
    ]
