"""Recent requests as one page: waterfalls and the distribution of each phase's durations.

The page stands alone: no script, nothing to fetch, and a policy (CSP, W3C Content Security Policy Level 3)
under which a browser would do neither even if something had found its way in. It is built as a tree, so that
every text is escaped by the serializer and by nothing else.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from tabwarden_observability.readings import ending, ms, phase_durations, quantile, walk
from tabwarden_observability.records import FinishedRequest
from tabwarden_observability.standalone_page import add_text, as_document, blank_page

# 1, 2, 5 in each decade, from 10 us to 100 s, in nanoseconds: a phase is somewhere in between.
_BOUNDS: Final = (*(step * 10**power for power in range(4, 11) for step in (1, 2, 5)), 10**11)
_FLOOR: Final = 86  # of a histogram, in pixels
_SHOWN: Final = 3  # waterfalls that are open from the start
_ROW: Final = 20
_NAMES: Final = 190  # pixels: the longest name that is let through, at its depth
_BARS: Final = 600
_WIDTH: Final = _NAMES + _BARS + 230

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6570;--line:#d5dae0;--back:#fff;--card:#f6f8fa;
--ok:#2f7d4f;--denied:#b7791f;--bad:#c0392b;--other:#7d4fa8}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#9aa5b1;--line:#39414a;--back:#14181c;
--card:#1c2127;--ok:#4fae78;--denied:#d9a441;--bad:#e8695c;--other:#b08ad6}}
body{margin:0 auto;padding:24px;max-width:1080px;background:var(--back);color:var(--ink);
font:14px/1.45 system-ui,sans-serif}
h1{font-size:20px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{color:var(--soft);margin:0 0 12px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 14px 3px 0;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(320px,1fr));gap:12px;margin-top:14px}
figure{margin:0;padding:10px 12px;background:var(--card);border-radius:6px}
figcaption{font-weight:600;margin-bottom:4px}
details{border-bottom:1px solid var(--line);padding:6px 0}
summary{cursor:pointer}summary b{display:inline-block;min-width:150px}
summary span{color:var(--soft);margin-left:14px;font-variant-numeric:tabular-nums}
summary .ok,summary .denied,summary .bad,summary .other{font-weight:600}
.ok{color:var(--ok);fill:var(--ok)}.denied{color:var(--denied);fill:var(--denied)}
.bad{color:var(--bad);fill:var(--bad)}.other{color:var(--other);fill:var(--other)}
svg{display:block;max-width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}
svg .guide{stroke:var(--line)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:8px 0;color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
"""
_KINDS: Final = {"ok": "ok", "denied": "denied", "failed": "bad", "deadline": "bad"}


def trace_page(requests: Sequence[FinishedRequest], *, made_ns: int) -> str:
    """A whole HTML document about `requests`, in their order. `made_ns`: now, since the Unix epoch."""
    html, body = blank_page("Tabwarden: recent requests", _STYLE)
    add_text(body, "h1", "Recent requests")
    add_text(body, "p", f"{len(requests)} requests, as the broker kept them until {_moment(made_ns)}.")
    if requests:
        _phases(body, requests)
        add_text(body, "h2", "Requests")
        for number, request in enumerate(requests):
            _request(body, request, shown=number < _SHOWN)
    return as_document(html)


def _phases(body: Element, requests: Sequence[FinishedRequest]) -> None:
    durations = phase_durations(requests)
    add_text(body, "h2", "Phases")
    table = SubElement(body, "table")
    row = SubElement(table, "tr")
    for heading in ("phase", "count", "median ms", "p95 ms", "longest ms"):
        add_text(row, "th", heading)
    for name, values in durations.items():
        row = SubElement(table, "tr")
        figures = (quantile(values, 0.5), quantile(values, 0.95), values[-1])
        for cell in (name, str(len(values)), *(ms(figure) for figure in figures)):
            add_text(row, "td", cell)
    charts = SubElement(body, "div", {"class": "charts"})
    for name, values in durations.items():
        figure = SubElement(charts, "figure")
        add_text(figure, "figcaption", name)
        _histogram(figure, values)


