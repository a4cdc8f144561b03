"""Histograms that cost under a microsecond a value.

OpenTelemetry's own takes 7 us, and a call brings some ten values: at full load that is a sixth of a core.
For our own exporters they are therefore counted here and put into what leaves; a host's provider gets its own
histograms, because nothing can be put into those from outside.
"""

import threading
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from time import time_ns
from typing import Protocol

from opentelemetry.metrics import Histogram, Meter
from opentelemetry.sdk.metrics import export as sdk

from tabwarden_observability.metric_table import Metric, Values, attributes_of
from tabwarden_observability.spans import SCOPE


class Recorder(Protocol):
    """One histogram. Not for the path of a call."""

    def record(self, value: float, values: Values, /) -> None:
        """Count `value`, in the metric's unit, under the values of its attributes."""
        ...


class MeterHistogram:
    """A `Recorder` of some provider's."""

    def __init__(self, meter: Meter, metric: Metric) -> None:
        self._metric = metric
        self._histogram: Histogram = meter.create_histogram(
            metric.name,
            unit=metric.unit,
            description=metric.description,
            explicit_bucket_boundaries_advisory=metric.bounds,
        )

    def record(self, value: float, values: Values, /) -> None:
        """See `Recorder`."""
        self._histogram.record(value, attributes_of(self._metric, values))


class _Counted:
    __slots__ = ("buckets", "highest", "lowest", "total")

    def __init__(self, bounds: int) -> None:
        self.buckets = [0] * (bounds + 1)
        self.total = 0.0
        self.lowest = float("inf")
        self.highest = float("-inf")


class OwnHistogram:
    """A `Recorder` of ours."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._lock = threading.Lock()  # what leaves is read by another thread, and must be of one piece
        self._counted: dict[Values, _Counted] = {}
        self._since_ns = time_ns()

    def record(self, value: float, values: Values, /) -> None:
        """See `Recorder`."""
        with self._lock:
            counted = self._counted.get(values)
            if counted is None:
                counted = self._counted[values] = _Counted(len(self._metric.bounds))
            # A bucket holds what is at most its bound (OpenTelemetry data model, "Histogram").
            counted.buckets[bisect_left(self._metric.bounds, value)] += 1
            counted.total += value
            if value < counted.lowest:
                counted.lowest = value
            if value > counted.highest:
                counted.highest = value

    def read(self, now_ns: int) -> sdk.Metric | None:
        """All that was counted since the start; None when nothing was."""
        metric = self._metric
        with self._lock:
            points = [
                sdk.HistogramDataPoint(
                    attributes=attributes_of(metric, values),
                    start_time_unix_nano=self._since_ns,
                    time_unix_nano=now_ns,
                    count=sum(counted.buckets),
                    sum=counted.total,
                    bucket_counts=tuple(counted.buckets),
                    explicit_bounds=metric.bounds,
                    min=counted.lowest,
                    max=counted.highest,
                )
                for values, counted in self._counted.items()
            ]
        if not points:
            return None
        data = sdk.Histogram(points, sdk.AggregationTemporality.CUMULATIVE)
        return sdk.Metric(metric.name, metric.description, metric.unit, data)


class OwnHistograms:
    """Those of one broker. They are always cumulative, also for an exporter that would rather have deltas."""

    def __init__(self) -> None:
        self._histograms: list[OwnHistogram] = []

    def add(self, metric: Metric) -> OwnHistogram:
        """A new one."""
        histogram = OwnHistogram(metric)
        self._histograms.append(histogram)
        return histogram

    def added_to(self, data: sdk.MetricsData) -> sdk.MetricsData:
        """`data` with them, among the metrics of our own scope."""
        now = time_ns()
        ours = [metric for one in self._histograms if (metric := one.read(now)) is not None]
        if not ours or not data.resource_metrics:
            return data
        first, *others = data.resource_metrics
        return sdk.MetricsData([replace(first, scope_metrics=_with(first.scope_metrics, ours)), *others])


def _with(scopes: Sequence[sdk.ScopeMetrics], ours: list[sdk.Metric]) -> list[sdk.ScopeMetrics]:
    added, found = [], False
    for scope in scopes:
        mine = not found and scope.scope.name == SCOPE.name
        found = found or mine
        added.append(replace(scope, metrics=[*scope.metrics, *ours]) if mine else scope)
    return added if found else [*added, sdk.ScopeMetrics(SCOPE, ours, "")]
