"""Prometheus alert rules over the table of metrics."""

import json
from dataclasses import dataclass
from typing import Final

from tabwarden.model import TraceOutcome
from tabwarden.protocol.proof import AGENT_ROUTE

from tabwarden_observability import metric_table as table
from tabwarden_observability.prometheus_names import label, series

FOREIGN_USER: Final = "foreign-user"  # of the outcomes of `tabwarden.egress.connections`
_WINDOW: Final = "5m"


@dataclass(frozen=True, slots=True)
class Alert:
    """`expression` is PromQL; `lasting` is how long it must hold; `todo` is for whoever is woken."""

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    todo: str


def rate(metric: table.Metric, *by: str, where: str = "", suffix: str = "") -> str:
    """Growth per second, added up over all but the labels `by`."""
    around = f"sum by ({', '.join(by)})" if by else "sum"
    matched = f"{{{where}}}" if where else ""
    return f"{around} (rate({series(metric)}{suffix}{matched}[{_WINDOW}]))"


def quantile(share: float, metric: table.Metric, *by: str, where: str = "") -> str:
    """An estimated quantile of a histogram."""
    return f"histogram_quantile({share}, {rate(metric, 'le', *by, where=where, suffix='_bucket')})"


def _is(attribute: str, *values: str) -> str:
    """A matcher for one of `values`, which have no special characters."""
    return f"{label(attribute)}=~{json.dumps('|'.join(values))}"


_AGENT: Final = _is("http.route", AGENT_ROUTE.decode())
_FAILED: Final = _is("tabwarden.outcome", TraceOutcome.FAILED, TraceOutcome.DEADLINE)
_FOREIGN: Final = _is("tabwarden.egress.outcome", FOREIGN_USER)

ALERTS: Final = (
    Alert(
        "TabwardenAuditTrouble",
        f"max({series(table.AUDIT_TROUBLE)}) > 0",
        "0m",
        "critical",
        "The audit log cannot be written or signed.",
        "While it cannot be written, no action runs. Run `tabwarden doctor`, and look at the disk.",
    ),
    Alert(
        "TabwardenAuditSlow",
        f"{rate(table.AUDIT_SYNC_TIME)} / {rate(table.AUDIT_SYNCS)} > 0.1",
        "10m",
        "warning",
        "A sync of the audit log takes more than 100 ms.",
        "Every call waits for one before its action begins. Put the log on a quicker disk.",
    ),
    Alert(
        "TabwardenCallsFail",
        f"{rate(table.CALLS, where=_FAILED)} / {rate(table.CALLS)} > 0.1",
        "10m",
        "warning",
        "More than a tenth of the calls fail or run out of time.",
        "See `tabwarden trace --slowest`, and which codes tabwarden.calls has.",
    ),
    Alert(
        "TabwardenCallsSlow",
        f"{quantile(0.95, table.HTTP_DURATION, where=_AGENT)} > 5",
        "10m",
        "warning",
        "One call in twenty takes more than 5 seconds.",
        "See `tabwarden trace --slowest`: which phase is it?",
    ),
    Alert(
        "TabwardenRefusals",
        f"{rate(table.REFUSALS)} > 1",
        "5m",
        "warning",
        "Somebody without a good credential keeps asking.",
        "See tabwarden.refusals by reason: an agent with an old descriptor, or a program that tries.",
    ),
    Alert(
        "TabwardenNonceCacheFills",
        f"max({series(table.NONCES)}) > 0.8",
        "1m",
        "warning",
        "A principal's nonce cache is nearly full.",
        "When it is full that principal is refused, and no other. Find the agent that asks so often.",
    ),
    Alert(
        "TabwardenLoopLag",
        f"min_over_time({series(table.LOOP_LAG)}[{_WINDOW}]) > 0.25",
        "5m",
        "warning",
        "The broker's event loop keeps standing still for more than 250 ms.",
        "Every agent waits meanwhile. Is the machine short of processor time, or the disk slow?",
    ),
    Alert(
        "TabwardenForeignUser",
        f"{rate(table.EGRESS_CONNECTIONS, where=_FOREIGN)} > 0",
        "0m",
        "critical",
        "Another user of the machine asks the browser's filtering proxy for connections.",
        "They get none. Find out who it is.",
    ),
    Alert(
        "TabwardenSpansDropped",
        f"{rate(table.SPANS_DROPPED)} > 0",
        "10m",
        "info",
        "Traces do not reach their collector.",
        "Is it there, and quick enough? Calls are not affected.",
    ),
)


def rules_file() -> str:
    """A rule file of Prometheus (YAML). Texts are written as JSON strings, which YAML has as well."""
    lines = [
        "# Made by `make dashboards` from the table of metrics.",
        "groups:",
        "  - name: tabwarden",
        "    rules:",
    ]
    for alert in ALERTS:
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {json.dumps(alert.expression)}",
            f"        for: {alert.lasting}",
            "        labels:",
            f"          severity: {alert.severity}",
            "        annotations:",
            f"          summary: {json.dumps(alert.summary)}",
            f"          description: {json.dumps(alert.todo)}",
        ]
    return "\n".join(lines) + "\n"
