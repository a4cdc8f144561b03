"""What a metric is called in Prometheus, once OTLP was translated (OpenTelemetry specification, "Prometheus
and OpenMetrics Compatibility")."""

from typing import Final

from tabwarden_observability.metric_table import Kind, Metric

_UNITS: Final = {"s": "_seconds", "By": "_bytes"}


def label(attribute: str) -> str:
    """The label of an attribute."""
    return attribute.replace(".", "_")


def series(metric: Metric) -> str:
    """The name without `_bucket`, `_sum` and `_count`, which a histogram's three series have after it.

    The unit is in the name, but for those in braces, which are notes.
    """
    name = label(metric.name) + _UNITS.get(metric.unit, "")
    return f"{name}_total" if metric.kind is Kind.COUNTER else name
