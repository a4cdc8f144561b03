"""Where URLs lead: hostile spellings, and the WHATWG test data when they are at hand."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden_adapters.policy.destination import Destination, DestinationRefused, parse_destination

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpora" / "url" / "urltestdata.json"

BACKSLASH = "\\"


def judge(url: str) -> Destination | str:
    try:
        return parse_destination(url)
    except DestinationRefused as refused:
        return refused.rule


def refusal(url: str) -> str:
    with pytest.raises(DestinationRefused) as caught:
        parse_destination(url)
    return caught.value.rule


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://example.test/", "example.test", 80),
        ("https://example.test/", "example.test", 443),
        ("HTTPS://EXAMPLE.TEST:443/a?b#c", "example.test", 443),
        ("https://example.test./", "example.test", 443),
        (f"https://good.test{BACKSLASH}@evil.test/", "good.test", 443),
        (f"https:{BACKSLASH}{BACKSLASH}good.test{BACKSLASH}..{BACKSLASH}@evil.test/", "good.test", 443),
        ("https://good.test#@evil.test/", "good.test", 443),
        ("https://good.test?@evil.test/", "good.test", 443),
        ("https:evil.test", "evil.test", 443),
        ("https:///evil.test/", "evil.test", 443),
        ("  https://exa\tmple.te\nst/  ", "example.test", 443),
        ("https://b\u00fccher.example/", "xn--bcher-kva.example", 443),
        ("https://\uff45xample.test/", "example.test", 443),
        ("https://example\u3002test/", "example.test", 443),
        ("https://%65xample.test/", "example.test", 443),
        ("https://exam\u00adple.test/", "example.test", 443),
        ("http://127.0.0.1/", "127.0.0.1", 80),
        ("http://127.1/", "127.0.0.1", 80),
        ("http://2130706433/", "127.0.0.1", 80),
        ("http://0x7f.1/", "127.0.0.1", 80),
        ("http://0177.0.0.01/", "127.0.0.1", 80),
        ("http://127.0.0.1./", "127.0.0.1", 80),
        ("http://%31%32%37.1/", "127.0.0.1", 80),
        ("http://\u2460\u2461\u2466.0.0.1/", "127.0.0.1", 80),
        ("http://[0:0::0:1]:8080/", "[::1]", 8080),
        ("http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]", 80),
        ("https://@example.test/", "example.test", 443),
    ],
)
def test_reads_urls_as_a_browser_does(url: str, host: str, port: int) -> None:
    destination = parse_destination(url)
    assert (destination.host, destination.port) == (host, port)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "url.invalid"),
        ("example.test", "url.invalid"),
        ("/path", "url.invalid"),
        ("//example.test/", "url.invalid"),
        ("https://", "url.invalid"),
        ("https://exa mple.test/", "url.invalid"),
        ("https://[::1/", "url.invalid"),
        ("https://example.test:65536/", "url.invalid"),
        ("https://256.256.256.256/", "url.invalid"),
        ("https://x\ud800.test/", "url.invalid"),
        ("https://exa\0mple.test/", "url.invalid"),
        ("https://evil.1/", "url.invalid"),
        ("javascript:alert(1)", "url.scheme"),
        (" java\tscript:alert(1)", "url.scheme"),
        ("data:text/html,x", "url.scheme"),
        ("file:///etc/passwd", "url.scheme"),
        ("blob:https://example.test/1", "url.scheme"),
        ("about:blank", "url.scheme"),
        ("chrome://settings/", "url.scheme"),
        ("view-source:https://example.test/", "url.scheme"),
        ("ftp://example.test/", "url.scheme"),
        ("ws://example.test/", "url.scheme"),
        ("wss://example.test/", "url.scheme"),
        ("https://user@example.test/", "url.credentials"),
        ("https://user:pass@example.test/", "url.credentials"),
        ("https://:pass@example.test/", "url.credentials"),
        ("https://good.test@evil.test/", "url.credentials"),
        ("https://example.test../", "url.host"),
        ("https://.example.test/", "url.host"),
        ("https://a..b/", "url.host"),
        ("https://./", "url.host"),
    ],
)
def test_refuses_with_a_named_rule(url: str, rule: str) -> None:
    assert refusal(url) == rule


@given(st.text(max_size=200))
def test_any_text_is_a_destination_or_a_typed_refusal(url: str) -> None:
    judged = judge(url)
    if isinstance(judged, str):
        assert judged.startswith("url.")
    else:
        assert judged.host == judged.host.lower()
        assert not judged.host.endswith(".")


def test_agrees_with_the_whatwg_test_data() -> None:
    """Vacuous where the corpus is not at hand: the cases above stand on their own."""
    cases = json.loads(CORPUS.read_text("utf-8")) if CORPUS.exists() else []
    judged = 0
    for case in cases:
        if isinstance(case, str) or case.get("base") is not None:
            continue
        judged += 1
        if case.get("failure"):
            assert refusal(case["input"]) == "url.invalid", case
        elif case["protocol"] not in ("http:", "https:"):
            assert refusal(case["input"]) == "url.scheme", case
        elif case["username"] or case["password"]:
            assert refusal(case["input"]) == "url.credentials", case
        else:
            destination = judge(case["input"])
            if isinstance(destination, str):
                assert destination == "url.host"
                continue
            assert destination.host == case["hostname"].removesuffix("."), case
            assert destination.usual_port == (case["port"] == ""), case
    assert judged > 200 or not cases
