"""What `tabwarden host` is told: a file, flags, a signed policy."""

from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.cli.host_settings import HostSettings, load_host_settings
from tabwarden_adapters.cli.host_sites import PolicyOrigins, host_sites
from tabwarden_adapters.host import SiteMode, SiteModes

from tests.cli.no_browser import without_tabs
from tests.cli.running import here, tabwarden
from tests.host.support import private_home
from tests.policy.signed_support import DAY, Device

GOOD, WIDE, BAD = "https://good.test", "https://a.wide.test", "https://bad.wide.test"


def test_a_file_is_read_relative_to_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text(
        'allow = ["shop.test"]\nask = ["news.test"]\noff = ["bank.test"]\nsensitive = ["mail.test"]\n'
        'home = "here"\nheadless = true\npolicy = "policy.json"\npolicy_state = "/state"\n'
    )
    assert load_host_settings(path) == HostSettings(
        allow=("shop.test",),
        ask=("news.test",),
        off=("bank.test",),
        sensitive=("mail.test",),
        home=str(tmp_path / "here"),
        headless=True,
        policy=str(tmp_path / "policy.json"),
        policy_state="/state",
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("allowed = []", "allowed"),
        ("allow = 'shop.test'", r"Expected `array`.*\$.allow"),
        ("allow = [", "is not TOML"),
        ("headless = " + "1" * 5000, "too long"),
        ("allow = ['\udcff']", "is not TOML"),
    ],
)
def test_what_is_wrong_in_it_is_named(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "host.toml"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigurationError, match=says):
        load_host_settings(path)


def test_by_default_every_site_is_off() -> None:
    async def mode() -> SiteMode:
        sites, policy = await host_sites(HostSettings(), lambda report: None)
        assert policy is None
        return await sites.mode(GOOD)

    assert trio.run(mode) is SiteMode.OFF


@pytest.mark.parametrize("mode", ["individual", "legacy"])
async def test_under_a_signed_policy_what_agents_may_not_is_off(tmp_path: Path, mode: str) -> None:
    device = Device(tmp_path)
    grants: dict[str, Any] = {} if mode == "individual" else {"grants": []}
    device.publish(agents__identityMode=mode, **grants)
    device.policy.load()
    sites = SiteModes(
        allow=["good.test", "bad.wide.test", "cdn.test"], permitted=PolicyOrigins(device.policy)
    )

    async def modes() -> list[str]:
        return [await sites.mode(one) for one in (GOOD, WIDE, BAD, "https://cdn.test", f"{GOOD}:8443")]

    # The resource hosts are to load from only, and other ports are other places.
    assert await modes() == ["allowed", "ask", "off", "off", "off"]
    device.publish(version=6, destinations={"allow": ["*.wide.test"]}, agents__identityMode=mode, **grants)
    await device.policy.look()
    assert await modes() == ["off", "ask", "allowed", "off", "off"]
    device.clock.wall += 30 * DAY
    assert await modes() == ["off"] * 5  # expired


async def test_disabled_agents_are_off_everywhere(tmp_path: Path) -> None:
    device = Device(tmp_path)
    device.publish(agents__enabled=False)
    device.policy.load()
    assert await SiteModes(permitted=PolicyOrigins(device.policy)).mode(GOOD) is SiteMode.OFF


async def test_a_policy_that_is_not_taken_starts_no_host(tmp_path: Path) -> None:
    settings = HostSettings(policy=str(tmp_path / "none.json"), policy_state=str(private_home(tmp_path)))
    with pytest.raises(ConfigurationError, match="enrol"):
        await host_sites(settings, lambda report: None)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--allow", "shop.test", "--off", "shop.test"), "allow: 'shop.test' is also in off"),
        ((), "does not say which of its tabs are private"),
    ],
)
def test_a_wrong_start_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], says: str
) -> None:
    for name, value in without_tabs(tmp_path).items():
        monkeypatch.setenv(name, value)  # of the environment, for a browser that is none
    done = tabwarden(tmp_path, "host", "--headless", "--home", str(private_home(tmp_path)), *flags)
    assert done.status == 1
    assert done.failure["code"] == "configuration"
    assert says in done.failure["message"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = here(tmp_path, "host", "--config", str(tmp_path / "none.toml"))
    assert done.status == 1
    assert "none.toml" in done.failure["message"]
