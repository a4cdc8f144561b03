"""A proof is accepted once, whenever it is dated, and a full cache refuses rather than forgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.authority.replay import NonceCache, check_fresh
from tabwarden.errors import PeerRefused, Refusal
from tabwarden.limits import Limits

WINDOW = 30_000


def nonce(at: int) -> bytes:
    return at.to_bytes(32)


def add(cache: NonceCache, at: int, now: int) -> Refusal | None:
    try:
        cache.add(nonce(at), now)
    except PeerRefused as refused:
        return refused.reason
    return None


def fresh(timestamp: int, now: int) -> bool:
    try:
        check_fresh(timestamp, now, WINDOW)
    except PeerRefused as refused:
        return refused.reason is not Refusal.TIMESTAMP
    return True


@pytest.mark.parametrize(
    ("offset", "good"),
    [
        (0, True),
        (WINDOW, True),
        (-WINDOW, True),
        (WINDOW + 1, False),
        (-WINDOW - 1, False),
        (31_000, False),
        (-31_000, False),
        (2**62, False),
    ],
)
def test_freshness_is_one_window_both_ways(offset: int, good: bool) -> None:
    assert fresh(1_000_000 + offset, 1_000_000) is good


def test_a_nonce_is_accepted_once() -> None:
    cache = NonceCache(WINDOW, 10)
    assert add(cache, 1, 0) is None
    assert add(cache, 1, 0) is Refusal.NONCE
    assert add(cache, 2, 0) is None
    assert len(cache) == 2


@given(st.integers(-WINDOW, WINDOW), st.integers(0, 3 * WINDOW))
def test_no_proof_is_ever_accepted_twice(ahead: int, later: int) -> None:
    """Dated as far ahead or behind as may be, and sent again at any time while it is still fresh."""
    cache = NonceCache(WINDOW, 10)
    now = 1_000_000
    timestamp = now + ahead
    assert fresh(timestamp, now)
    assert add(cache, 1, now) is None
    if fresh(timestamp, now + later):
        assert add(cache, 1, now + later) is Refusal.NONCE


def test_an_entry_lives_exactly_as_long_as_its_proof_can_be_fresh() -> None:
    for later, expected in ((2 * WINDOW, Refusal.NONCE), (2 * WINDOW + 1, None)):
        cache = NonceCache(WINDOW, 10)
        assert add(cache, 1, 0) is None
        assert add(cache, 1, later) is expected


def test_a_refused_replay_does_not_lengthen_the_entry() -> None:
    cache = NonceCache(WINDOW, 10)
    add(cache, 1, 0)
    assert add(cache, 1, WINDOW) is Refusal.NONCE
    assert add(cache, 2, 2 * WINDOW + 1) is None
    assert len(cache) == 1


def test_a_full_cache_refuses_and_forgets_nothing() -> None:
    cache = NonceCache(WINDOW, 3)
    for at in range(3):
        assert add(cache, at, at) is None
    for at in range(3, 100):
        assert add(cache, at, 50) is Refusal.NONCE_CACHE_FULL
    for at in range(3):
        assert add(cache, at, 50) is Refusal.NONCE
    assert len(cache) == 3
    # Room comes with time, for as many as have ended.
    assert add(cache, 3, 2 * WINDOW + 1) is None
    assert add(cache, 4, 2 * WINDOW + 1) is Refusal.NONCE_CACHE_FULL
    assert add(cache, 4, 2 * WINDOW + 3) is None


def test_the_capacity_holds_all_that_the_budgets_can_make() -> None:
    """Every request that both budgets allow while entries live, so that no honest caller is refused."""
    for limits in (Limits(), Limits(requests_per_minute=6000), Limits(freshness_window_ms=120_000)):
        minutes = 2 * limits.freshness_window_ms / 60_000
        made = (minutes + 1) * (limits.requests_per_minute + limits.challenge_budget)
        assert limits.nonce_entries > made


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 400)), max_size=60))
def test_against_a_model_that_forgets_nothing(steps: list[tuple[int, int]]) -> None:
    cache, now = NonceCache(100, 4), 0
    ends: dict[int, int] = {}
    for at, passed in steps:
        now += passed
        alive = {key: end for key, end in ends.items() if end > now}
        if at in alive:
            expected: Refusal | None = Refusal.NONCE
        elif len(alive) >= 4:
            expected = Refusal.NONCE_CACHE_FULL
        else:
            expected = None
            ends[at] = now + 201
        assert add(cache, at, now) is expected
        assert len(cache) == sum(end > now for end in ends.values())
