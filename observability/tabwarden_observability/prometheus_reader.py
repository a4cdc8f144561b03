"""The figures in Prometheus' text format, by OpenTelemetry's own translation. Needs the extra `prometheus`:
import it only when it is asked for."""

from typing import Any, Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics.export import MetricsData
from prometheus_client import CollectorRegistry, generate_latest

from tabwarden_observability.histograms import OwnHistograms
from tabwarden_observability.mute import muted

_LOGGERS: Final = ("opentelemetry.exporter.prometheus", "opentelemetry.sdk.metrics")


class ScrapedReader(PrometheusMetricReader):
    """A reader that has a registry of its own, not the process-wide one, and knows of `histograms` too."""

    def __init__(self, histograms: OwnHistograms) -> None:
        self._histograms = histograms
        self._figures = CollectorRegistry()
        super().__init__(registry=self._figures)

    def text(self) -> bytes:
        """All figures as they are now. For one thread at a time."""
        with muted(*_LOGGERS):
            return generate_latest(self._figures)

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> None:
        super()._receive_metrics(self._histograms.added_to(metrics_data), timeout_millis, **kwargs)
