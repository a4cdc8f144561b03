"""A device takes signed policies forward only, and denies when it has none."""

import contextlib
import copy
import os
from pathlib import Path

import pytest
import trio
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.authority.principals import Grant
from tabwarden.errors import Code
from tabwarden.model import Authorization, Caller
from tabwarden_adapters.policy.signed import SignedPolicy

from tests.policy.signed_support import (
    CLICKER,
    DAY,
    HELPER,
    NOBODY,
    NOW,
    Device,
    ask,
    policy,
    rule,
)

SHARED = Caller(None, None)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path)


async def test_each_grant_has_what_all_layers_leave(device: Device) -> None:
    device.publish()
    assert device.policy.load().kind == "taken"
    allowed = await ask(device.policy, HELPER, "read")
    assert (allowed.allowed, allowed.rule) == (True, "grant:helper")
    assert allowed.scopes == {ACTIONS["read"].internal_scope}
    assert await rule(device, HELPER, "sessions") == "grant:helper.scopes"
    assert await rule(device, HELPER, "click", {"selector": "a"}) == "grant:helper.scopes"
    assert (await ask(device.policy, CLICKER, "click", {"selector": "a"})).allowed
    assert await rule(device, HELPER, "tabs:create") == "agents.scopes"
    assert await rule(device, NOBODY, "read") == "grants.unknown"
    assert await rule(device, Caller("helper", 1), "read") == "grant:helper.generation"
    assert await rule(device, Caller("helper", 3), "read") == "grant:helper.generation"
    assert await rule(device, SHARED, "read") == "agents.identityMode.individual"


async def test_destinations_of_each_grant(device: Device) -> None:
    device.publish()
    device.policy.load()
    for caller, url, expected in [
        (HELPER, "https://good.test/", "grant:helper"),
        (HELPER, "https://a.wide.test/", "grant:helper"),
        (HELPER, "https://bad.wide.test/", "destinations.block"),
        (HELPER, "https://other.test/", "destinations.allow"),
        (HELPER, "https://cdn.test/", "destinations.allow"),
        (CLICKER, "https://a.wide.test/", "grant:clicker.additionalHosts"),
        (HELPER, "file:///etc/passwd", "url.scheme"),
    ]:
        assert device.policy.judge(caller, url).rule == expected
        assert device.policy.destination_allowed(caller, url) == expected.startswith("grant:helper")
    answer = await ask(device.policy, HELPER, "navigate", {"url": "https://other.test/"})
    assert answer == Authorization(False, code=Code.DESTINATION_DENIED, rule="destinations.allow")
    assert device.policy.resource_allowed(HELPER, "https://cdn.test/x.js")
    assert not device.policy.resource_allowed(CLICKER, "https://cdn.test/x.js")
    assert not device.policy.resource_allowed(HELPER, "not a url")
    assert device.policy.endpoint_allowed(HELPER, "cdn.test", 443)
    assert not device.policy.endpoint_allowed(HELPER, "cdn.test", 22)
    assert device.policy.endpoint_named(HELPER, "good.test", 443)
    assert not device.policy.endpoint_named(HELPER, "a.wide.test", 443)
    assert not device.policy.endpoint_allowed(NOBODY, "good.test", 443)
    assert not device.policy.endpoint_named(NOBODY, "good.test", 443)


async def test_application_scopes_are_off_until_they_are_published(device: Device) -> None:
    application = [name for name in ACTIONS if ":" in name]
    grant = {"id": "a", "name": "A", "scopes": application, "generation": 1}
    device.publish(grants=[grant])
    device.policy.load()
    for name in application:
        assert device.policy._policy is not None
        assert not device.policy._policy.rights("a").scope(name).allowed
    device.publish(version=6, grants=[grant], agents__scopes=application)
    device.policy.load()
    assert (await ask(device.policy, Caller("a", 1), "application:state")).allowed


async def test_any_host_means_names_at_their_usual_port_and_names_no_private_one(device: Device) -> None:
    device.publish(destinations={"allow": ["*"], "block": ["bad.test"]})
    device.policy.load()
    allowed = {url: device.policy.destination_allowed(HELPER, url) for url in (
        "https://anything.example/", "http://127.0.0.1/", "http://[::1]/", "http://x.example:8080/",
        "https://bad.test/", "http://localhost/", "http://x.localhost/", "http://intranet/",
        "http://printer.local/", "http://db.internal/")}  # fmt: skip
    assert list(allowed.values()) == [True] + [False] * 9
    assert not device.policy.endpoint_named(HELPER, "intranet.example", 443)


