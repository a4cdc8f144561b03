"""The verdict on the limiter, against limiters that are right, and against some that are not."""

import random
from collections.abc import Callable

import pytest
from tabwarden.authority.ratelimit import SlidingWindow
from tabwarden_adapters.load import Asked, Judgement, judge

from tests.load.support import SECOND

LIMIT = 60
Take = Callable[[int], bool]
"""Whether a limiter lets a call through at this millisecond."""


def the_brokers_own(limit: int = LIMIT) -> Take:
    window = SlidingWindow(limit)
    return lambda now: window.take(now) == 0


def by_calendar_minutes(limit: int = LIMIT) -> Take:
    taken: dict[int, int] = {}

    def take(now: int) -> bool:
        minute = now // 60_000
        taken[minute] = taken.get(minute, 0) + 1
        return taken[minute] <= limit

    return take


def that_counts_what_it_turns_away(limit: int = LIMIT) -> Take:
    asked: list[int] = []

    def take(now: int) -> bool:
        asked.append(now)
        return sum(moment > now - 60_000 for moment in asked) <= limit

    return take


def asking(
    take: Take, *, every_ms: int = 500, first: int = 0, seconds: int = 300, lasting_ms: int = 8
) -> list[Asked]:
    """An agent that asks without pause. The limiter decides somewhere within each call."""
    chance, calls = random.Random(7), []
    for sent in range(first * 1000, seconds * 1000, every_ms):
        ended = sent + chance.randint(1, lasting_ms)
        calls.append((chance.randint(sent, ended), sent, ended))
    # It decides in the order in which calls come to it, whatever the order in which they left.
    return [
        Asked(sent * 1_000_000, ended * 1_000_000, take(decided)) for decided, sent, ended in sorted(calls)
    ]


def test_the_brokers_limiter_is_right() -> None:
    verdict = judge(asking(the_brokers_own()), LIMIT)
    assert verdict.judgement is Judgement.RIGHT
    assert not verdict.wrong
    assert (verdict.most, verdict.fewest, verdict.unexplained) == (60, 60, 0)
    assert verdict.turned_away == 300


@pytest.mark.parametrize("lasting_ms", [1, 400, 5000])
def test_slow_answers_make_no_right_limiter_wrong(lasting_ms: int) -> None:
    calls = asking(the_brokers_own(), lasting_ms=lasting_ms)
    random.Random(1).shuffle(calls)
    assert judge(calls, LIMIT).judgement is Judgement.RIGHT


def test_one_too_many_is_found_and_its_window_named() -> None:
    verdict = judge(asking(the_brokers_own(LIMIT + 1)), LIMIT)
    assert verdict.judgement is Judgement.TOO_MANY
    assert verdict.wrong
    assert verdict.most == 61
    assert verdict.fullest_from_s == 0.0


def test_one_too_few_is_found_and_its_window_named() -> None:
    verdict = judge(asking(the_brokers_own(LIMIT - 1)), LIMIT)
    assert verdict.judgement is Judgement.TOO_FEW
    assert verdict.wrong
    assert verdict.fewest == 59
    assert verdict.emptiest_to_s is not None
    assert verdict.emptiest_to_s >= 60


def test_calendar_minutes_let_too_many_through_where_two_of_them_meet() -> None:
    calls = asking(by_calendar_minutes(), every_ms=250, first=50, seconds=125)
    assert judge(calls, LIMIT).judgement is Judgement.TOO_MANY


def test_a_limiter_that_counts_what_it_turns_away_lets_too_few_through() -> None:
    assert judge(asking(that_counts_what_it_turns_away()), LIMIT).judgement is Judgement.TOO_FEW


def test_only_what_is_certain_is_held_against_it() -> None:
    # 61 calls within a minute of one another by their ends; the first may have been let through long before.
    first = Asked(0, 10 * SECOND, True)
    others = [Asked(61 * SECOND, 61 * SECOND + 1000, True)] * 60
    assert judge([first, *others], LIMIT).most == 60
    assert judge([first, *others], LIMIT).judgement is Judgement.UNTRIED
    # The limiter counts whole milliseconds: two units may be that much closer than a minute.
    grain = [Asked(0, 0, True), *[Asked(59_999_500_000, 59_999_500_000, True)] * 60]
    assert judge(grain, LIMIT).judgement is Judgement.UNTRIED
    nearer = [Asked(0, 0, True), *[Asked(59_998_000_000, 59_998_000_000, True)] * 60]
    assert judge(nearer, LIMIT).judgement is Judgement.TOO_MANY


def test_calls_without_an_answer_may_have_been_let_through() -> None:
    known = [Asked((60 + number) * SECOND, (60 + number) * SECOND + 1, True) for number in range(50)]
    lost = [Asked((60 + number) * SECOND, (61 + number) * SECOND, None) for number in range(10)]
    turned_away = Asked(115 * SECOND, 115 * SECOND + 1, False)
    assert judge([*known, *lost, turned_away], LIMIT).judgement is Judgement.RIGHT
    assert judge([*known, *lost[1:], turned_away], LIMIT).judgement is Judgement.TOO_FEW
    assert judge(known + lost * 2, LIMIT).most == 50
    # One that was given up before the window began can still have been taken within it.
    given_up = Asked(40 * SECOND, 54 * SECOND, None)
    assert judge([*known, *lost[1:], given_up, turned_away], LIMIT).judgement is Judgement.RIGHT
    long_ago = Asked(10 * SECOND, 24 * SECOND, None)
    assert judge([*known, *lost[1:], long_ago, turned_away], LIMIT).judgement is Judgement.TOO_FEW


def test_calls_before_the_run_explain_the_first_minute_and_no_other() -> None:
    early = [Asked(0, 1, True), Asked(59 * SECOND, 59 * SECOND + 1, False)]
    verdict = judge(early, LIMIT)
    assert (verdict.judgement, verdict.unexplained, verdict.turned_away) == (Judgement.UNTRIED, 1, 0)
    assert (verdict.fewest, verdict.emptiest_to_s) == (None, None)
    late = [*early, Asked(60 * SECOND, 60 * SECOND + 1, False)]
    assert judge(late, LIMIT).judgement is Judgement.TOO_FEW


def test_of_nothing() -> None:
    verdict = judge([], LIMIT)
    assert (verdict.judgement, verdict.most, verdict.fullest_from_s) == (Judgement.UNTRIED, 0, None)
