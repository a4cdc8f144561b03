"""Metrics that leave the process, and what happens when they cannot."""

import logging
import socket
from collections import Counter

import pytest
import trio
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.browser import Egress, HostCounts
from tabwarden_observability import setup_metrics

from tests.observability.collector import Collector, attributes_of

COUNTS = {("site.test", "connected"): 3, ("(refused)", "host-refused"): 7}


def points_of(collector: Collector) -> dict:
    """The last points of the one metric that was sent, by host and outcome."""
    [metric] = [
        metric
        for resource in collector.metric_requests[-1].resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert (metric.name, metric.unit) == ("tabwarden.egress.connections", "{connection}")
    assert metric.sum.is_monotonic
    found = {}
    for point in metric.sum.data_points:
        said = attributes_of(point)
        assert set(said) == {"server.address", "tabwarden.egress.outcome"}
        found[said["server.address"], said["tabwarden.egress.outcome"]] = point.as_int
    return found


async def test_an_otlp_receiver_gets_the_counts_and_nothing_of_the_machine(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=secret-host,service.version=7")
    metrics = setup_metrics()
    assert metrics.exporting
    metrics.observe_egress(lambda: COUNTS)
    await metrics.shutdown(timeout=30)
    assert set(collector.paths) == {"/v1/metrics"}
    assert points_of(collector) == COUNTS
    [resource] = collector.metric_requests[-1].resource_metrics
    said = attributes_of(resource.resource)
    assert (said["service.name"], said["service.version"]) == ("tabwarden", "7")
    assert "host.name" not in said
    assert not metrics.exporting
    await metrics.shutdown()  # again is harmless


async def test_nothing_is_exported_unless_it_was_asked_for(monkeypatch):
    metrics = setup_metrics()
    assert not metrics.exporting
    metrics.observe_egress(lambda: COUNTS)
    await metrics.shutdown()
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert not setup_metrics().exporting


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_METRICS_EXPORTER", "prometheus-ish"), ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")],
)
async def test_an_exporter_that_is_not_known(monkeypatch, name, value):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError):
        setup_metrics()


async def test_a_hosts_provider_is_used_and_left_alone():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    metrics = setup_metrics(provider=provider)
    metrics.observe_egress(lambda: COUNTS)
    await metrics.shutdown()
    data = reader.get_metrics_data()
    assert data is not None
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    assert sum(point.value for point in metric.data.data_points) == 10
    provider.shutdown()
    with pytest.raises(ConfigurationError):
        setup_metrics(provider=provider, exporters=[])


@pytest.mark.parametrize("kind", ["refuses", "hangs"])
async def test_a_dead_collector_is_given_up_and_nothing_is_logged(kind, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if kind == "refuses":
            listener.close()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{_port(listener, kind)}")
        metrics = setup_metrics()
        metrics.observe_egress(lambda: COUNTS)
        with trio.fail_after(30), trio.CancelScope() as scope:
            scope.cancel()  # its own bound is the only one
            await metrics.shutdown(timeout=0.4)
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


def _port(listener: socket.socket, kind: str) -> int:
    # Nothing listens on port 1 of a machine that anybody tests on.
    return 1 if kind == "refuses" else listener.getsockname()[1]


def test_a_page_can_neither_speak_through_a_metric_nor_crowd_others_out():
    counts = HostCounts()
    for number in range(10_000):
        counts.count(f"secret-{number}.evil.test", Egress.HOST)
    counts.count("secret.evil.test", Egress.MALFORMED)
    counts.count("site.test", Egress.CONNECTED)
    counts.count("site.test", Egress.ADDRESS)
    told = Counter(counts.for_metrics())
    assert told == {
        ("(refused)", "host-refused"): 10_000,
        ("(refused)", "malformed"): 1,
        ("site.test", "connected"): 1,
        ("site.test", "address-refused"): 1,
    }
