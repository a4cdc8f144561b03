"""The policy of an engine without a host."""

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.host import (
    Answer,
    ApprovalKind,
    ExcludesTargets,
    KeepsLog,
    OpensTabs,
    Policy,
    SiteMode,
    StaticPolicy,
    WaitsForUser,
)


async def test_what_no_flag_names_is_off() -> None:
    policy: Policy = StaticPolicy.from_flags()
    assert await policy.site_mode("https://shop.test") is SiteMode.OFF
    for kind in ApprovalKind:
        assert await policy.approve(kind, "https://shop.test", "x") is Answer.NO
    assert await policy.allowed_sensitive_hosts() == frozenset()
    for optional in (WaitsForUser, KeepsLog, OpensTabs, ExcludesTargets):
        assert not isinstance(policy, optional)


async def test_sites_are_exact_origins() -> None:
    policy = StaticPolicy.from_flags(
        allow=["shop.test", "http://intra.test:8080/"], ask=["https://Bücher.test"]
    )
    for origin, mode in {
        "https://shop.test": SiteMode.ALLOWED,
        "https://shop.test./cart": SiteMode.ALLOWED,
        "http://shop.test": SiteMode.OFF,
        "https://shop.test:444": SiteMode.OFF,
        "https://a.shop.test": SiteMode.OFF,
        "http://intra.test:8080": SiteMode.ALLOWED,
        "https://xn--bcher-kva.test": SiteMode.ASK,
        "null": SiteMode.OFF,
        "nonsense": SiteMode.OFF,
    }.items():
        assert await policy.site_mode(origin) is mode, origin


async def test_approvals_by_kind_and_never_on_a_site_that_is_off() -> None:
    policy = StaticPolicy.from_flags(
        ask=["shop.test"], approve=["site"], confirm=["risk"], sensitive=["bank.test"]
    )
    assert await policy.approve(ApprovalKind.SITE, "https://shop.test", "x") is Answer.YES
    assert await policy.approve(ApprovalKind.RISK, "https://shop.test", "x") is Answer.CONFIRM
    assert await policy.approve(ApprovalKind.NAVIGATE, "https://shop.test", "x") is Answer.NO
    assert await policy.approve(ApprovalKind.SITE, "https://other.test", "x") is Answer.NO
    assert await policy.allowed_sensitive_hosts() == {"bank.test"}


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"allow": ["https://shop.test/cart"]}, "allow"),
        ({"allow": ["*.shop.test"]}, "allow"),
        ({"allow": ["file:///etc"]}, "allow"),
        ({"ask": ["https://me:pw@shop.test"]}, "ask"),
        ({"ask": [""]}, "ask"),
        ({"allow": ["shop.test"], "ask": ["https://shop.test"]}, "ask"),
        ({"approve": ["everything"]}, "approve"),
        ({"approve": ["risk"], "confirm": ["risk"]}, "confirm"),
        ({"sensitive": ["https://bank.test"]}, "sensitive"),
        ({"sensitive": ["bank.test:443"]}, "sensitive"),
    ],
)
def test_flags_that_make_no_sense(flags: dict[str, list[str]], named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{named}: "):
        StaticPolicy.from_flags(**flags)