def _histogram(figure: Element, values: Sequence[int]) -> None:
    counts = [0] * (len(_BOUNDS) + 1)
    for value in values:
        counts[sum(value > bound for bound in _BOUNDS)] += 1
    used = [number for number, count in enumerate(counts) if count]
    first, last = max(used[0] - 1, 0), min(used[-1] + 1, len(_BOUNDS))
    step = min(300 / (last - first + 1), 60)
    svg = _svg(figure, 300, 106)
    for place, number in enumerate(range(first, last + 1)):
        height = round(68 * counts[number] / max(counts))
        x, y = f"{place * step:.1f}", str(_FLOOR - height)
        bar = SubElement(svg, "rect", x=x, y=y, width=f"{step - 2:.1f}", height=str(height))
        bar.set("class", "ok")
        add_text(bar, "title", f"{counts[number]} {_range(number)}")
        if counts[number]:
            _label(svg, place * step + step / 2, _FLOOR - 4 - height, str(counts[number]), "middle")
        if number < last and (step > 50 or str(_BOUNDS[number])[0] == "1"):
            _label(svg, (place + 1) * step, _FLOOR + 18, _short(_BOUNDS[number]), "middle", soft=True)
    ends = {"x1": "0", "x2": "300", "y1": str(_FLOOR), "y2": str(_FLOOR)}
    SubElement(svg, "line", {**ends, "class": "guide"})


def _request(body: Element, request: FinishedRequest, *, shown: bool) -> None:
    details = SubElement(body, "details", {"open": ""} if shown else {})
    summary = SubElement(details, "summary")
    add_text(summary, "b", request.action or "request")
    add_text(summary, "span", ending(request.outcome, request.code)).set(
        "class", _kind(request.outcome.value)
    )
    add_text(summary, "span", f"{ms(request.duration_ns)} ms")
    add_text(summary, "span", _moment(request.start_wall_ns))
    facts = SubElement(details, "dl")
    for name, value in {"trace": request.trace_id, **request.attributes}.items():
        add_text(facts, "dt", name)
        add_text(facts, "dd", str(value))
    if request.skipped_children:
        add_text(details, "p", f"{request.skipped_children} more steps of the adapter were not recorded.")
    rows = list(walk(request.phases))
    svg = _svg(details, _WIDTH, _ROW * max(len(rows), 1))
    whole = max(request.duration_ns, 1)
    for number, (span, depth) in enumerate(rows):
        base = number * _ROW + 14
        _label(svg, min(depth, 8) * 12, base, span.name, "start", soft=not span.is_phase)
        x = _NAMES + _BARS * span.offset_ns / whole
        width = max(_BARS * span.duration_ns / whole, 1.5)
        bar = SubElement(
            svg, "rect", x=f"{x:.1f}", y=str(number * _ROW + 4), width=f"{width:.1f}", height="12"
        )
        bar.set("class", _kind(span.outcome.value))
        ended = ending(span.outcome, span.code)
        add_text(
            bar, "title", f"{span.name}: {ms(span.duration_ns)} ms from {ms(span.offset_ns)} ms, {ended}"
        )
        said = f"{ms(span.duration_ns)} ms" + ("" if ended == "ok" else f"  {ended}")
        _label(svg, _NAMES + _BARS + 8, base, said, "start", soft=True)


def _svg(parent: Element, width: int, height: int) -> Element:
    return SubElement(
        parent, "svg", viewBox=f"0 0 {width} {height}", width=str(width), height=str(height), role="img"
    )


def _label(svg: Element, x: float, y: int, text: str, anchor: str, *, soft: bool = False) -> None:
    label = add_text(svg, "text", text)
    label.attrib.update(
        {"x": f"{x:.1f}", "y": str(y), "text-anchor": anchor, "class": "soft" if soft else "ink"}
    )


def _kind(outcome: str) -> str:
    return _KINDS.get(outcome, "other")


def _moment(ns: int) -> str:
    return datetime.fromtimestamp(ns / 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _range(number: int) -> str:
    if number == 0:
        return f"up to {_short(_BOUNDS[0])}"
    if number == len(_BOUNDS):
        return f"over {_short(_BOUNDS[-1])}"
    return f"over {_short(_BOUNDS[number - 1])}, up to {_short(_BOUNDS[number])}"


def _short(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if ns >= size:
            return f"{ns // size} {unit}"
    return f"{ns // 1000} µs"
