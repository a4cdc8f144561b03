"""What Prometheus itself makes of the files in observability/dashboards. `make test-backends` runs this."""

import json
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tabwarden_observability import metric_table as table
from tabwarden_observability import setup_metrics
from tabwarden_observability.alerts import ALERTS
from tabwarden_observability.dashboards import RULES, dashboard
from tabwarden_observability.prometheus_names import label, series

FOLDER = Path(__file__).resolve().parents[2] / "observability" / "dashboards"

# What makes each alert fire, a minute apart, and after how many minutes it has to.
FIRING: dict[str, tuple[dict[str, str], int]] = {
    "TabwardenAuditTrouble": ({"tabwarden_audit_trouble": "0x5 1x5"}, 7),
    "TabwardenAuditSlow": (
        {"tabwarden_audit_sync_time_seconds_total": "0+12x30", "tabwarden_audit_syncs_total": "0+60x30"},
        20,
    ),
    "TabwardenCallsFail": (
        {
            'tabwarden_calls_total{tabwarden_outcome="ok"}': "0+60x30",
            'tabwarden_calls_total{tabwarden_outcome="failed"}': "0+20x30",
        },
        20,
    ),
    "TabwardenCallsSlow": (
        {
            'http_server_request_duration_seconds_bucket{http_route="/v1/agent",le="5"}': "0+6x30",
            'http_server_request_duration_seconds_bucket{http_route="/v1/agent",le="10"}': "0+60x30",
            'http_server_request_duration_seconds_bucket{http_route="/v1/agent",le="+Inf"}': "0+60x30",
        },
        20,
    ),
    "TabwardenRefusals": ({'tabwarden_refusals_total{tabwarden_refusal_reason="proof"}': "0+90x30"}, 15),
    "TabwardenNonceCacheFills": ({"tabwarden_nonce_cache_fill": "0.1 0.9x10"}, 5),
    "TabwardenLoopLag": ({"tabwarden_loop_lag_seconds": "0.3x30"}, 20),
    "TabwardenForeignUser": (
        {'tabwarden_egress_connections_total{tabwarden_egress_outcome="foreign-user"}': "0 0 1x10"},
        4,
    ),
    "TabwardenSpansDropped": ({"tabwarden_spans_dropped_total": "0+9x30"}, 20),
}
# A broker at work, with nothing wrong.
CALM = {
    "tabwarden_audit_trouble": "0x30",
    "tabwarden_audit_sync_time_seconds_total": "0+0.1x30",
    "tabwarden_audit_syncs_total": "0+60x30",
    'tabwarden_calls_total{tabwarden_outcome="ok"}': "0+60x30",
    'tabwarden_calls_total{tabwarden_outcome="failed"}': "0+1x30",
    'tabwarden_calls_total{tabwarden_outcome="denied"}': "0+60x30",
    'http_server_request_duration_seconds_bucket{http_route="/v1/agent",le="0.1"}': "0+60x30",
    'http_server_request_duration_seconds_bucket{http_route="/v1/agent",le="+Inf"}': "0+60x30",
    'tabwarden_refusals_total{tabwarden_refusal_reason="proof"}': "0+1x30",
    "tabwarden_nonce_cache_fill": "0.1x30",
    "tabwarden_loop_lag_seconds": "0.01x9 0.9 0.01x20",
    'tabwarden_egress_connections_total{tabwarden_egress_outcome="connected"}': "0+60x30",
    "tabwarden_spans_dropped_total": "0x30",
}


