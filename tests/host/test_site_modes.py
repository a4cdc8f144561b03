"""Which mode a site has: lists under a policy, and what is not named."""

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.host import OPAQUE, SiteMode, SiteModes

OFF, ASK, ALLOWED = SiteMode.OFF, SiteMode.ASK, SiteMode.ALLOWED


async def test_what_no_list_names_is_off() -> None:
    sites = SiteModes(allow=["shop.test", "http://127.0.0.1:8000"], ask=["news.test"])
    modes = {
        "https://shop.test": ALLOWED,
        "http://shop.test": OFF,
        "https://shop.test:8443": OFF,
        "https://www.shop.test": OFF,
        "http://127.0.0.1:8000": ALLOWED,
        "https://news.test": ASK,
        "https://other.test": OFF,
        OPAQUE: OFF,
    }
    assert {origin: await sites.mode(origin) for origin in modes} == modes


async def test_a_policy_is_asked_for_every_site_and_what_it_permits_is_asked_about() -> None:
    permitted = {"https://shop.test", "https://mail.test", "https://off.test"}
    sites = SiteModes(
        allow=["shop.test", "evil.test"],
        ask=["news.test"],
        off=["off.test"],
        permitted=permitted.__contains__,
    )
    modes = {
        "https://shop.test": ALLOWED,
        "https://evil.test": OFF,
        "https://news.test": OFF,
        "https://mail.test": ASK,
        "https://off.test": OFF,
        OPAQUE: OFF,
    }
    assert {origin: await sites.mode(origin) for origin in modes} == modes
    permitted.clear()  # another policy
    assert await sites.mode("https://shop.test") is OFF


async def test_only_true_permits() -> None:
    def permitted(origin: str) -> bool:
        return 1  # type: ignore[return-value]

    assert await SiteModes(allow=["shop.test"], permitted=permitted).mode("https://shop.test") is OFF


@pytest.mark.parametrize(
    ("off", "origin", "mode"),
    [
        ("bank.test", "https://bank.test", OFF),
        ("bank.test", "http://bank.test:8080", OFF),
        ("BANK.test.", "https://bank.test", OFF),
        ("bank.test", "https://www.bank.test", ASK),
        ("bank.test", "https://notbank.test", ASK),
        ("*.bank.test", "https://www.bank.test", OFF),
        ("*.bank.test", "https://a.b.bank.test:1", OFF),
        ("*.bank.test", "https://bank.test", ASK),
        ("*.bank.test", "https://notbank.test", ASK),
        ("https://bank.test:8443", "https://bank.test:8443", OFF),
        ("https://bank.test:8443/", "https://bank.test:8443", OFF),
        ("https://bank.test:8443", "https://bank.test", ASK),
    ],
)
async def test_off_is_a_host_what_is_below_it_or_an_origin(off: str, origin: str, mode: SiteMode) -> None:
    assert await SiteModes(off=[off], permitted=lambda origin: True).mode(origin) is mode


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "a b", "bank.test/x", "bank.test:80", "*.*.test", "ftp://bank.test", "*.https://bank.test",
     "https://me@bank.test", "https://bank.test/x", "https://bank.test?x", "bank.*"],
)  # fmt: skip
def test_more_or_less_than_that_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="off: "):
        SiteModes(off=[text])


@pytest.mark.parametrize(
    ("lists", "named"),
    [
        ({"allow": ["a.test"], "off": ["a.test"]}, "allow: 'a.test' is also in off"),
        ({"allow": ["http://b.a.test:1"], "off": ["*.a.test"]}, "allow: 'http://b.a.test:1' is also in off"),
        ({"ask": ["a.test"], "off": ["https://a.test"]}, "ask: 'a.test' is also in off"),
        ({"allow": ["a.test"], "ask": ["a.test"]}, "disagree"),
        ({"ask": ["a.test/x"]}, "ask: "),
    ],
)
def test_lists_that_disagree_are_refused(lists: dict[str, list[str]], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        SiteModes(**lists)  # type: ignore[arg-type]
