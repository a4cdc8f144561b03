"""`diff` shows what is decided otherwise, all of it and nothing else."""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden_adapters.policy.comparing import Change, compare
from tabwarden_adapters.policy.decisions import may_act, may_be_at
from tabwarden_adapters.policy.explaining import caller_of
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.reading import read_document

from tests.policy.signed_support import DAY, NOW, policy

GRANTS = policy()["grants"]


def compiled(changes: Mapping[str, Any]) -> CompiledPolicy:
    return CompiledPolicy(read_document(json.dumps(policy(**changes)).encode()))


def lines(old: Mapping[str, Any], new: Mapping[str, Any], now_ms: int = NOW) -> list[str]:
    changes = compare(compiled(old), compiled(new), now_ms)
    return [f"{one.grant} {one.change} {one.right}" for one in changes]


def test_a_reordered_or_reworded_document_changes_no_right() -> None:
    assert lines({}, {"version": 9, "issued": "2026-12-01T00:00:00Z"}) == []
    reordered = {"destinations__allow": ["bad.wide.test", "good.test", "*.wide.test", "good.test"]}
    assert lines({}, reordered) == []
    grants = [{**GRANTS[0], "name": "Other"}, GRANTS[1]]
    assert lines({}, {"grants": grants[::-1]}) == []


def test_a_scope_that_some_layer_withholds_anyway_is_no_change() -> None:
    grants = [{**GRANTS[0], "scopes": ["navigate", "read", "click", "tabs:create"]}, GRANTS[1]]
    assert lines({}, {"grants": grants}) == []


def test_hosts_by_grant() -> None:
    assert lines({}, {"destinations__block": []}) == ["helper gained page bad.wide.test"]
    assert lines({}, {"agents__resourceHosts": []}) == ["helper lost load cdn.test"]
    assert lines({}, {"destinations__allow": ["good.test"]}) == ["helper lost page *.wide.test"]
    assert lines({}, {"destinations__allow": ["cdn.test", "good.test", "*.wide.test"]}) == [
        "helper gained page cdn.test"
    ]


def test_a_grant_that_comes_goes_ends_or_rotates() -> None:
    assert lines({}, {"grants": GRANTS[:1]}) == [
        "clicker lost credentials of generation 1",
        "clicker lost page good.test",
        "clicker lost scope click",
        "clicker lost scope read",
        "clicker lost until 2027-01-20T00:00:00Z",
    ]
    rotated = [{**GRANTS[0], "generation": 3}, GRANTS[1]]
    assert lines({}, {"grants": rotated}) == [
        "helper lost credentials of generation 2",
        "helper gained credentials of generation 3",
    ]
    assert lines({}, {"grants": GRANTS[:1]}, NOW + 10 * DAY) == []  # it has ended by then anyway


def test_from_individual_to_shared_pairing() -> None:
    said = lines({}, {"agents__identityMode": "legacy"})
    assert "legacy gained scope click" in said
    assert "helper lost scope read" in said
    assert not [line for line in said if line.startswith("helper gained")]


def test_ports_80_and_443_are_told_apart_when_a_pattern_does() -> None:
    said = lines({"destinations": {"allow": ["good.test"]}}, {"destinations": {"allow": ["good.test:443"]}})
    assert "helper lost page http://good.test" in said
    assert "helper gained page good.test:443" in said
    assert "helper lost page https://good.test" not in said


PATTERNS = st.sampled_from(
    ["a.test", "*.a.test", "b.a.test", "*.b.a.test", "a.test:80", "a.test:8080", "*.a.test:443", "127.0.0.1"]
)
hosts = st.lists(PATTERNS, max_size=3, unique=True)
documents = st.fixed_dictionaries(
    {
        "destinations": st.fixed_dictionaries(
            {"allow": st.lists(PATTERNS | st.just("*"), max_size=4, unique=True), "block": hosts}
        ),
        "agents__allowedHosts": hosts,
        "grants": hosts.map(lambda some: [{**GRANTS[1], "additionalHosts": some}]),
    }
)
URLS = [
    f"{scheme}://{host}{port}/"
    for scheme in ("http", "https")
    for host in ("a.test", "x.a.test", "b.a.test", "y.b.a.test", "z.example", "127.0.0.1")
    for port in ("", ":80", ":443", ":8080")
]


@settings(max_examples=150, deadline=None)
@given(documents, documents)
def test_no_change_of_a_decision_goes_unseen_and_none_is_invented(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    before, after = compiled(old), compiled(new)
    changes = compare(before, after, NOW)
    caller = caller_of(before, "clicker")
    for url in URLS:
        was, is_ = (may_be_at(one, caller, url, NOW).allowed for one in (before, after))
        if was != is_:
            change = "gained" if is_ else "lost"
            assert [one for one in changes if one.change == change and one.right.startswith("page ")]
    seen = {may_be_at(before, caller, url, NOW).allowed != may_be_at(after, caller, url, NOW).allowed
            for url in URLS}  # fmt: skip
    pages = [one for one in changes if one.right.startswith("page ")]
    assert (True in seen) == bool(pages)
    assert may_act(before, caller, "click", (), NOW).allowed


def test_many_grants_are_compared_by_what_they_share() -> None:
    many = [{**GRANTS[0], "id": f"agent-{number}"} for number in range(2000)]
    old, new = {"grants": many}, {"grants": many, "destinations__block": []}
    changes = compare(compiled(old), compiled(new), NOW)
    assert len(changes) == 2000
    assert changes[0] == Change("agent-0", "gained", "page bad.wide.test")
