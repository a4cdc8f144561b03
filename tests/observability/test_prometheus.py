"""`OTEL_METRICS_EXPORTER=prometheus`."""

import socket
import sys
import threading
import urllib.request
from contextlib import suppress

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families
from tabwarden.errors import ConfigurationError
from tabwarden_observability import metric_table as table
from tabwarden_observability import setup_metrics, setup_tracing
from tabwarden_observability.metrics import Metrics

COUNTS = {("site.test", "connected"): 3, ("(refused)", "host-refused"): 7}


@pytest.fixture(autouse=True)
def any_port(monkeypatch):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "prometheus")
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", "0")


def serving() -> int:
    """Threads that answer scrapers."""
    return sum(thread.name == "tabwarden-scrapes" for thread in threading.enumerate())


def text_of(metrics: Metrics) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.scrape_port}/metrics", timeout=30) as answer:
        return answer.read().decode()


async def scraped(metrics: Metrics) -> dict:
    """The value of each series, by its name and its labels but for those of the scope."""
    text = await trio.to_thread.run_sync(text_of, metrics)
    return {
        (
            sample.name,
            *sorted(pair for pair in sample.labels.items() if not pair[0].startswith("otel_")),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_a_scraper_gets_counts_histograms_and_nothing_of_the_machine(monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=secret-host,service.version=7")
    metrics = setup_metrics()
    assert metrics.exporting
    assert metrics.wanted
    assert serving() == 1
    metrics.observe_egress(lambda: COUNTS)
    phases = metrics.histogram(table.PHASE_DURATION)
    for milliseconds in (3, 3, 40):
        phases.record(milliseconds / 1000, ("audit",))
    for _ in range(2):  # a second scrape has the same, once
        found = await scraped(metrics)
        egress = "tabwarden_egress_connections_total"
        assert found[egress, ("server_address", "site.test"), ("tabwarden_egress_outcome", "connected")] == 3
        audit = ("tabwarden_phase", "audit")
        assert found["tabwarden_phase_duration_seconds_count", audit] == 3
        assert found["tabwarden_phase_duration_seconds_sum", audit] == pytest.approx(0.046)
        assert found["tabwarden_phase_duration_seconds_bucket", ("le", "0.005"), audit] == 2
        assert found["tabwarden_phase_duration_seconds_bucket", ("le", "+Inf"), audit] == 3
        [target] = [key for key in found if key[0] == "target_info"]
        assert ("service_name", "tabwarden") in target
        assert "secret-host" not in str(found)
    await metrics.shutdown()
    assert metrics.scrape_port is None
    assert not metrics.exporting
    assert serving() == 0
    await metrics.shutdown()  # again is harmless


async def test_beside_otlp(collector, monkeypatch):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp, prometheus")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    metrics = setup_metrics()
    metrics.observe_egress(lambda: COUNTS)
    assert len(await scraped(metrics)) == len(COUNTS) + 1
    await metrics.shutdown(timeout=30)
    assert set(collector.paths) == {"/v1/metrics"}


async def test_a_dead_collector_and_an_idle_scraper_cannot_hold_the_end_up(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp,prometheus")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
        metrics = setup_metrics()
        metrics.observe_egress(lambda: COUNTS)
        with socket.create_connection(("127.0.0.1", metrics.scrape_port)) as idle:
            idle.sendall(b"GET /met")
            with trio.fail_after(30), trio.CancelScope() as scope:
                scope.cancel()  # its own bound is the only one
                await metrics.shutdown(timeout=0.4)
            idle.settimeout(30)
            with suppress(ConnectionResetError):  # it may not even have been let in
                assert idle.recv(1) == b""
    assert serving() == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", " "])
async def test_where_it_may_listen(monkeypatch, host):
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_HOST", host)
    metrics = setup_metrics()
    assert metrics.scrape_port is not None
    await metrics.shutdown()


ELSEWHERE = ["0.0.0.0", "::", "192.0.2.1", "example.org", "localhost.example.org", "*"]  # noqa: S104


@pytest.mark.parametrize("host", ELSEWHERE)
def test_other_addresses_are_refused_before_anything_listens(monkeypatch, host):
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_HOST", host)
    with pytest.raises(ConfigurationError, match="loopback address"):
        setup_metrics()
    assert serving() == 0


@pytest.mark.parametrize("port", ["-1", "65536", "999999999", "http", "9464.0", "٣"])
def test_a_port_that_is_none(monkeypatch, port):
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", port)
    with pytest.raises(ConfigurationError, match="OTEL_EXPORTER_PROMETHEUS_PORT must be a port"):
        setup_metrics()


def test_a_port_that_is_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", str(port))
        with pytest.raises(ConfigurationError, match=rf"port {port} .* set OTEL_EXPORTER_PROMETHEUS_PORT"):
            setup_metrics()


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    # None: as if it were not installed.
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.prometheus", None)
    monkeypatch.delitem(sys.modules, "tabwarden_observability.prometheus_reader", raising=False)
    with pytest.raises(ConfigurationError, match=r"pip install 'tabwarden\[prometheus\]'"):
        setup_metrics()


async def test_without_being_asked_for_nothing_of_it_is_loaded_or_listens(monkeypatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.delitem(sys.modules, "tabwarden_observability.prometheus_reader", raising=False)
    metrics = setup_metrics()
    assert metrics.scrape_port is None
    assert not metrics.exporting
    assert "tabwarden_observability.prometheus_reader" not in sys.modules
    await metrics.shutdown()


def test_traces_have_no_such_exporter(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "prometheus")
    with pytest.raises(ConfigurationError, match="must be otlp, console or none"):
        setup_tracing()
