"""The files in observability/dashboards are what the metric table makes of them."""

import re

from tabwarden_adapters.browser import Egress
from tabwarden_observability import metric_table as table
from tabwarden_observability.alerts import ALERTS, FOREIGN_USER
from tabwarden_observability.dashboards import dashboard, files
from tabwarden_observability.prometheus_names import label, series

from tests.observability.backends import FIRING, FOLDER, expressions


def test_the_files_are_what_is_generated() -> None:
    kept = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert kept == files(), "run `make dashboards`"


def test_only_metrics_and_labels_of_the_table_are_asked_for() -> None:
    names = {series(row) for row in table.METRICS}
    names |= {f"{series(row)}_bucket" for row in table.METRICS if row.kind is table.Kind.HISTOGRAM}
    labels = {label(name) for row in table.METRICS for name in row.attributes} | {"le"}
    for expression in expressions():
        bare = re.sub(r'"[^"]*"', "", expression)
        words = {word for word in re.findall(r"[a-z_]{3,}", bare) if "_" in word or word == "le"}
        assert words - {"histogram_quantile", "min_over_time"} <= names | labels, expression


def test_every_row_has_a_panel_and_they_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert {row.name for row in table.METRICS} <= {panel["title"] for panel in panels}
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_names_follow_the_translation() -> None:
    assert series(table.HTTP_DURATION) == "http_server_request_duration_seconds"
    assert series(table.CALLS) == "tabwarden_calls_total"
    assert series(table.LOOP_BUSY) == "tabwarden_loop_busy_seconds_total"
    assert series(table.NONCES) == "tabwarden_nonce_cache_fill"
    assert series(table.CONNECTIONS) == "tabwarden_connections"


def test_each_alert_is_tried_and_its_words_are_real() -> None:
    assert [alert.name for alert in ALERTS] == list(FIRING)
    assert FOREIGN_USER in set(Egress)
