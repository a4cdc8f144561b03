import io

from rich.console import Console
from tabwarden.model import TraceOutcome
from tabwarden_observability import FinishedRequest, FinishedSpan, phase_summary, waterfall

MS = 1_000_000


def span(name, offset_ms, duration_ms, *children, outcome=TraceOutcome.OK, code=None, is_phase=True):
    return FinishedSpan(
        name, "0" * 15 + "1", offset_ms * MS, duration_ms * MS, outcome, code, None, is_phase, children
    )


def request(*phases, duration_ms=100, outcome=TraceOutcome.OK, code=None, attributes=None):
    return FinishedRequest(
        "ab" * 16, "cd" * 8, None, True, 0, duration_ms * MS, outcome, code, None, attributes or {}, phases, 0
    )


def printed(renderable) -> str:
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(renderable)
    return out.getvalue()


def test_waterfall_shows_each_phase_where_it_ran():
    navigate = span("cdp.navigate", 50, 25, is_phase=False)
    text = printed(
        waterfall(
            [
                request(
                    span("audit", 0, 25),
                    span("dispatch", 50, 50, navigate, outcome=TraceOutcome.FAILED, code="navigation-failed"),
                    outcome=TraceOutcome.FAILED,
                    code="navigation-failed",
                    attributes={"tabwarden.action": "navigate"},
                )
            ]
        )
    )
    assert "failed: navigation-failed" in text
    assert "100.000 ms" in text
    assert f"trace {'ab' * 16}" in text
    rows = {line.split("│")[1].strip(): line for line in text.splitlines() if line.startswith("│")}
    assert rows["audit"].count("█") == rows["cdp.navigate"].count("█") == 8
    assert rows["dispatch"].count("█") == 16
    bars = {name: row.split("│")[4] for name, row in rows.items()}
    assert bars["audit"].index("█") < bars["dispatch"].index("█") == bars["cdp.navigate"].index("█")
    assert "25.000" in rows["audit"]
    assert "50.000" in rows["dispatch"]


def test_waterfall_of_nothing_and_of_an_instant():
    assert printed(waterfall([])).strip() == ""
    assert "audit" in printed(waterfall([request(span("audit", 0, 0), duration_ms=0)]))


def test_summary_over_requests():
    requests = [
        request(span("audit", 0, ms, span("store.append", 0, 1, is_phase=False)), duration_ms=10 * ms)
        for ms in range(1, 101)
    ]
    lines = printed(phase_summary(requests)).splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert rows == [
        ["audit", "100", "51.000", "96.000", "100.000"],
        ["whole request", "100", "510.000", "960.000", "1000.000"],
    ]
    assert "0 requests" in printed(phase_summary([]))
