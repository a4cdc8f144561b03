"""Layers only take away: proven by properties, and by an independent engine."""

import random
from dataclasses import dataclass, replace

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.authority.rights import Decision, Layer, Rights
from tabwarden.errors import ConfigurationError

SCOPES = ("read", "click", "type", "tabs:create")
HOSTS = ("a.test", "b.test", "x.a.test", "y.x.a.test", "c.test")


@dataclass(frozen=True)
class Host:
    """An exact host, or everything below a domain: enough of a host rule to reason about."""

    name: str
    below: bool = False

    def matches(self, place: str, /) -> bool:
        return place.endswith("." + self.name) if self.below else place == self.name


host_rules = st.lists(st.builds(Host, st.sampled_from(HOSTS), st.booleans()), max_size=3).map(tuple)
layers = st.builds(
    Layer[str],
    name=st.sampled_from(["agents", "profile:p", "grant:g", "adapter"]),
    scopes=st.none() | st.frozensets(st.sampled_from(SCOPES)),
    hosts=st.none() | host_rules,
    resources=host_rules,
    blocked=host_rules,
    sensitive_read=st.none() | st.booleans(),
    ask=st.frozensets(st.sampled_from(SCOPES), max_size=2),
    ended=st.sampled_from([None, None, None, "expired"]),
)
BASE = Layer[str]("base", frozenset(SCOPES), tuple(Host(name) for name in HOSTS), sensitive_read=True)
bases = st.builds(
    lambda layer, scopes, hosts, sensitive: replace(
        layer, name="base", scopes=scopes, hosts=hosts, sensitive_read=sensitive
    ),
    layers,
    st.frozensets(st.sampled_from(SCOPES)),
    host_rules,
    st.booleans(),
)


def _unasked(rights: Rights[str], scope: str) -> bool:
    """May it be done without a person's agreement?"""
    return rights.scope(scope).allowed and rights.asks(scope) is None


def everything(rights: Rights[str]) -> dict[str, bool]:
    """Each right that can be asked for."""
    return (
        {scope: rights.scope(scope).allowed for scope in SCOPES}
        | {f"{scope} unasked": _unasked(rights, scope) for scope in SCOPES}
        | {f"page {host}": rights.page(host).allowed for host in HOSTS}
        | {f"load {host}": rights.resource(host).allowed for host in HOSTS}
        | {f"named {host}": rights.named(host) for host in HOSTS}
        | {"sensitive": rights.sensitive_read().allowed}
    )


@settings(deadline=None)
@given(bases, st.lists(layers, max_size=4), layers)
def test_adding_a_layer_never_adds_a_right(
    base: Layer[str], some: list[Layer[str]], more: Layer[str]
) -> None:
    before = everything(Rights("g", [base, *some]))
    after = everything(Rights("g", [base, *some, more]))
    assert not [right for right, given_ in after.items() if given_ and not before[right]]


