"""A Grafana dashboard with a panel for each row of the table of metrics, and the files of both.

python -m tabwarden_observability.dashboards FOLDER
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tabwarden_observability import metric_table as table
from tabwarden_observability.alerts import quantile, rate, rules_file
from tabwarden_observability.metric_table import Kind, Metric
from tabwarden_observability.prometheus_names import label, series

DASHBOARD: Final = "tabwarden-dashboard.json"
RULES: Final = "tabwarden-alerts.yaml"

_COLUMNS: Final = 3
_WIDTH, _HEIGHT = 24 // _COLUMNS, 8  # Grafana's grid has 24 columns
_UNITS: Final = {"s": "s", "{fraction}": "percentunit"}
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}

Query = tuple[str, str]
"""PromQL, and the legend of its series."""

# What is read from two rows together.
_RATIOS: Final = (
    ("Time of one audit sync", "s", table.AUDIT_SYNC_TIME, table.AUDIT_SYNCS),
    ("Challenges under one pair of signatures", "short", table.BATCHED, table.BATCHES),
)


def dashboard() -> dict[str, Any]:
    """Grafana's dashboard JSON (schema version 39, Grafana 10 and later), with its data source to choose."""
    panels = [
        _panel(metric.name, metric.description, _unit(metric), _queries(metric)) for metric in table.METRICS
    ]
    panels += [
        _panel(title, f"{above.name} / {below.name}", unit, [(f"{rate(above)} / {rate(below)}", "mean")])
        for title, unit, above, below in _RATIOS
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, _COLUMNS)
        panel["id"] = number + 1
        panel["gridPos"] = {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
    return {
        "uid": "tabwarden",
        "title": "Tabwarden",
        "description": "Made by `make dashboards` from the table of metrics.",
        "tags": ["tabwarden"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }


def files() -> dict[str, str]:
    """What `observability/dashboards/` holds, by name."""
    return {DASHBOARD: json.dumps(dashboard(), indent=2) + "\n", RULES: rules_file()}


def _queries(metric: Metric) -> list[Query]:
    labels = tuple(label(name) for name in metric.attributes)
    if metric.kind is Kind.HISTOGRAM:
        # The one attribute that tells most; all together would be too many lines.
        by = label("http.route") if metric is table.HTTP_DURATION else labels[0]
        return [
            (quantile(share, metric, by), f"p{share * 100:.0f} {{{{{by}}}}}") for share in (0.5, 0.95, 0.99)
        ]
    legend = " ".join(f"{{{{{name}}}}}" for name in labels) or metric.name
    if metric.kind is Kind.COUNTER:
        return [(rate(metric, *labels), legend)]
    if metric.kind is Kind.UP_DOWN:
        return [(f"sum ({series(metric)})", metric.name)]
    return [(f"max ({series(metric)})", metric.name)]


def _unit(metric: Metric) -> str:
    if metric.kind is Kind.COUNTER:
        return "percentunit" if metric.unit == "s" else "cps"  # seconds a second are a share of one
    return _UNITS.get(metric.unit, "short")


def _panel(title: str, description: str, unit: str, queries: Sequence[Query]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "description": description,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for number, (expression, legend) in enumerate(queries)
        ],
    }


def main(folder: Path) -> None:
    """Write the files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
