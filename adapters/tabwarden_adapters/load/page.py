"""The report as one page that stands alone: no script, nothing to fetch, and a policy (CSP) under which a
browser would do neither. It is built as a tree, so that every text is escaped by the serializer."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from tabwarden_observability.standalone_page import add_text, as_document, blank_page

from tabwarden_adapters.load.charts import Chart, short
from tabwarden_adapters.load.figures import Fairness, Percentiles
from tabwarden_adapters.load.outcomes import Kind
from tabwarden_adapters.load.report import Report
from tabwarden_adapters.load.samples import Calls
from tabwarden_adapters.load.timeline import curve, fills, steps
from tabwarden_adapters.load.verdict import Judgement
from tabwarden_adapters.load.words import VERDICT

_MOST_ROWS: Final = 50  # principals in the table: the rest is in the JSON
_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6570;--line:#d5dae0;--back:#fff;--card:#f6f8fa;
--ok:#2f7d4f;--limited:#b7791f;--bad:#c0392b;--failed:#e58a7f;--other:#7d4fa8;--second:#2b6cb0}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#9aa5b1;--line:#39414a;--back:#14181c;
--card:#1c2127;--ok:#4fae78;--limited:#d9a441;--bad:#e8695c;--failed:#a8483e;--other:#b08ad6;--second:#63a4e0}}
body{margin:0 auto;padding:24px;max-width:1040px;background:var(--back);color:var(--ink);
font:14px/1.45 system-ui,sans-serif}
h1{font-size:20px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{color:var(--soft);margin:0 0 12px}
.verdict{padding:10px 14px;border-radius:6px;background:var(--card);color:var(--ink);font-weight:600}
.verdict.right{border-left:6px solid var(--ok)}.verdict.wrong{border-left:6px solid var(--bad)}
.verdict.untried{border-left:6px solid var(--limited)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin-bottom:10px}
th,td{padding:3px 16px 3px 0;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
svg{display:block;max-width:100%;height:auto;background:var(--card);border-radius:6px;margin-bottom:6px}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
.guide{stroke:var(--line)}.level{stroke:var(--bad);stroke-dasharray:5 4}
.line{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.accepted{fill:var(--ok)}.limited{fill:var(--limited)}.refused{fill:var(--bad)}.failed{fill:var(--failed)}
.transport{fill:var(--other)}
.line.first{stroke:var(--ok);fill:none}.line.second{stroke:var(--second);fill:none}
.key{margin:0 0 14px}.key span{margin-right:18px}.key i{display:inline-block;width:10px;height:10px;
border-radius:2px;margin-right:6px}
i.accepted,i.first{background:var(--ok)}i.limited{background:var(--limited)}
i.refused{background:var(--bad)}i.failed{background:var(--failed)}i.transport{background:var(--other)}
i.second{background:var(--second)}
"""


def load_page(report: Report, samples: Calls, agents: Sequence[str]) -> str:
    """A whole HTML document. `agents` names each one's principal."""
    html, body = blank_page("Tabwarden: load", _STYLE)
    add_text(body, "h1", "Load")
    add_text(body, "p", _setting(report))
    add_text(body, "p", VERDICT[report.limiter]).set("class", f"verdict {_mood(report.limiter)}")
    lasted_ns = round(report.lasted_s * 1e9)
    _counts(body, report)
    _over_time(body, samples, lasted_ns)
    _windows(body, samples, agents, lasted_ns, report.limit)
    _latency(body, report, samples)
    _percentiles(body, "Phases of accepted calls, as the agents saw them", "phase", report.phases)
    if report.broker_phases:
        heading = f"Phases in the broker, of {report.broker_requests} recent requests"
        _percentiles(body, heading, "phase", report.broker_phases)
    _principals(body, report)
    return as_document(html)


