"""What Prometheus itself makes of the files in observability/dashboards. `make test-backends` runs this."""

import json
import re
import subprocess
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.client import AgentClient
from tabwarden.model import Phase
from tabwarden_observability import AuditFigures, broker_metrics, setup_metrics, setup_tracing
from tabwarden_observability import metric_table as table
from tabwarden_observability.alerts import ALERTS
from tabwarden_observability.dashboards import RULES, dashboard
from tabwarden_observability.metric_table import Values
from tabwarden_observability.metrics import Metrics
from tabwarden_observability.prometheus_names import label, series
from tabwarden_observability.readings import walk

from tests.attacks.serving import serve
from tests.observability.backend_programs import ROOT, prometheus

CALLS = 40
FOLDER = ROOT / "observability" / "dashboards"

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


def test_the_settings_in_the_document_are_good(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    [settings] = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "prometheus.yaml").write_text(settings)
    (tmp_path / RULES).write_bytes((FOLDER / RULES).read_bytes())
    assert f"{len(ALERTS)} rules found" in run(
        "promtool", "check", "config", str(tmp_path / "prometheus.yaml")
    )


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


@pytest.fixture
def scraped_metrics(monkeypatch: pytest.MonkeyPatch) -> Metrics:
    """Set up by the environment as a user would, at a port that is free."""
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "prometheus")
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", "0")
    return setup_metrics()


def scraping(metrics: Metrics) -> dict[str, Any]:
    job = {"job_name": "broker", "static_configs": [{"targets": [f"localhost:{metrics.scrape_port}"]}]}
    return {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}


class Scrapes:
    """Counts how often the figures are read; Prometheus asks once in a second."""

    def __init__(self) -> None:
        self._seen = threading.Semaphore(0)

    def seen(self) -> None:
        self._seen.release()

    async def stored(self) -> None:
        """Return when all that is counted now has been stored: the third scrape from here comes after the
        second was stored, and the second began after this."""
        while self._seen.acquire(blocking=False):
            pass
        for _ in range(3):
            assert await trio.to_thread.run_sync(self._seen.acquire, True, 60.0)


async def values(api: Callable[[str], Any], query: str) -> list[dict[str, Any]]:
    asked = f"query?query={urllib.parse.quote(query)}"
    found: list[dict[str, Any]] = (await trio.to_thread.run_sync(api, asked))["result"]
    return found


async def test_what_prometheus_scrapes_has_the_names_of_the_queries(
    tmp_path: Path, scraped_metrics: Metrics
) -> None:
    """Every row of the table, served by ourselves: names and figures are read back."""
    metrics, scrapes = scraped_metrics, Scrapes()

    def seven(values: Values) -> dict[Values, float]:
        scrapes.seen()
        return {values: 7}

    for row in table.METRICS:
        words = tuple("word" for _ in row.attributes)
        if row.kind is table.Kind.HISTOGRAM:
            histogram = metrics.histogram(row)
            for number in range(100):
                histogram.record(0.003 if number < 90 else 0.04, words)
        elif row is table.CALLS:
            metrics.observe(row, partial(seven, words))
        else:
            metrics.observe(row, partial(dict, {words: 7}))
    with prometheus(tmp_path, scraping(metrics)) as api:
        await scrapes.stored()
        for row in table.METRICS:
            suffix = "_count" if row.kind is table.Kind.HISTOGRAM else ""
            [found] = await values(api, f"{series(row)}{suffix}")
            assert found["value"][1] == ("100" if suffix else "7"), row.name
            assert {label(name) for name in row.attributes} <= set(found["metric"])
        buckets = f"sum by (le) ({series(table.PHASE_DURATION)}_bucket)"
        [found] = await values(api, f"histogram_quantile(0.95, {buckets})")
        # 95 of 100: half of the way through the ten between 20 and 50 ms.
        assert float(found["value"][1]) == pytest.approx(0.035)
    await metrics.shutdown()


def quantile(durations: Sequence[float], share: float) -> float:
    """As Prometheus reckons it: even steps within the bucket that it lies in."""
    bounds = (0.0, *table.PHASE_DURATION.bounds)
    rank, below = share * len(durations), 0
    for low, high in pairwise(bounds):
        within = sum(low < duration <= high for duration in durations)
        if below + within >= rank:
            return low + (high - low) * (rank - below) / within
        below += within
    raise AssertionError("longer than the last bucket")


async def test_prometheus_knows_how_long_the_phases_of_a_broker_took(
    tmp_path: Path, scraped_metrics: Metrics
) -> None:
    """A running broker, our own endpoint, Prometheus' own `histogram_quantile`: as the local store says."""
    metrics, scrapes, tracing = scraped_metrics, Scrapes(), setup_tracing()

    def sessions() -> int:
        scrapes.seen()
        return 4

    with prometheus(tmp_path, scraping(metrics)) as api:
        async with serve(tracer=tracing.tracer) as broker:
            figures = AuditFigures(records=7, syncs=3, sync_s=0.5, lag=2, trouble=False)
            with broker_metrics(
                metrics,
                tracing=tracing,
                statistics=broker.control.statistics,
                audit=lambda: figures,
                sessions=sessions,
            ):
                async with AgentClient(broker.descriptor) as client:
                    for _ in range(CALLS):
                        assert await client.call("sessions") == []
                assert await tracing.flush(timeout=60)
                await scrapes.stored()
                phases = f"sum by (le, tabwarden_phase) ({series(table.PHASE_DURATION)}_bucket)"
                told = {
                    share: {
                        one["metric"]["tabwarden_phase"]: float(one["value"][1])
                        for one in await values(api, f"histogram_quantile({share}, {phases})")
                    }
                    for share in (0.5, 0.95)
                }
                [calls] = await values(api, f"sum({series(table.CALLS)})")
                [up] = await values(api, "up")
    await tracing.shutdown()
    await metrics.shutdown()
    durations: dict[str, list[float]] = {}
    for request in tracing.recent(CALLS):
        for span, _ in walk(request.phases):
            durations.setdefault(span.name, []).append(span.duration_ns / 1e9)
    # Each in every call; the audit comes before the action and after it.
    assert {name: len(each) for name, each in durations.items()} == {
        phase.value: 2 * CALLS if phase is Phase.AUDIT else CALLS for phase in Phase
    }
    for share, found in told.items():
        assert found == {name: pytest.approx(quantile(each, share)) for name, each in durations.items()}
    assert (calls["value"][1], up["value"][1]) == (str(CALLS), "1")
    shown = ", ".join(f"{name} {seconds * 1000:.3f}" for name, seconds in sorted(told[0.95].items()))
    print(f"\nPrometheus: p95 of {CALLS} calls in ms, as the local store has it: {shown}")  # noqa: T201
