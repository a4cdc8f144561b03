"""Which addresses and models are taken, and how they go on the wire."""

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.ai import gateway_settings, origin_of, settings_of
from tabwarden_adapters.policy.checks import check_meaning
from tabwarden_adapters.policy.document import AiGateway, PolicyDocument

LONG = "https://a.test/" + "a" * 2048


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "must be an https address"),
        ("models.test/v1", "must be an https address"),
        ("ftp://models.test/", "must be an https address"),
        ("https://", "must be an https address"),
        ("https://\ud800.test/", "must be an https address"),
        (LONG, "must be an https address"),
        ("https://user@models.test/", "must not have credentials"),
        ("https://:key@models.test/", "must not have credentials"),
        ("https://models.test/#x", "must not have a fragment"),
        ("http://models.test/", "must begin with https://"),
        ("http://localhost:11434/v1", "must begin with https://"),
        ("http://10.0.0.1/", "must begin with https://"),
        ("http://127.0.0.1.evil.test/", "must begin with https://"),
        ("http://0.0.0.0/", "must begin with https://"),
    ],
)
def test_addresses_that_are_refused(url, said):
    with pytest.raises(ConfigurationError, match=r"ai\.url") as caught:
        gateway_settings(url, "m")
    assert said in str(caught.value)
    assert "key@" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "host", "port", "target"),
    [
        ("https://Models.Test", "models.test", 443, "/chat/completions"),
        ("https://m.test:8443/v1/", "m.test", 8443, "/v1/chat/completions"),
        ("https://m.test:443/a b?c=d e", "m.test", 443, "/a%20b/chat/completions?c=d%20e"),
        ("https://m.test/x/chat/completions?v=1", "m.test", 443, "/x/chat/completions?v=1"),
        ("https://b\u00fccher.test", "xn--bcher-kva.test", 443, "/chat/completions"),
        ("https://good.test\\@evil.test/", "good.test", 443, "/@evil.test/chat/completions"),
        ("https://m.test/\r\nx: y", "m.test", 443, "/x:%20y/chat/completions"),
        ("http://127.1:1/", "127.0.0.1", 1, "/chat/completions"),
        ("http://[::1]:11434/v1", "[::1]", 11434, "/v1/chat/completions"),
    ],
)
def test_addresses_on_the_wire(url, host, port, target):
    endpoint = gateway_settings(url, "m").endpoint
    scheme = url.partition(":")[0]
    authority = host if port == 443 else f"{host}:{port}"
    assert (endpoint.scheme.decode(), endpoint.port) == (scheme, port)
    assert endpoint.host.decode() == host.strip("[]")
    assert endpoint.target.decode() == target
    assert endpoint.authority.decode() == authority
    assert endpoint.origin == origin_of(url) == f"{scheme}://{authority}"


@pytest.mark.parametrize(
    ("model", "most", "said"),
    [
        ("", 1, "ai.model"),
        ("m" * 129, 1, "ai.model"),
        ("m\n", 1, "ai.model"),
        ("m", 0, "ai.max_characters"),
        ("m", 20_001, "ai.max_characters"),
        ("m", True, "ai.max_characters"),
    ],
)
def test_other_settings_that_are_refused(model, most, said):
    with pytest.raises(ConfigurationError, match=said):
        gateway_settings("https://m.test", model, most)


def test_a_policy_says_the_same():
    part = AiGateway(enabled=True, url="https://m.test/v1", model="m", max_characters=7)
    assert settings_of(part) == gateway_settings("https://m.test/v1", "m", 7)
    assert settings_of(AiGateway(url="https://m.test/v1", model="m")) is None


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://m.test/v1", True),
        ("http://127.0.0.1:11434/v1", True),
        ("http://[::1]:11434/v1", True),
        ("http://127.9.9.9/", True),
        ("http://localhost:11434/v1", False),
        ("http://127.0.0.1.evil.test/", False),
        ("http://10.0.0.1/", False),
        ("http://m.test/", False),
    ],
)
def test_policies_and_gateways_take_the_same_addresses(url, taken):
    document = PolicyDocument(
        format="tabwarden-policy/1",
        version=1,
        issued="2027-01-01T00:00:00Z",
        expires="2027-02-01T00:00:00Z",
        ai=AiGateway(enabled=True, url=url, model="m"),
    )
    for check in (lambda: check_meaning(document), lambda: settings_of(document.ai)):
        if taken:
            check()
        else:
            with pytest.raises(ConfigurationError, match="must begin with https://"):
                check()