@settings(deadline=None)
@given(bases, st.lists(layers, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_layers_does_not_matter_even_for_the_rule(
    base: Layer[str], some: list[Layer[str]], shuffler: random.Random
) -> None:
    named = [replace(layer, name=f"{layer.name}{number}") for number, layer in enumerate(some)]
    mixed = [base, *named]
    shuffler.shuffle(mixed)
    ordered, other = Rights("g", [base, *named]), Rights("g", mixed)
    for host in HOSTS:
        assert ordered.page(host) == other.page(host)
        assert ordered.resource(host) == other.resource(host)
        assert ordered.named(host) == other.named(host)
    for scope in SCOPES:
        assert ordered.scope(scope) == other.scope(scope)
        assert ordered.asks(scope) == other.asks(scope)
    assert ordered.sensitive_read() == other.sensitive_read()
    assert ordered.scopes == other.scopes


@settings(deadline=None)
@given(bases, st.lists(layers, max_size=4))
def test_a_page_may_load_what_it_may_be_at(base: Layer[str], some: list[Layer[str]]) -> None:
    rights = Rights("g", [base, *some])
    for host in HOSTS:
        assert rights.resource(host).allowed >= rights.page(host).allowed


@settings(deadline=None)
@given(bases, st.lists(layers, max_size=4))
def test_every_decision_names_a_rule_and_every_objection_is_real(
    base: Layer[str], some: list[Layer[str]]
) -> None:
    rights = Rights("g", [base, *some])
    names = {layer.name for layer in [base, *some]}
    decisions = [rights.page(host) for host in HOSTS] + [rights.scope(scope) for scope in SCOPES]
    for decision in [*decisions, rights.sensitive_read()]:
        assert decision.allowed == (decision.objections == ())
        if decision.allowed:
            assert decision.rule == "g"
        else:
            assert decision.rule == decision.objections[0]
            assert {rule.rpartition(".")[0] for rule in decision.objections} <= names


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        (replace(BASE, scopes=None), "scopes"),
        (replace(BASE, hosts=None), "hosts"),
        (replace(BASE, sensitive_read=None), "sensitive reading"),
    ],
)
def test_what_no_layer_limits_is_an_error_and_not_a_right(layer: Layer[str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no layer of this policy limits {says}"):
        Rights("g", [layer])
    with pytest.raises(ConfigurationError):
        Rights("g", [])


def test_an_empty_list_leaves_nothing_and_an_absent_one_all() -> None:
    empty = Layer[str]("grant:g", scopes=frozenset(), hosts=())
    assert Rights("g", [BASE, Layer[str]("grant:g")]).scope("read") == Decision(True, "g")
    assert Rights("g", [BASE, empty]).scope("read").objections == ("grant:g.scopes",)
    assert Rights("g", [BASE, empty]).page("a.test").objections == ("grant:g.allowedHosts",)


def test_a_blocked_host_is_out_whatever_else_allows_it() -> None:
    rights = Rights("g", [BASE, Layer[str]("d", hosts=(Host("a.test"),), blocked=(Host("a.test"),))])
    assert rights.page("a.test").rule == "d.block"
    assert not rights.resource("a.test").allowed
    assert not rights.named("a.test")


def test_an_ended_layer_leaves_nothing_and_says_why() -> None:
    rights = Rights("g", [BASE, Layer[str]("grant:g", ended="expired")])
    assert rights.scopes == frozenset()
    assert rights.scope("read").rule == rights.page("a.test").rule == "grant:g.expired"
    assert rights.sensitive_read().rule == "grant:g.expired"


@settings(deadline=None)
@given(bases, st.lists(layers, max_size=4))
def test_a_person_is_asked_by_the_first_layer_that_says_so(base: Layer[str], some: list[Layer[str]]) -> None:
    rights = Rights("g", [base, *some])
    for scope in SCOPES:
        asking = sorted(layer.name for layer in [base, *some] if scope in layer.ask)
        assert rights.asks(scope) == (f"{asking[0]}.ask" if asking else None)


def test_asking_for_a_scope_does_not_give_it() -> None:
    rights = Rights("g", [BASE, Layer[str]("grant:g", frozenset({"click"}), ask=frozenset({"read"}))])
    assert not rights.scope("read").allowed
    assert rights.scope("click").allowed
    assert rights.asks("click") is None


def test_a_family_names_none_of_its_hosts() -> None:
    family = Layer[str]("d", hosts=(Host("a.test", below=True), Host("b.test")))
    rights = Rights("g", [BASE, family])
    assert rights.page("x.a.test").allowed
    assert not rights.named("x.a.test")
    assert rights.named("b.test")


def cedar_policies(some: list[Layer[str]]) -> str:
    """The same layers in Cedar's terms: allowed, unless a layer forbids it."""
    text = ["permit(principal, action, resource);"]
    for layer in some:
        if layer.ended is not None:
            text.append("forbid(principal, action, resource);")
        if layer.scopes is not None:
            listed = ", ".join(f'"{scope}"' for scope in sorted(layer.scopes))
            condition = f"[{listed}].contains(context.scope)" if listed else "false"
            text.append(f'forbid(principal, action == Action::"do", resource) unless {{ {condition} }};')
        if layer.scopes is not None:
            text.append(f'forbid(principal, action == Action::"unasked", resource) unless {{ {condition} }};')
        for scope in sorted(layer.ask):
            condition = f'context.scope == "{scope}"'
            text.append(f'forbid(principal, action == Action::"unasked", resource) when {{ {condition} }};')
        for rule in layer.blocked:
            for action in ("page", "load"):
                text.append(
                    f'forbid(principal, action == Action::"{action}", resource) when {{ {_like(rule)} }};'
                )
        if layer.hosts is not None:
            for action, rules in (("page", layer.hosts), ("load", (*layer.hosts, *layer.resources))):
                condition = " || ".join(_like(rule) for rule in rules) or "false"
                text.append(
                    f'forbid(principal, action == Action::"{action}", resource) unless {{ {condition} }};'
                )
        if layer.sensitive_read is False:
            text.append('forbid(principal, action == Action::"sensitive", resource);')
    return "\n".join(text)


def _like(rule: object) -> str:
    assert isinstance(rule, Host)
    return f'context.host like "*.{rule.name}"' if rule.below else f'context.host == "{rule.name}"'


def _request(action: str, host: str, scope: str) -> dict[str, object]:
    return {
        "principal": 'Agent::"g"',
        "action": f'Action::"{action}"',
        "resource": 'Browser::"b"',
        "context": {"host": host, "scope": scope},
    }


@settings(max_examples=60, deadline=None)
@given(bases, st.lists(layers, max_size=4))
def test_an_independent_engine_agrees(base: Layer[str], some: list[Layer[str]]) -> None:
    rights = Rights("g", [base, *some])
    asked = (
        [("do", "", scope, rights.scope(scope).allowed) for scope in SCOPES]
        + [("unasked", "", scope, _unasked(rights, scope)) for scope in SCOPES]
        + [("page", host, "", rights.page(host).allowed) for host in HOSTS]
        + [("load", host, "", rights.resource(host).allowed) for host in HOSTS]
        + [("sensitive", "", "", rights.sensitive_read().allowed)]
    )
    answers = cedarpy.is_authorized_batch(
        [_request(action, host, scope) for action, host, scope, _ in asked],
        cedar_policies([base, *some]),
        [],
    )
    for (action, host, scope, ours), theirs in zip(asked, answers, strict=True):
        assert not theirs.diagnostics.errors
        assert theirs.allowed == ours, (action, host, scope)