async def test_nothing_is_allowed_before_a_policy_was_taken_or_without_one(device: Device) -> None:
    assert await rule(device, HELPER, "read") == "policy.none"
    report = device.policy.load()
    assert (report.kind, report.version) == ("refused", 0)
    assert "cannot read" in report.message
    assert "nothing is allowed" in report.message
    assert device.policy.grants() == []
    assert device.policy.policy_version == 0
    assert not device.policy.destination_allowed(HELPER, "https://good.test/")
    assert not device.policy.endpoint_named(HELPER, "good.test", 443)
    assert device.policy.document is None
    assert device.policy.identity_mode == "individual"


async def test_legacy_mode_has_no_grants_and_individual_none_without(device: Device) -> None:
    device.publish(agents__identityMode="legacy")
    device.policy.load()
    assert device.policy.identity_mode == "legacy"
    assert device.policy.grants() == []
    assert await rule(device, HELPER, "read") == "agents.identityMode.legacy"
    assert await rule(device, SHARED, "read") == "agents"
    assert device.policy.destination_allowed(SHARED, "https://good.test/")


async def test_disabled_agents_and_grants(device: Device) -> None:
    grants = copy.deepcopy(policy()["grants"])
    grants[0]["enabled"] = False
    device.publish(grants=grants)
    device.policy.load()
    assert await rule(device, HELPER, "read") == "grant:helper.disabled"
    device.publish(version=6, agents__enabled=False)
    device.policy.load()
    assert await rule(device, CLICKER, "read") == "agents.disabled"
    assert device.policy.grants() == []


async def test_expiry_closes_and_setting_the_clock_back_opens_nothing(device: Device) -> None:
    device.publish()
    device.policy.load()
    device.clock.wall = NOW + 6 * DAY
    assert await rule(device, CLICKER, "read") == "grant:clicker.expired"
    device.clock.wall = NOW + 40 * DAY
    assert await rule(device, HELPER, "read") == "policy.expired"
    device.clock.wall = NOW
    assert await rule(device, HELPER, "read") == "policy.expired"
    assert device.policy.policy_version == 0
    assert not device.policy.destination_allowed(HELPER, "https://good.test/")
    await device.policy.look()
    assert device.reports[-1].kind == "expired"
    restarted = device.start()
    report = restarted.load()
    assert report.kind == "refused"
    assert "expires: 2027-02-01T00:00:00Z is past" in report.message
    assert "clock has been at 2027-02-24" in report.message
    assert (await ask(restarted, HELPER, "read")).rule == "policy.none"


async def test_grants_for_the_registry_end_no_later_than_the_policy(device: Device) -> None:
    device.publish()
    device.policy.load()
    assert device.policy.grants() == [
        Grant("helper", 2, NOW + 17 * DAY, True),
        Grant("clicker", 1, NOW + 5 * DAY, True),
    ]


async def test_an_invalid_new_policy_leaves_the_old_one_in_force_until_it_expires(device: Device) -> None:
    device.publish()
    device.policy.load()
    device.publish(version=6, agents__scopes=["raed"])
    report = await device.policy.reload()
    assert (report.kind, report.version) == ("refused", 5)
    assert "agents.scopes[0]: there is no scope 'raed'; did you mean 'read'?" in report.message
    assert "version 5 stays in force until it expires" in report.message
    assert device.reports[-1] == report
    assert (await ask(device.policy, HELPER, "read")).allowed
    device.clock.wall += 40 * DAY
    assert await rule(device, HELPER, "read") == "policy.expired"


async def test_a_change_takes_effect_at_once_and_is_told(tmp_path: Path) -> None:
    device = Device(tmp_path)
    told: list[list[Grant]] = []

    async def changed() -> None:
        told.append(signed_policy.grants())

    signed_policy = SignedPolicy(
        device.file, device.state, device.clock, report=device.reports.append, on_change=changed
    )
    device.publish()
    await signed_policy.look()
    assert signed_policy.policy_version == 5
    await signed_policy.look()
    assert len(told) == 1
    device.publish(version=6, grants=[])
    await signed_policy.look()
    assert signed_policy.policy_version == 6
    assert told[1] == []
    assert (await ask(signed_policy, HELPER, "read")).rule == "grants.unknown"
    device.clock.wall += 40 * DAY
    await signed_policy.look()
    assert len(told) == 3
    await signed_policy.look()
    assert len(told) == 3


