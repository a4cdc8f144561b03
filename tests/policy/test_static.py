"""The static policy as the broker uses it."""

import contextlib
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.errors import Code, ConfigurationError
from tabwarden.model import Authorization, Caller
from tabwarden.ports import Authorizer
from tabwarden_adapters.policy import StaticPolicy

CALLER = Caller("agent", 1)
SESSION = "00000000-0000-0000-0000-000000000001"
MINIMAL: dict[str, dict[str, Any]] = {
    "navigate": {"url": "https://example.test/"},
    "click": {"selector": "#a"},
    "type": {"selector": "#a", "text": "x"},
    "select": {"selector": "#a", "value": "x"},
    "check": {"selector": "#a", "checked": True},
    "ai": {"prompt": "x"},
    "handoff": {"reason": "x"},
    "settings:update": {"appearance": {}},
    "bookmarks:mutate": {"action": "remove", "id": "1", "expectedRevision": 1, "policyVersion": 1},
    "tabs:activate": {"sessionId": SESSION},
    "tabs:close": {"sessionId": SESSION},
    "tabs:group": {"sessionId": SESSION, "group": "x"},
}


async def decide(policy: Authorizer, action: str, args: dict[str, Any] | None = None) -> Authorization:
    spec, arguments = parse_arguments(action, MINIMAL.get(action, {}) if args is None else args)
    return await policy(
        action,
        arguments,
        spec.policy_scope,
        None,
        caller=CALLER,
        waiting_for_person=contextlib.nullcontext,
    )


@pytest.mark.parametrize("settings", [None, {}, {"scopes": []}, {"allowed_hosts": ["example.test"]}])
@pytest.mark.parametrize("action", ACTIONS)
async def test_denies_everything_by_default(action: str, settings: dict[str, Any] | None) -> None:
    answer = await decide(StaticPolicy(settings), action)
    assert answer == Authorization(False, rule="scopes.not-enabled")


@pytest.mark.parametrize("action", ACTIONS)
async def test_grants_exactly_the_internal_scope_of_the_action(action: str) -> None:
    policy = StaticPolicy({"scopes": [action], "allowed_hosts": ["example.test"]})
    answer = await decide(policy, action)
    assert answer.allowed
    assert answer.role == "agent"
    assert answer.scopes == {ACTIONS[action].internal_scope}
    for other in ACTIONS:
        if other != action:
            assert (await decide(policy, other)).rule == "scopes.not-enabled"


async def test_an_action_or_scope_of_another_table_is_denied() -> None:
    policy = StaticPolicy({"scopes": ["read", "click"]})
    _, arguments = parse_arguments("read", {})
    for action, scope, rule in [
        ("delete-everything", "read", "actions.unknown"),
        ("read", "click", "scopes.mismatch"),
    ]:
        answer = await policy(
            action, arguments, scope, None, caller=CALLER, waiting_for_person=contextlib.nullcontext
        )
        assert not answer.allowed
        assert answer.rule == rule


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://evil.test/", "hosts.not-listed"),
        ("https://good.test@evil.test/", "url.credentials"),
        ("javascript:alert(1)", "url.scheme"),
        ("not a url", "url.invalid"),
        ("https://good.test../", "url.host"),
        ("http://127.1/", "hosts.not-listed"),
    ],
)
@pytest.mark.parametrize("action", ["navigate", "tabs:create", "bookmarks:mutate"])
async def test_judges_every_url_among_the_arguments(action: str, url: str, rule: str) -> None:
    policy = StaticPolicy({"scopes": [action], "allowed_hosts": ["good.test"]})
    args: dict[str, Any] = {"url": url}
    if action == "bookmarks:mutate":
        draft = {"title": "x", "url": url}
        args = {"action": "add", "expectedRevision": 1, "policyVersion": 1, "bookmark": draft}
    answer = await decide(policy, action, args)
    assert answer == Authorization(False, code=Code.DESTINATION_DENIED, rule=rule)


