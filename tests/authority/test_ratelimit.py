"""The sliding window: exact in every minute, and never stricter than it says."""

from hypothesis import given
from hypothesis import strategies as st
from tabwarden.authority.ratelimit import WINDOW_MS, SlidingWindow

# Long and short gaps, and gaps around the window's edge.
GAPS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 20_000),
    st.integers(WINDOW_MS - 2, WINDOW_MS + 2),
)


@given(st.integers(1, 6), st.lists(GAPS, max_size=80), st.integers(0, 10**9))
def test_no_window_has_more_than_the_limit_and_no_request_below_it_is_refused(
    limit: int, gaps: list[int], start: int
) -> None:
    window, now = SlidingWindow(limit), start
    taken: list[int] = []
    for gap in gaps:
        now += gap
        recent = [at for at in taken if at > now - WINDOW_MS]
        wait = window.take(now)
        assert (wait == 0) == (len(recent) < limit)
        if wait == 0:
            taken.append(now)
        else:
            # The advice is exact: a millisecond sooner is too soon.
            assert wait == recent[0] + WINDOW_MS - now
            assert 0 < wait <= WINDOW_MS
    for first in taken:
        assert sum(first <= at < first + WINDOW_MS for at in taken) <= limit


@given(st.integers(1, 5), st.integers(0, WINDOW_MS - 1))
def test_waiting_as_told_is_enough(limit: int, later: int) -> None:
    window = SlidingWindow(limit)
    for _ in range(limit):
        assert window.take(0) == 0
    wait = window.take(later)
    assert wait == WINDOW_MS - later
    assert window.take(later + wait - 1) == 1
    assert window.take(later + wait) == 0


def test_the_61st_in_a_minute() -> None:
    window = SlidingWindow(60)
    assert [window.take(at * 1000) for at in range(60)] == [0] * 60
    assert window.take(59_999) == 1
    assert window.take(60_000) == 0
    assert window.take(60_000) == 1000


def test_a_refusal_costs_nothing() -> None:
    window = SlidingWindow(1)
    assert window.take(0) == 0
    for at in range(1, 60_000, 997):
        assert window.take(at) == 60_000 - at
    assert window.take(60_000) == 0


def test_a_burst_over_the_edge_of_a_calendar_minute_is_still_one_window() -> None:
    window = SlidingWindow(2)
    assert [window.take(59_999), window.take(60_000)] == [0, 0]
    assert window.take(60_001) > 0
    assert window.take(119_998) > 0
    assert window.take(119_999) == 0
