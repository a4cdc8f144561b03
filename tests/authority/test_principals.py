"""Capabilities: who holds one, for how long, and that the two identity modes never share one."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tabwarden.authority.challenges import BoundChallenge
from tabwarden.authority.principals import (
    Capability,
    Grant,
    IdentityMode,
    InstanceIdentity,
    PrincipalRegistry,
)
from tabwarden.errors import ConfigurationError, PeerRefused
from tabwarden.limits import Limits
from tabwarden.model import Caller
from tabwarden.protocol.primitives import NativeProvider, X25519Key
from tabwarden.protocol.proof import CapabilityKeys
from tabwarden.service.no_trace import NullTracer

NOW = 1_800_000_000_000
IDENTITY = InstanceIdentity("127.0.0.1:4242", b"e" * 32, b"p" * 2592)
DECOY = b"d" * 32


def make(mode: IdentityMode = "individual") -> PrincipalRegistry:
    return PrincipalRegistry(IDENTITY, mode, Limits(), DECOY)


def token(at: int = 0) -> bytes:
    return at.to_bytes(32)


def with_grant(principal_id: str = "a", generation: int = 1, ends: int | None = None) -> PrincipalRegistry:
    registry = make()
    assert registry.reconcile([Grant(principal_id, generation, ends)], NOW) == []
    return registry


def bound(capability: Capability, at: int) -> BoundChallenge:
    challenge = BoundChallenge(
        at.to_bytes(16),
        capability.generation,
        NativeProvider().kem_key(),
        X25519Key(),
        b"",
        b"",
        b"",
        10_000,
        NullTracer().start_request(),
    )
    capability.account.challenges.put(challenge)
    return challenge


# ---- the two modes -----------------------------------------------------------------------------------


def test_legacy_has_one_unattributed_capability_that_does_not_expire() -> None:
    registry = make("legacy")
    capability = registry.pair_legacy(token())
    assert capability.caller == Caller(None, None)
    assert (capability.principal_id, capability.generation, capability.expires_at_ms) == ("legacy", 0, None)
    assert registry.find("legacy", 0, 2**60) is capability
    assert list(registry) == [capability]


def test_individual_mode_has_no_shared_credential() -> None:
    registry = make()
    with pytest.raises(ConfigurationError, match="no shared credential"):
        registry.pair_legacy(token())
    assert list(registry) == []
    assert registry.find("legacy", 0, NOW) is None


def test_legacy_mode_takes_no_grants_and_issues_nothing() -> None:
    registry = make("legacy")
    with pytest.raises(ConfigurationError, match="legacy mode"):
        registry.reconcile([Grant("a", 1)], NOW)
    with pytest.raises(ConfigurationError, match="individual only"):
        registry.issue(token(), "a", 1, None, NOW)
    with pytest.raises(ConfigurationError, match="individual only"):
        registry.issue(token(), "legacy", 0, None, NOW)
    assert list(registry) == []


def test_a_registry_stays_in_its_mode() -> None:
    registry = make()
    with pytest.raises(AttributeError):
        registry.mode = "legacy"  # type: ignore[misc]
    assert registry.mode == "individual"


def test_no_grant_can_be_named_legacy() -> None:
    """The unattributed principal cannot be issued as if it were one of the named."""
    with pytest.raises(ConfigurationError, match="not 'legacy'"):
        Grant("legacy", 1)
    with pytest.raises(ConfigurationError, match="no approved grant"):
        with_grant().issue(token(), "legacy", 0, None, NOW)


def test_the_same_token_gives_unrelated_keys_in_the_two_modes() -> None:
    legacy = make("legacy").pair_legacy(token())
    individual = with_grant().issue(token(), "a", 1, None, NOW)
    assert individual.caller == Caller("a", 1)
    assert legacy.keys != individual.keys
    for name in ("challenge", "binding", "request", "psk"):
        assert getattr(legacy.keys, name) != getattr(individual.keys, name)


@pytest.mark.parametrize("generation", [0, -1, 2**53, 2**64])
def test_a_generation_is_a_whole_number_from_1(generation: int) -> None:
    Grant("a", 2**53 - 1)
    with pytest.raises(ConfigurationError, match="whole number from 1"):
        Grant("a", generation)


@pytest.mark.parametrize("principal_id", ["", "a b", "-a", "x" * 65, "a\n", "\u00e9", "\ud800"])
def test_a_grant_has_a_principal_id(principal_id: str) -> None:
    with pytest.raises(ConfigurationError, match="1 to 64"):
        Grant(principal_id, 1)


def test_a_grant_is_frozen() -> None:
    grant = Grant("a", 1)
    with pytest.raises(FrozenInstanceError):
        grant.generation = 2  # type: ignore[misc]


# ---- issuing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("principal_id", "generation"), [("b", 1), ("a", 2), ("a", 0), ("A", 1), ("", 1)])
def test_nothing_is_issued_without_its_grant(principal_id: str, generation: int) -> None:
    registry = with_grant("a", 1)
    with pytest.raises(ConfigurationError, match="no approved grant"):
        registry.issue(token(), principal_id, generation, None, NOW)
    assert list(registry) == []


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_token_has_32_bytes(length: int) -> None:
    registry = with_grant()
    with pytest.raises(ConfigurationError, match="32 bytes"):
        registry.issue(bytes(length), "a", 1, None, NOW)
    with pytest.raises(ConfigurationError, match="32 bytes"):
        make("legacy").pair_legacy(bytes(length))
    assert list(registry) == []


def test_issuing_again_ends_the_one_before() -> None:
    registry = with_grant()
    first = registry.issue(token(1), "a", 1, None, NOW)
    second = registry.issue(token(2), "a", 1, None, NOW)
    assert registry.find("a", 1, NOW) is second
    assert not registry.is_current(first, NOW)
    assert first != second
    assert list(registry) == [second]
    # Even the same token again makes another capability.
    third = registry.issue(token(2), "a", 1, None, NOW)
    assert not registry.is_current(second, NOW)
    assert registry.is_current(third, NOW)


def test_find_wants_the_exact_id_and_generation() -> None:
    registry = with_grant("a", 5)
    registry.issue(token(), "a", 5, None, NOW)
    for principal_id, generation in (("a", 4), ("a", 6), ("a", 0), ("b", 5), ("A", 5), ("", 5)):
        assert registry.find(principal_id, generation, NOW) is None


def test_the_decoy_belongs_to_nobody() -> None:
    registry = make("legacy")
    paired = registry.pair_legacy(DECOY[:31] + b"x")
    assert registry.decoy_keys != paired.keys
    assert isinstance(registry.decoy_keys, CapabilityKeys)
    assert make().decoy_keys == registry.decoy_keys


# ---- expiry ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grant_ends", "asked", "ends"),
    [
        (None, None, None),
        (NOW + 10, None, NOW + 10),
        (None, NOW + 10, NOW + 10),
        (NOW + 10, NOW + 20, NOW + 10),
        (NOW + 20, NOW + 10, NOW + 10),
    ],
)
def test_the_earlier_end_counts(grant_ends: int | None, asked: int | None, ends: int | None) -> None:
    registry = with_grant("a", 1, grant_ends)
    capability = registry.issue(token(), "a", 1, asked, NOW)
    assert capability.expires_at_ms == ends
    if ends is not None:
        assert registry.find("a", 1, ends - 1) is capability
        assert registry.find("a", 1, ends) is None
        assert not registry.is_current(capability, ends)
        assert registry.is_current(capability, ends - 1)
    else:
        assert registry.find("a", 1, 2**62) is capability


@pytest.mark.parametrize("late", [0, 1, 10**12])
def test_nothing_is_issued_after_its_end(late: int) -> None:
    registry = with_grant("a", 1, NOW + 10)
    with pytest.raises(ConfigurationError, match="already past"):
        registry.issue(token(), "a", 1, None, NOW + 10 + late)
    with pytest.raises(ConfigurationError, match="already past"):
        with_grant().issue(token(), "a", 1, NOW - late, NOW)


def test_a_grant_that_ends_sooner_than_before_shortens_what_was_issued() -> None:
    registry = with_grant("a", 1, NOW + 1000)
    capability = registry.issue(token(), "a", 1, None, NOW)
    assert registry.reconcile([Grant("a", 1, NOW + 100)], NOW) == []
    assert registry.find("a", 1, NOW + 99) is capability
    assert registry.find("a", 1, NOW + 100) is None
    assert not registry.is_current(capability, NOW + 100)


def test_a_grant_that_got_an_end_ends_what_was_issued_without_one() -> None:
    registry = with_grant("a", 1)
    capability = registry.issue(token(), "a", 1, None, NOW)
    registry.reconcile([Grant("a", 1, NOW + 100)], NOW)
    assert not registry.is_current(capability, NOW + 100)


def test_a_longer_grant_lengthens_nothing_that_was_issued() -> None:
    registry = with_grant("a", 1, NOW + 100)
    capability = registry.issue(token(), "a", 1, None, NOW)
    registry.reconcile([Grant("a", 1, NOW + 1000)], NOW)
    assert not registry.is_current(capability, NOW + 100)


# ---- reconciling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grants",
    [
        [],
        [Grant("b", 1)],
        [Grant("a", 1, enabled=False)],
        [Grant("a", 1, NOW)],
        [Grant("a", 2)],
        [Grant("a", 2, enabled=False)],
    ],
    ids=["missing", "other", "disabled", "expired", "newer", "newer and disabled"],
)
def test_reconciling_takes_what_is_no_longer_granted(grants: list[Grant]) -> None:
    registry = with_grant()
    capability = registry.issue(token(), "a", 1, None, NOW)
    challenge = bound(capability, 1)
    assert registry.reconcile(grants, NOW) == [capability]
    assert registry.find("a", 1, NOW) is None
    assert not registry.is_current(capability, NOW)
    assert list(registry) == []
    with pytest.raises(PeerRefused):
        capability.account.challenges.take(challenge.challenge_id, 1, 0)
    with pytest.raises(ConfigurationError, match="no approved grant"):
        registry.issue(token(), "a", 1, None, NOW)


def test_reconciling_leaves_what_is_still_granted() -> None:
    registry = with_grant()
    capability = registry.issue(token(), "a", 1, None, NOW)
    challenge = bound(capability, 1)
    assert registry.reconcile([Grant("b", 9), Grant("a", 1)], NOW) == []
    assert registry.find("a", 1, NOW) is capability
    assert capability.account.challenges.take(challenge.challenge_id, 1, 0) is challenge


def test_a_generation_never_goes_back() -> None:
    registry = with_grant("a", 5)
    capability = registry.issue(token(), "a", 5, None, NOW)
    assert registry.reconcile([Grant("a", 4)], NOW) == [capability]
    with pytest.raises(ConfigurationError, match="no approved grant"):
        registry.issue(token(), "a", 4, None, NOW)
    registry.reconcile([Grant("a", 5)], NOW)
    registry.issue(token(), "a", 5, None, NOW)


@pytest.mark.parametrize(
    "last", [Grant("a", 7, enabled=False), Grant("a", 7, NOW - 1), Grant("a", 7)], ids=str
)
def test_the_highest_generation_is_remembered_however_it_came_and_went(last: Grant) -> None:
    registry = make()
    registry.reconcile([last], NOW)
    registry.reconcile([], NOW)
    registry.reconcile([Grant("a", 6)], NOW)
    with pytest.raises(ConfigurationError, match="no approved grant"):
        registry.issue(token(), "a", 6, None, NOW)
    registry.reconcile([Grant("a", 8)], NOW)
    assert registry.issue(token(), "a", 8, None, NOW).generation == 8


def test_two_grants_for_one_id_are_refused_and_change_nothing() -> None:
    registry = with_grant()
    capability = registry.issue(token(), "a", 1, None, NOW)
    with pytest.raises(ConfigurationError, match="same id"):
        registry.reconcile([Grant("b", 1), Grant("a", 9), Grant("a", 1)], NOW)
    assert registry.find("a", 1, NOW) is capability
    registry.reconcile([Grant("a", 1)], NOW)
    assert registry.find("a", 1, NOW) is capability


# ---- accounts ------------------------------------------------------------------------------------------


def test_a_new_generation_or_token_refills_nothing() -> None:
    registry = with_grant()
    first = registry.issue(token(1), "a", 1, None, NOW)
    first.account.nonces.add(bytes(32), 0)
    for _ in range(60):
        assert first.account.requests.take(0) == 0
    again = registry.issue(token(2), "a", 1, None, NOW)
    registry.reconcile([], NOW)
    registry.reconcile([Grant("a", 2)], NOW)
    later = registry.issue(token(3), "a", 2, None, NOW)
    assert first.account is again.account is later.account
    assert later.account.requests.take(0) == 60_000
    with pytest.raises(PeerRefused):
        later.account.nonces.add(bytes(32), 0)


def test_two_principals_share_no_account() -> None:
    registry = make()
    registry.reconcile([Grant("a", 1), Grant("b", 1)], NOW)
    one = registry.issue(token(), "a", 1, None, NOW)
    other = registry.issue(token(), "b", 1, None, NOW)
    assert one.keys != other.keys
    for _ in range(60):
        one.account.requests.take(0)
    assert one.account.requests.take(0) > 0
    assert other.account.requests.take(0) == 0
    one.account.nonces.add(bytes(32), 0)
    other.account.nonces.add(bytes(32), 0)
    challenge = bound(one, 1)
    with pytest.raises(PeerRefused):
        other.account.challenges.take(challenge.challenge_id, 1, 0)
    assert one.account.challenges.take(challenge.challenge_id, 1, 0) is challenge


def test_issuing_again_drops_challenges_that_were_handed_out() -> None:
    registry = with_grant()
    capability = registry.issue(token(1), "a", 1, None, NOW)
    challenge = bound(capability, 1)
    again = registry.issue(token(2), "a", 1, None, NOW)
    with pytest.raises(PeerRefused):
        again.account.challenges.take(challenge.challenge_id, 1, 0)


# ---- revoking ------------------------------------------------------------------------------------------


def test_removing_one_leaves_the_others() -> None:
    registry = make()
    registry.reconcile([Grant("a", 1), Grant("b", 1)], NOW)
    one = registry.issue(token(1), "a", 1, None, NOW)
    other = registry.issue(token(2), "b", 1, None, NOW)
    challenge = bound(one, 1)
    assert registry.remove("a") is one
    assert registry.remove("a") is None
    assert registry.remove("c") is None
    assert not registry.is_current(one, NOW)
    assert registry.is_current(other, NOW)
    with pytest.raises(PeerRefused):
        one.account.challenges.take(challenge.challenge_id, 1, 0)


@pytest.mark.parametrize("mode", ["legacy", "individual"])
def test_revoking_is_for_good(mode: IdentityMode) -> None:
    registry = make(mode)
    if mode == "legacy":
        capability = registry.pair_legacy(token())
    else:
        registry.reconcile([Grant("a", 1)], NOW)
        capability = registry.issue(token(), "a", 1, None, NOW)
    assert not registry.revoked
    registry.revoke_all()
    registry.revoke_all()
    assert registry.revoked
    assert list(registry) == []
    assert not registry.is_current(capability, NOW)
    if mode == "legacy":
        with pytest.raises(ConfigurationError, match="revoked for good"):
            registry.pair_legacy(token())
    else:
        registry.reconcile([Grant("a", 1)], NOW)
        with pytest.raises(ConfigurationError, match="revoked for good"):
            registry.issue(token(), "a", 1, None, NOW)


class Registry(RuleBasedStateMachine):
    """Any sequence of publishing, issuing and waiting, against a model that keeps the whole history."""

    @initialize()
    def start(self) -> None:
        self.registry = make()
        self.now = NOW
        self.grants: dict[str, Grant] = {}
        self.highest: dict[str, int] = {}
        self.current: dict[str, Capability] = {}
        self.issued: list[Capability] = []

    @rule(
        generations=st.dictionaries(
            st.sampled_from("ab"),
            st.tuples(st.integers(1, 4), st.one_of(st.none(), st.integers(-5, 50)), st.booleans()),
        )
    )
    def publish(self, generations: dict[str, tuple[int, int | None, bool]]) -> None:
        grants = [
            Grant(name, generation, None if ends is None else self.now + ends, enabled)
            for name, (generation, ends, enabled) in generations.items()
        ]
        for grant in grants:
            seen = max(self.highest.get(grant.principal_id, 0), grant.generation)
            self.highest[grant.principal_id] = seen
        self.grants = {
            grant.principal_id: grant
            for grant in grants
            if grant.enabled and grant.generation == self.highest[grant.principal_id]
        }
        lost = self.registry.reconcile(grants, self.now)
        for capability in lost:
            assert self.current.pop(capability.principal_id) is capability

    @rule(name=st.sampled_from("ab"), generation=st.integers(1, 4), ends=st.none() | st.integers(-2, 30))
    def issue(self, name: str, generation: int, ends: int | None) -> None:
        asked = None if ends is None else self.now + ends
        try:
            capability = self.registry.issue(token(len(self.issued)), name, generation, asked, self.now)
        except ConfigurationError:
            grant = self.grants.get(name)
            assert (
                grant is None
                or grant.generation != generation
                or (grant.expires_at_ms is not None and grant.expires_at_ms <= self.now)
                or (asked is not None and asked <= self.now)
            )
            return
        self.current[name] = capability
        self.issued.append(capability)

    @rule(name=st.sampled_from("ab"))
    def revoke(self, name: str) -> None:
        assert self.registry.remove(name) is self.current.pop(name, None)

    @rule(passed=st.integers(0, 40))
    def wait(self, passed: int) -> None:
        self.now += passed

    @invariant()
    def only_what_is_granted_right_now_works(self) -> None:
        for capability in getattr(self, "issued", []):
            name, generation = capability.principal_id, capability.generation
            grant = self.grants.get(name)
            ends = [
                end for end in (capability.expires_at_ms, grant and grant.expires_at_ms) if end is not None
            ]
            good = (
                self.current.get(name) is capability
                and grant is not None
                and grant.generation == generation
                and all(end > self.now for end in ends)
            )
            assert self.registry.is_current(capability, self.now) is good
            assert (self.registry.find(name, generation, self.now) is capability) is good


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(max_examples=60, stateful_step_count=20)