async def test_a_url_that_is_not_given_is_not_judged() -> None:
    assert (await decide(StaticPolicy({"scopes": ["tabs:create"]}), "tabs:create", {})).allowed


async def test_no_hosts_means_no_destination() -> None:
    policy = StaticPolicy({"scopes": ["navigate"]})
    assert (await decide(policy, "navigate")).rule == "hosts.not-listed"
    assert not policy.destination_allowed(CALLER, "https://example.test/")


def test_destinations_of_tabs() -> None:
    policy = StaticPolicy({"allowed_hosts": ["*.example.test", "127.0.0.1:8000"]})
    assert policy.destination_allowed(CALLER, "https://a.example.test/x")
    assert policy.destination_allowed(CALLER, "http://127.0.0.1:8000/")
    for href in ("http://127.0.0.1/", "https://example.test/", "about:blank", "", "x\ud800"):
        assert not policy.destination_allowed(CALLER, href)


@given(st.text(max_size=100))
def test_destinations_never_raise(href: str) -> None:
    assert StaticPolicy({"allowed_hosts": ["example.test"]}).destination_allowed(CALLER, href) in (
        True,
        False,
    )


def test_settings_of_a_toml_file() -> None:
    text = 'scopes = ["read", "navigate"]\nallowed_hosts = ["example.test"]\npolicy_version = 7\n'
    policy = StaticPolicy(tomllib.loads(text))
    assert policy.policy_version == 7
    assert StaticPolicy().policy_version == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scopes": ["raed"]}, "policy.scopes: there is no scope 'raed'; did you mean 'read'?"),
        (
            {"scopes": ["browser:read"]},  # an internal scope, not a policy scope
            "policy.scopes: there is no scope 'browser:read'",
        ),
        ({"scopes": ["Read"]}, "did you mean 'read'?"),
        ({"scopes": "read"}, "policy.scopes must be a list of texts"),
        ({"scopes": {"read": True}}, "policy.scopes must be a list of texts"),
        ({"scopes": [1]}, "policy.scopes must be a list of texts"),
        ({"allowed_hosts": "example.test"}, "policy.allowed_hosts must be a list of texts"),
        ({"allowed_hosts": ["*"]}, "policy.allowed_hosts: '*' is not a host"),
        ({"allowed_host": []}, "policy: there is no field 'allowed_host'; did you mean 'allowed_hosts'?"),
        ({"policy_version": True}, "policy.policy_version must be an integer"),
        ({"policy_version": 0}, "policy.policy_version must be an integer"),
    ],
)
def test_names_the_field_and_the_nearest_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        StaticPolicy(settings)
    assert message in str(caught.value)


def test_what_pages_load_is_a_second_list_that_includes_the_first() -> None:
    policy = StaticPolicy(
        {"allowed_hosts": ["good.test", "127.0.0.1:8000"], "resource_hosts": ["*.cdn.test", "one.test:81"]}
    )
    allowed = {
        "http://good.test/": True,
        "https://good.test/": True,
        "http://good.test:81/": False,
        "http://a.cdn.test/": True,
        "http://cdn.test/": False,
        "http://one.test:81/": True,
        "ftp://good.test/": False,
    }
    assert {href: policy.resource_allowed(CALLER, href) for href in allowed} == allowed
    assert not policy.destination_allowed(CALLER, "http://a.cdn.test/")
    endpoints = {
        ("good.test", 443): (True, True),
        ("good.test", 8080): (False, False),
        ("127.0.0.1", 8000): (True, True),
        ("a.cdn.test", 80): (True, False),
        ("one.test", 81): (True, True),
        ("evil.test", 443): (False, False),
    }
    for (host, port), (may, named) in endpoints.items():
        assert policy.endpoint_allowed(CALLER, host, port) is may
        assert policy.endpoint_named(CALLER, host, port) is named
