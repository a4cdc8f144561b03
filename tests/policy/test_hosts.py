"""Host patterns: what they match, and which ones a policy may not hold."""

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.policy.destination import parse_destination
from tabwarden_adapters.policy.hosts import parse_host_pattern


def matches(pattern: str, url: str) -> bool:
    return parse_host_pattern(pattern, "f").matches(parse_destination(url))


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("example.test", "https://example.test/"),
        ("example.test", "http://EXAMPLE.test./"),
        ("example.test:443", "https://example.test/"),
        ("example.test:8443", "https://example.test:8443/"),
        ("example.test:443", "http://example.test:443/"),
        ("*.example.test", "https://a.example.test/"),
        ("*.example.test", "https://a.b.example.test./"),
        ("*.example.test:81", "http://a.example.test:81/"),
        ("*.localhost:81", "http://a.localhost:81/"),
        ("127.0.0.1", "http://127.0.0.1/"),
        ("127.0.0.1:8000", "http://0x7f.1:8000/"),
        ("[::1]", "http://[0::1]/"),
        ("[::1]:8000", "http://[::1]:8000/"),
        ("xn--bcher-kva.example", "https://b\u00fccher.example/"),
        ("intranet", "http://intranet/"),
    ],
)
def test_matches(pattern: str, url: str) -> None:
    assert matches(pattern, url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("example.test", "https://example.test:8443/"),
        ("example.test", "http://example.test:443/"),
        ("example.test:8443", "https://example.test/"),
        ("example.test", "https://a.example.test/"),
        ("example.test", "https://example.test.evil.test/"),
        ("*.example.test", "https://example.test/"),
        ("*.example.test", "https://evilexample.test/"),
        ("*.example.test", "https://a.example.test.evil.test/"),
        ("*.example.test", "https://a.example.test:8443/"),
        ("127.0.0.1", "http://[::ffff:127.0.0.1]/"),
        ("127.0.0.1", "http://127.0.0.2/"),
        ("localhost", "http://127.0.0.1/"),
        ("127.0.0.1", "http://localhost/"),
    ],
)
def test_does_not_match(pattern: str, url: str) -> None:
    assert not matches(pattern, url)


@pytest.mark.parametrize(
    ("pattern", "normal"),
    [
        ("Example.test", "example.test"),
        ("example.test.", "example.test"),
        ("*.Example.test:8443", "*.example.test:8443"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001:80", "127.0.0.1:80"),
        ("2130706433", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[::ffff:127.0.0.1]:80", "[::ffff:7f00:1]:80"),
    ],
)
def test_advises_the_normal_form(pattern: str, normal: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_host_pattern(pattern, "policy.allowed_hosts")
    assert str(caught.value).startswith(f"policy.allowed_hosts: write '{normal}' instead of")


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "*.",
        "*.com",
        "*.127.0.0.1",
        "*.[::1]",
        "*.*.example.test",
        "a.*.test",
        "*example.test",
        "https://example.test",
        "example.test/path",
        "user@example.test",
        "example.test:",
        "example.test:0",
        "example.test:080",
        "example.test:65536",
        "example.test:*",
        "example.test:" + "9" * 5000,
        "::1",
        "::1:80",
        "fe80::1",
        "[::1",
        "[::1]:",
        "exa mple.test",
        "exa\tmple.test",
        "a..b",
        ".example.test",
        "x\ud800",
        "%65xample.test",
    ],
)
def test_refuses_what_is_no_host_pattern(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^field: "):
        parse_host_pattern(pattern, "field")
