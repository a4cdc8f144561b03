"""Outstanding challenges: each opens one call, for its principal and its generation, in its time."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tabwarden.authority.challenges import BoundChallenge, OutstandingChallenges
from tabwarden.errors import PeerRefused, Refusal
from tabwarden.protocol.primitives import NativeProvider, X25519Key
from tabwarden.service.no_trace import NullTracer

KEM, X = NativeProvider().kem_key(), X25519Key()


def challenge(at: int, expires: int = 10_000, generation: int = 1) -> BoundChallenge:
    return BoundChallenge(
        at.to_bytes(16), generation, KEM, X, b"", b"", b"", expires, NullTracer().start_request()
    )


def put(outstanding: OutstandingChallenges, made: BoundChallenge, now: int = 0) -> BoundChallenge:
    assert outstanding.reserve(now) == 0
    outstanding.put(made)
    outstanding.unreserve()
    return made


def take(outstanding: OutstandingChallenges, at: int, generation: int = 1, now: int = 0) -> object:
    try:
        return outstanding.take(at.to_bytes(16), generation, now)
    except PeerRefused as refused:
        return refused.reason


def test_each_is_taken_once() -> None:
    outstanding = OutstandingChallenges(8)
    made = put(outstanding, challenge(1))
    assert len(outstanding) == 1
    assert take(outstanding, 1) is made
    assert take(outstanding, 1) is Refusal.UNKNOWN_CHALLENGE
    assert len(outstanding) == 0


def test_an_unknown_id_burns_nothing() -> None:
    outstanding = OutstandingChallenges(8)
    made = put(outstanding, challenge(1))
    for at in range(2, 102):
        assert take(outstanding, at) is Refusal.UNKNOWN_CHALLENGE
    assert outstanding.take(made.challenge_id, 1, 0) is made


def test_another_generation_gets_nothing_and_there_is_no_second_try() -> None:
    outstanding = OutstandingChallenges(8)
    put(outstanding, challenge(1, generation=1))
    assert take(outstanding, 1, generation=2) is Refusal.UNKNOWN_CHALLENGE
    assert take(outstanding, 1, generation=1) is Refusal.UNKNOWN_CHALLENGE


@pytest.mark.parametrize("late", [0, 1, 10**9])
def test_an_expired_one_is_refused_and_gone(late: int) -> None:
    outstanding = OutstandingChallenges(8)
    put(outstanding, challenge(1, expires=10_000))
    assert take(outstanding, 1, now=10_000 + late) is Refusal.CHALLENGE_EXPIRED
    # A clock that steps back would revive nothing.
    assert take(outstanding, 1, now=0) is Refusal.UNKNOWN_CHALLENGE


def test_the_last_millisecond_is_good() -> None:
    outstanding = OutstandingChallenges(8)
    made = put(outstanding, challenge(1, expires=10_000))
    assert take(outstanding, 1, now=9_999) is made


def test_one_more_than_may_be_outstanding_is_told_when() -> None:
    outstanding = OutstandingChallenges(2)
    put(outstanding, challenge(1, expires=700))
    put(outstanding, challenge(2, expires=900))
    assert outstanding.reserve(100) == 600
    assert len(outstanding) == 2
    assert outstanding.reserve(699) == 1
    # At its expiry its place is free.
    assert outstanding.reserve(700) == 0
    assert len(outstanding) == 2
    assert take(outstanding, 1, now=0) is Refusal.UNKNOWN_CHALLENGE


def test_a_used_one_frees_its_place() -> None:
    outstanding = OutstandingChallenges(1)
    put(outstanding, challenge(1))
    assert outstanding.reserve(0) > 0
    take(outstanding, 1)
    assert outstanding.reserve(0) == 0


def test_a_place_kept_counts_until_it_is_given_back() -> None:
    """Those who wait for the pool are outstanding too: waiting must not get round the limit."""
    outstanding = OutstandingChallenges(2)
    assert [outstanding.reserve(0), outstanding.reserve(0)] == [0, 0]
    assert outstanding.reserve(0) == 1000
    outstanding.unreserve()
    assert outstanding.reserve(0) == 0
    assert len(outstanding) == 2


def test_clearing_takes_what_was_handed_out() -> None:
    outstanding = OutstandingChallenges(2)
    put(outstanding, challenge(1))
    outstanding.clear()
    assert len(outstanding) == 0
    assert take(outstanding, 1) is Refusal.UNKNOWN_CHALLENGE


class Outstanding(RuleBasedStateMachine):
    """Any sequence of asking, waiting and using, against a plain dictionary."""

    @initialize()
    def start(self) -> None:
        self.outstanding = OutstandingChallenges(3)
        self.now = 0
        self.made = 0
        self.reserved = 0
        self.alive: dict[int, BoundChallenge] = {}

    @rule()
    def ask(self) -> None:
        self.alive = {at: c for at, c in self.alive.items() if c.expires_ms > self.now}
        wait = self.outstanding.reserve(self.now)
        assert (wait == 0) == (len(self.alive) + self.reserved < 3)
        self.reserved += wait == 0

    @rule(lifetime=st.integers(1, 50), arrives=st.booleans())
    def answered(self, lifetime: int, arrives: bool) -> None:
        if self.reserved:
            if arrives:
                self.made += 1
                self.alive[self.made] = challenge(self.made, self.now + lifetime)
                self.outstanding.put(self.alive[self.made])
            self.outstanding.unreserve()
            self.reserved -= 1

    @rule(at=st.integers(1, 12))
    def use(self, at: int) -> None:
        known = self.alive.pop(at, None)
        found = take(self.outstanding, at, now=self.now)
        if known is None:
            assert found is Refusal.UNKNOWN_CHALLENGE
        elif known.expires_ms <= self.now:
            assert found is Refusal.CHALLENGE_EXPIRED
        else:
            assert found is known

    @rule(passed=st.integers(0, 30))
    def wait(self, passed: int) -> None:
        self.now += passed

    @invariant()
    def never_more_than_the_limit(self) -> None:
        assert len(getattr(self, "outstanding", ())) <= 3


TestOutstanding = Outstanding.TestCase
TestOutstanding.settings = settings(max_examples=60, stateful_step_count=25)
