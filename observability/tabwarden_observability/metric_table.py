"""THE table of metrics: what is measured, in which unit, and by which attributes. Documents, dashboards and
alerts are made from it.

Names and units follow OpenTelemetry's semantic conventions ("Metrics", "HTTP metrics") where they have one.
Every attribute has a bounded number of values: fixed words of ours, or hosts that a policy allows.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a value is. A counter only grows; an up-down counter and a gauge are as things are now, and only
    the former may be added up over several brokers."""

    COUNTER = "counter"
    UP_DOWN = "up-down counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One row. `unit` is UCUM's; `attributes` are exported names; `bounds` are a histogram's, in its unit."""

    name: str
    kind: Kind
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


Values = tuple[str | int | None, ...]
"""Of a metric's attributes, in their order; None: this one has no such attribute."""


def attributes_of(metric: Metric, values: Values) -> dict[str, str | int]:
    """By exported name. Raises ValueError when there are too many or too few."""
    pairs = zip(metric.attributes, values, strict=True)
    return {name: value for name, value in pairs if value is not None}


# 50 us to 30 s: what a phase takes, and how long a person may be asked.
_SECONDS: Final = (
    0.00005,
    0.0001,
    0.0002,
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)

HTTP_DURATION: Final = Metric(
    "http.server.request.duration",
    Kind.HISTOGRAM,
    "s",
    "Requests of agents whose proof was good, from then to their answer.",
    (
        "http.request.method",
        "http.route",
        "http.response.status_code",
        "url.scheme",
        "error.type",
    ),
    _SECONDS,
)
HTTP_ACTIVE: Final = Metric(
    "http.server.active_requests",
    Kind.UP_DOWN,
    "{request}",
    "Calls in flight.",
    ("http.request.method", "url.scheme"),
)
PHASE_DURATION: Final = Metric(
    "tabwarden.phase.duration",
    Kind.HISTOGRAM,
    "s",
    "Phases of finished calls.",
    ("tabwarden.phase",),
    _SECONDS,
)
CDP_DURATION: Final = Metric(
    "tabwarden.cdp.duration",
    Kind.HISTOGRAM,
    "s",
    "Commands to the browser, by their domain.",
    ("tabwarden.cdp.domain",),
    _SECONDS,
)
CALLS: Final = Metric(
    "tabwarden.calls",
    Kind.COUNTER,
    "{call}",
    "Calls that ended.",
    ("tabwarden.action", "tabwarden.outcome", "tabwarden.code"),
)
REFUSALS: Final = Metric(
    "tabwarden.refusals",
    Kind.COUNTER,
    "{request}",
    "Requests refused before their seal opened. The peer is never told why.",
    ("tabwarden.refusal.reason",),
)
LIMITED: Final = Metric(
    "tabwarden.rate_limit.rejections",
    Kind.COUNTER,
    "{request}",
    "What was turned away because its principal asked too often.",
    ("tabwarden.rate_limit.kind",),
)
CHALLENGES: Final = Metric(
    "tabwarden.challenges.outstanding",
    Kind.UP_DOWN,
    "{challenge}",
    "Challenges handed out and not used. Expired ones count until their principal asks again.",
)
READY: Final = Metric(
    "tabwarden.challenges.ready",
    Kind.UP_DOWN,
    "{challenge}",
    "Signed challenges that nobody has asked for yet.",
)
BATCHES: Final = Metric(
    "tabwarden.signature.batches",
    Kind.COUNTER,
    "{batch}",
    "Pairs of signatures made, one for a batch of challenges.",
)
BATCHED: Final = Metric(
    "tabwarden.signature.challenges", Kind.COUNTER, "{challenge}", "Challenges signed, in all batches."
)
NONCES: Final = Metric(
    "tabwarden.nonce_cache.fill",
    Kind.GAUGE,
    "{fraction}",  # not `1`: translators to Prometheus do not agree on what to call that
    "How full the fullest principal's nonce cache is. When it is full, that principal is refused.",
)
PRINCIPALS: Final = Metric("tabwarden.principals", Kind.UP_DOWN, "{principal}", "Credentials that are good.")
CONNECTIONS: Final = Metric(
    "tabwarden.connections", Kind.UP_DOWN, "{connection}", "Open connections of agents."
)
SESSIONS: Final = Metric(
    "tabwarden.sessions", Kind.UP_DOWN, "{session}", "Open tabs, less those that are kept from all agents."
)
AUDIT_RECORDS: Final = Metric(
    "tabwarden.audit.records", Kind.COUNTER, "{record}", "Records appended to the audit log."
)
AUDIT_SYNCS: Final = Metric(
    "tabwarden.audit.syncs", Kind.COUNTER, "{sync}", "Batches of records that were synced to the disk."
)
AUDIT_SYNC_TIME: Final = Metric(
    "tabwarden.audit.sync.time", Kind.COUNTER, "s", "Time that those syncs took, together."
)
AUDIT_LAG: Final = Metric(
    "tabwarden.audit.lag", Kind.GAUGE, "{record}", "Records appended that are not on stable storage yet."
)
AUDIT_TROUBLE: Final = Metric(
    "tabwarden.audit.trouble",
    Kind.GAUGE,
    "{fault}",
    "1 while records cannot be written, and so no action runs, or cannot be signed; else 0.",
)
LOOP_LAG: Final = Metric(
    "tabwarden.loop.lag",
    Kind.GAUGE,
    "s",
    "Longest time since the last export in which the event loop did not look at its sockets.",
)
LOOP_BUSY: Final = Metric(
    "tabwarden.loop.busy", Kind.COUNTER, "s", "Time that the event loop spent in tasks."
)
TASKS: Final = Metric("tabwarden.loop.tasks", Kind.GAUGE, "{task}", "Tasks of the event loop.")
THREADS: Final = Metric("tabwarden.loop.threads", Kind.GAUGE, "{thread}", "Worker threads in use.")
SPANS_DROPPED: Final = Metric(
    "tabwarden.spans.dropped", Kind.COUNTER, "{span}", "Spans that should have been exported and were not."
)
EGRESS_CONNECTIONS: Final = Metric(
    "tabwarden.egress.connections",
    Kind.COUNTER,
    "{connection}",
    "Connections that pages asked the filtering proxy for, by what became of them.",
    ("server.address", "tabwarden.egress.outcome"),
)

METRICS: Final = (
    HTTP_DURATION,
    HTTP_ACTIVE,
    PHASE_DURATION,
    CDP_DURATION,
    CALLS,
    REFUSALS,
    LIMITED,
    CHALLENGES,
    READY,
    BATCHES,
    BATCHED,
    NONCES,
    PRINCIPALS,
    CONNECTIONS,
    SESSIONS,
    AUDIT_RECORDS,
    AUDIT_SYNCS,
    AUDIT_SYNC_TIME,
    AUDIT_LAG,
    AUDIT_TROUBLE,
    LOOP_LAG,
    LOOP_BUSY,
    TASKS,
    THREADS,
    SPANS_DROPPED,
    EGRESS_CONNECTIONS,
)


def as_markdown() -> str:
    """The table as docs/operations.md has it."""
    rows = ["| metric | kind | unit | attributes | |", "|---|---|---|---|---|"]
    for metric in METRICS:
        attributes = ", ".join(f"`{name}`" for name in metric.attributes)
        cells = (f"`{metric.name}`", metric.kind.value, f"`{metric.unit}`", attributes, metric.description)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"