def expressions() -> list[str]:
    panels = dashboard()["panels"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    return shown + [alert.expression for alert in ALERTS]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def trial(values: dict[str, str], minutes: int, expected: set[str]) -> dict[str, Any]:
    alerts = [
        {
            "eval_time": f"{minutes}m",
            "alertname": alert.name,
            "exp_alerts": [
                {
                    "exp_labels": {"severity": alert.severity},
                    "exp_annotations": {"summary": alert.summary, "description": alert.todo},
                }
            ]
            if alert.name in expected
            else [],
        }
        for alert in ALERTS
    ]
    inputs = [{"series": name, "values": value} for name, value in values.items()]
    return {"interval": "1m", "input_series": inputs, "alert_rule_test": alerts}


def test_alerts_fire_when_they_are_to_and_only_then(tmp_path: Path) -> None:
    tests = [trial(values, minutes, {name}) for name, (values, minutes) in FIRING.items()]
    tests += [trial(CALM, minutes, set()) for minutes in (1, 6, 15, 29)]
    tests += [trial({}, 10, set())]
    file = tmp_path / "trials.yaml"
    # JSON is YAML.
    file.write_text(
        json.dumps({"rule_files": [str(FOLDER / RULES)], "evaluation_interval": "1m", "tests": tests})
    )
    assert f"{len(ALERTS)} rules found" in run("promtool", "check", "rules", str(FOLDER / RULES))
    run("promtool", "test", "rules", str(file))


@contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Callable[[str], Any]]:
    """Prometheus itself while the block runs: a function that asks its API."""
    file = folder / "prometheus.yaml"
    file.write_text(json.dumps(config))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]

    def asked(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=30) as answer:
            return json.load(answer)["data"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("ready to receive web requests" in line for line in process.stderr)
            yield asked
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_prometheus_itself_takes_the_rules_and_every_query(tmp_path: Path) -> None:
    queries = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(expressions())]
    asked = tmp_path / "queries.yaml"
    asked.write_text(json.dumps({"groups": [{"name": "panels", "rules": queries}]}))
    with prometheus(tmp_path, {"rule_files": [str(FOLDER / RULES), str(asked)]}) as api:
        groups = api("rules")["groups"]
    found = {group["name"]: group["rules"] for group in groups}
    assert [rule["name"] for rule in found["tabwarden"]] == [alert.name for alert in ALERTS]
    assert len(found["panels"]) == len(queries)
    assert {rule["health"] for rules in found.values() for rule in rules} <= {"ok", "unknown"}


def test_what_prometheus_scrapes_has_the_names_of_the_queries(tmp_path: Path) -> None:
    """A host's own provider, with OpenTelemetry's reader for Prometheus: names and figures are read back."""
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    provider = MeterProvider([PrometheusMetricReader(registry=registry)], shutdown_on_exit=False)
    metrics = setup_metrics(provider=provider)
    for row in table.METRICS:
        values = tuple("word" for _ in row.attributes)
        if row.kind is table.Kind.HISTOGRAM:
            histogram = metrics.histogram(row)
            for number in range(100):
                histogram.record(0.003 if number < 90 else 0.04, values)
        else:
            metrics.observe(row, lambda values=values: {values: 7})
    scraped = threading.Semaphore(0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = generate_latest(registry)
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            scraped.release()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    job = {"job_name": "broker", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
    try:
        with prometheus(tmp_path, config) as api:
            for _ in range(3):  # when the third comes, the first has been stored
                assert scraped.acquire(timeout=30)
            for row in table.METRICS:
                suffix = "_count" if row.kind is table.Kind.HISTOGRAM else ""
                [found] = api(f"query?query={series(row)}{suffix}")["result"]
                assert found["value"][1] == ("100" if suffix else "7"), row.name
                assert {label(name) for name in row.attributes} <= set(found["metric"])
            buckets = f"sum by (le) ({series(table.PHASE_DURATION)}_bucket)"
            asked = urllib.parse.quote(f"histogram_quantile(0.95, {buckets})")
            [found] = api(f"query?query={asked}")["result"]
            # 95 of 100: half of the way through the ten between 20 and 50 ms.
            assert float(found["value"][1]) == pytest.approx(0.035)
    finally:
        server.shutdown()
        server.server_close()
        provider.shutdown()
