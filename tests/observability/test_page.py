"""The page that stands alone."""

import base64
import hashlib
import re
from html.parser import HTMLParser

from tabwarden.model import TraceOutcome
from tabwarden_observability import trace_page

from tests.observability.test_waterfall import request, span

HOSTILE = "</style></title><script src=//evil.test></script><img onerror=x>&amp;\x00\"'"
MADE = 1_800_000_000_000_000_000


class Reader(HTMLParser):
    """Everything that a browser would see in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.style = self.text = ""
        self._in_style = False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._in_style = tag == "style"

    def handle_endtag(self, tag):
        self._in_style = False

    def handle_data(self, data):
        if self._in_style:
            self.style += data
        else:
            self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def pages() -> tuple[str, str]:
    """One of harmless requests, and one whose every text is hostile, though none such gets that far."""
    made = []
    for text in ("cdp.page", HOSTILE):
        phases = [
            span("audit", 0, 3),
            span(text, 3, 50, span(text, 4, 40, is_phase=False, code=text), outcome=TraceOutcome.FAILED),
        ]
        attributes = {"tabwarden.action": text, f"name {text}": text}
        asked = request(*phases, outcome=TraceOutcome.FAILED, code=text, attributes=attributes)
        made.append(trace_page([asked, request(duration_ms=0)], made_ns=MADE))
    return made[0], made[1]


def test_every_text_is_text():
    harmless, hostile = (read(page) for page in pages())
    assert hostile.tags == harmless.tags
    assert "script" not in hostile.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in harmless.attributes]
    assert HOSTILE.replace("&amp;", "&amp;") in hostile.text
    assert hostile.style == harmless.style


def test_nothing_is_fetched_and_the_policy_lets_nothing_be():
    page, _ = pages()
    reader = read(page)
    values = dict(reader.attributes)
    digest = base64.b64encode(hashlib.sha256(reader.style.encode()).digest()).decode()
    policies = [value for name, value in reader.attributes if value and value.startswith("default-src")]
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    assert not {"src", "href", "style", "xlink:href", "action", "srcset"} & set(values)
    assert not [name for name in values if name.startswith("on")]
    assert "url(" not in reader.style
    assert "@import" not in reader.style
    # The policy comes before anything that it is to hold for.
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_bars_are_where_the_time_went():
    page = trace_page(
        [request(span("audit", 0, 25), span("dispatch", 50, 50), attributes={"tabwarden.action": "read"})],
        made_ns=MADE,
    )
    bars = re.findall(
        r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="12" class="(\w+)"><title>(.*?)<', page
    )
    assert bars == [
        ("190.0", "150.0", "ok", "audit: 25.000 ms from 0.000 ms, ok"),
        ("490.0", "300.0", "ok", "dispatch: 50.000 ms from 50.000 ms, ok"),
    ]
    # One request in each histogram: 25 ms, 50 ms, and 100 ms as a whole.
    counted = [bar for bar in re.findall(r"<title>(\d+ (?:up to|over)[^<]*)<", page) if bar[0] != "0"]
    assert counted == ["1 over 20 ms, up to 50 ms"] * 2 + ["1 over 50 ms, up to 100 ms"]
    assert "2027-01-15 08:00:00 UTC" in page


def test_of_nothing_and_of_extremes():
    assert "0 requests" in trace_page([], made_ns=0)
    page = trace_page([request(span("audit", 0, 0)), request(span("audit", 0, 10**6))], made_ns=MADE)
    assert "1 up to 10 µs" in page
    assert "1 over 100 s" in page