def _setting(report: Report) -> str:
    begun = datetime.fromtimestamp(report.started_wall_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    pace = (
        "each as soon as it was answered"
        if report.rate is None
        else f"{short(report.rate)} calls a second each"
    )
    ended = {"time": "", "interrupt": ", ended early by an interrupt", "enough": ", ended by the most calls"}
    return (
        f"{report.agents} agents of {len(report.principals)} principals, {report.action}, {pace}, "
        f"for {report.lasted_s:.1f} s from {begun}{ended[report.ended_by]}."
    )


def _mood(judgement: Judgement) -> str:
    if judgement in (Judgement.TOO_MANY, Judgement.TOO_FEW):
        return "wrong"
    return judgement.value


def _counts(body: Element, report: Report) -> None:
    add_text(body, "h2", "Calls")
    table = _table(body, ("outcome", "calls", "share"))
    whole = max(report.calls, 1)
    for kind in Kind:
        count = getattr(report.counts, kind.title)
        _row(table, (kind.title, str(count), f"{100 * count / whole:.1f} %"))
    for code, count in report.counts.codes.items():
        if code != "ok":
            _row(table, (f"of these {code}", str(count), f"{100 * count / whole:.1f} %"))
    if report.rate is not None:
        _row(table, ("not sent in time", str(report.not_sent), ""))
    add_text(body, "p", f"{report.throughput:.1f} accepted calls a second.")


def _over_time(body: Element, samples: Calls, lasted_ns: int) -> None:
    pieces = steps(samples, lasted_ns)
    until = [piece.until_s for piece in pieces]
    width = pieces[0].until_s
    highest = max((sum(piece.ended) / width for piece in pieces), default=1) or 1
    add_text(body, "h2", "Answers over time")
    chart = Chart(body, x=(0, until[-1]), y=(0, highest * 1.08), x_title="seconds", y_title="calls a second")
    chart.bars(
        until,
        [
            [
                (count / width, kind.title, f"{count} {kind.title} until {piece.until_s:.1f} s")
                for kind, count in zip(Kind, piece.ended, strict=True)
            ]
            for piece in pieces
        ],
    )
    _key(body, [(kind.title, kind.title) for kind in Kind])
    times = [value for piece in pieces for value in (piece.p50_ms, piece.p99_ms) if value]
    if times:
        add_text(body, "h2", "Latency of accepted calls over time, from sending")
        chart = Chart(
            body,
            x=(0, until[-1]),
            y=_decades(times),
            x_title="seconds",
            y_title="ms",
            logarithmic=True,
        )
        middle = [piece.until_s - width / 2 for piece in pieces]
        chart.line([(at, one.p50_ms) for at, one in zip(middle, pieces, strict=True)], "first", "median")
        chart.line([(at, one.p99_ms) for at, one in zip(middle, pieces, strict=True)], "second", "p99")
        _key(body, [("first", "median"), ("second", "99th percentile")])


def _windows(body: Element, samples: Calls, agents: Sequence[str], lasted_ns: int, limit: int) -> None:
    filled = fills(samples, agents, lasted_ns)
    add_text(body, "h2", "Accepted in the minute before, by principal")
    highest = max(limit, *(one.most for one in filled)) * 1.12
    chart = Chart(body, x=(0, filled[-1].at_s), y=(0, highest), x_title="seconds", y_title="calls")
    chart.level(limit, f"limit {limit}")
    chart.line([(one.at_s, one.most) for one in filled], "first", "fullest principal")
    chart.line([(one.at_s, one.least) for one in filled], "second", "emptiest principal")
    _key(body, [("first", "the principal with the most"), ("second", "the principal with the least")])


def _latency(body: Element, report: Report, samples: Calls) -> None:
    accepted = [sample for sample in samples if sample.kind is Kind.ACCEPTED]
    lines = (
        ("first", "from sending", curve([one.ended - one.begun for one in accepted])),
        ("second", "from the intended start", curve([one.ended - one.intended for one in accepted])),
    )
    values = [value for _, _, points in lines for _, value in points if value > 0]
    if values:
        add_text(body, "h2", "Latency of accepted calls by percentile")
        last = max(len(points) for _, _, points in lines) - 1
        labels = [
            (number, f"{100 * share:.5g} %")
            for number, (share, _) in enumerate(lines[0][2])
            if number % 2 == 0
        ]
        chart = Chart(
            body,
            x=(0, max(last, 1)),
            y=_decades(values),
            x_title="",
            y_title="ms",
            logarithmic=True,
            x_labels=[*labels[:-1], (last, "longest")],
        )
        for kind, title, points in lines:
            chart.line([(number, value) for number, (_, value) in enumerate(points)], kind, title)
        _key(body, [(kind, title) for kind, title, _ in lines])
    found: dict[str, Percentiles | None] = {}
    for name, latency in report.latency.items():
        found[f"{name}, from sending"] = latency.from_sending
        found[f"{name}, from the intended start"] = latency.from_intended
    _percentiles(body, "Latency", "calls", found)


def _percentiles(body: Element, heading: str, first: str, rows: Mapping[str, Percentiles | None]) -> None:
    add_text(body, "h2", heading)
    table = _table(body, (first, "count", "p50 ms", "p90 ms", "p99 ms", "longest ms"))
    for name, one in rows.items():
        if one is not None:
            times = (one.p50_ms, one.p90_ms, one.p99_ms, one.max_ms)
            _row(table, (name, str(one.count), *(f"{value:.3f}" for value in times)))


def _principals(body: Element, report: Report) -> None:
    add_text(body, "h2", "Principals")
    add_text(body, "p", f"Between principals: {_fair(report.fairness_principals)}.")
    add_text(body, "p", f"Between agents: {_fair(report.fairness_agents, 'agent ')}.")
    headings = (
        "principal",
        "agents",
        "accepted",
        "limited",
        "other",
        "fullest window",
        "emptiest",
        "limiter",
    )
    table = _table(body, headings)
    worst = sorted(
        report.principals, key=lambda one: (not one.limiter.wrong, one.accepted / one.agents, one.id)
    )
    for one in worst[:_MOST_ROWS]:
        fewest = "" if one.limiter.fewest is None else str(one.limiter.fewest)
        figures = (one.agents, one.accepted, one.limited, one.other, one.limiter.most)
        _row(table, (one.id, *(str(value) for value in figures), fewest, one.limiter.judgement.value))
    if len(worst) > _MOST_ROWS:
        add_text(body, "p", f"{len(worst) - _MOST_ROWS} more are in the JSON file.")


def _fair(found: Fairness, what: str = "") -> str:
    if found.slowest_share is None or found.jain is None:
        return "nobody got anything"
    share = f"{what}{found.slowest} got {100 * found.slowest_share:.1f} % of a fair share"
    return f"{share}; Jain's index {found.jain:.4f}"


def _decades(values: Sequence[float]) -> tuple[float, float]:
    return min(values) * 0.8, max(values) * 1.25


def _key(body: Element, entries: Sequence[tuple[str, str]]) -> None:
    line = SubElement(body, "p", {"class": "key"})
    for kind, title in entries:
        span = SubElement(line, "span")
        SubElement(span, "i", {"class": kind}).tail = title


def _table(body: Element, headings: Sequence[str]) -> Element:
    table = SubElement(body, "table")
    row = SubElement(table, "tr")
    for heading in headings:
        add_text(row, "th", heading)
    return table


def _row(table: Element, cells: Sequence[str]) -> None:
    row = SubElement(table, "tr")
    for cell in cells:
        add_text(row, "td", cell)