async def test_a_file_that_goes_away_takes_nothing_away_but_is_told(device: Device) -> None:
    device.publish()
    await device.policy.look()
    device.file.unlink()
    await device.policy.look()
    await device.policy.look()
    assert [report.kind for report in device.reports] == ["taken", "refused"]
    assert (await ask(device.policy, HELPER, "read")).allowed


async def test_the_watch_looks_again_and_again(device: Device) -> None:
    device.publish()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.policy.watch, 0.001)
        with trio.fail_after(30):
            while not device.reports:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert device.policy.policy_version == 5


async def test_only_what_the_host_has_adapters_for(device: Device) -> None:
    limited = SignedPolicy(
        device.file,
        device.state,
        device.clock,
        report=device.reports.append,
        adapter_scopes=frozenset({"navigate"}),
    )
    device.publish()
    limited.load()
    assert (await ask(limited, HELPER, "read")).rule == "adapter.scopes"
    assert (await ask(limited, HELPER, "navigate", {"url": "https://good.test/"})).allowed


async def test_a_group_limits_by_all_of_its_profiles(device: Device) -> None:
    device.publish(
        profiles=[
            {"name": "readers", "scopes": ["navigate", "read"]},
            {"name": "narrow", "scopes": ["read", "click"], "allowedHosts": ["good.test"]},
        ],
        groups=[{"name": "staff", "profiles": ["readers", "narrow"]}],
        grants=[
            {
                "id": "g",
                "name": "G",
                "group": "staff",
                "scopes": ["navigate", "read", "click"],
                "generation": 1,
            }
        ],
    )
    device.policy.load()
    caller = Caller("g", 1)
    assert (await ask(device.policy, caller, "read")).allowed
    assert await rule(device, caller, "navigate", {"url": "https://good.test/"}) == "profile:narrow.scopes"
    assert await rule(device, caller, "click", {"selector": "a"}) == "profile:readers.scopes"
    assert device.policy.judge(caller, "https://a.wide.test/").rule == "profile:narrow.allowedHosts"


async def test_a_bookmark_is_judged_by_where_it_leads(device: Device) -> None:
    scopes = ["bookmarks:mutate"]
    grants = [{"id": "b", "name": "B", "scopes": scopes, "generation": 1}]
    device.publish(agents__scopes=scopes, grants=grants)
    device.policy.load()
    draft = {"title": "x", "url": "https://other.test/"}
    args = {"action": "add", "expectedRevision": 1, "policyVersion": 5, "bookmark": draft}
    assert await rule(device, Caller("b", 1), "bookmarks:mutate", args) == "destinations.allow"


@pytest.mark.parametrize("kind", ["folder", "fifo", "huge"])
async def test_a_file_that_is_none_is_refused(device: Device, kind: str) -> None:
    if kind == "folder":
        device.file.mkdir()
    elif kind == "fifo":
        os.mkfifo(device.file)
    else:
        with device.file.open("wb") as file:
            file.truncate(64 << 20)
    report = device.policy.load()
    assert report.kind == "refused"
    says = "is larger than" if kind == "huge" else "is not a regular file"
    assert f"{device.file} {says}" in report.message


async def test_sensitive_reading_needs_every_layer(device: Device) -> None:
    device.publish(agents__allowSensitiveRead=True)
    device.policy.load()
    assert device.policy.sensitive_read_allowed(CLICKER)  # no profile limits it
    assert not device.policy.sensitive_read_allowed(HELPER)
    assert not device.policy.sensitive_read_allowed(NOBODY)


async def test_an_action_or_scope_of_another_table_is_denied(device: Device) -> None:
    device.publish()
    device.policy.load()
    _, arguments = parse_arguments("read", {})
    for action, scope, expected in [("fly", "read", "actions.unknown"), ("read", "click", "scopes.mismatch")]:
        answer = await device.policy(
            action, arguments, scope, None, caller=HELPER, waiting_for_person=contextlib.nullcontext
        )
        assert (answer.allowed, answer.rule) == (False, expected)
