"""Whether the broker's limiter let through exactly what it should, in every window.

The limiter promises (`tabwarden.authority.ratelimit`): at most `limit` units of one principal in any 60
seconds, and no call is turned away while fewer than that were taken in the 60 seconds before it. It takes
the unit somewhere between the moment in which the sealed call leaves and the one in which its end is known,
so both are kept, and only what is certain is held against it:

* **too many**: more than `limit` calls that were let through lie within one window as a whole;
* **too few**: a call was turned away, and even with every call that may have taken its unit in the window
  that ends with it, there are fewer than `limit`.

Other callers of the same principal take units that are not seen here. What they took before the run can
explain a call that was turned away in its first minute, so that is left open.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from tabwarden.authority.ratelimit import WINDOW_MS

_MS: Final = 1_000_000
WINDOW_NS: Final = WINDOW_MS * _MS
# The limiter counts whole milliseconds, so two units may be this much closer than a window.
_GRAIN_NS: Final = _MS
# A call that was given up may still be taken as long as its proof is fresh (Limits.freshness_window_ms).
_LATE_NS: Final = 30_000 * _MS


class Judgement(StrEnum):
    """What is to be said of the limiter."""

    RIGHT = "right"
    TOO_MANY = "too-many"
    TOO_FEW = "too-few"
    UNTRIED = "untried"


class Asked(NamedTuple):
    """One call of one principal. Nanoseconds since the start of the run: `asked` when it left, `ended` when
    its end was known. `taken`: the limiter let it through (True), turned it away (False), or nobody knows
    (None)."""

    asked: int
    ended: int
    taken: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterVerdict:
    """Times in seconds of the run.

    `most` calls were certainly let through in one window, the fullest, which begins at `fullest_from_s`.
    `fewest` may have been let through in the emptiest of the windows that end with a call turned away, at
    `emptiest_to_s`; None when none was. `turned_away` calls are judged. `unexplained` ones came in the first
    minute after too few: calls before the run can explain them, so they are not judged.
    """

    judgement: Judgement
    limit: int
    most: int
    fullest_from_s: float | None
    fewest: int | None
    emptiest_to_s: float | None
    turned_away: int
    unexplained: int

    @property
    def wrong(self) -> bool:
        """True when the limiter broke its promise."""
        return self.judgement in (Judgement.TOO_MANY, Judgement.TOO_FEW)


def judge(calls: Iterable[Asked], limit: int) -> LimiterVerdict:
    """The verdict about one principal, from all of its calls in any order."""
    calls = list(calls)
    most, fullest = _fullest([call for call in calls if call.taken])
    possible = [call if call.taken else call._replace(ended=call.ended + _LATE_NS) for call in calls]
    possible = [call for call in possible if call.taken is not False]
    began, ended = sorted(call.asked for call in possible), sorted(call.ended for call in possible)
    judged = unexplained = 0
    fewest: int | None = None
    emptiest: int | None = None
    for call in calls:
        if call.taken is not False:
            continue
        count = bisect_right(began, call.ended) - bisect_right(ended, call.asked - WINDOW_NS)
        if count < limit and call.asked < WINDOW_NS:
            unexplained += 1
            continue
        judged += 1
        if fewest is None or count < fewest:
            fewest, emptiest = count, call.ended
    if most > limit:
        judgement = Judgement.TOO_MANY
    elif fewest is not None and fewest < limit:
        judgement = Judgement.TOO_FEW
    else:
        judgement = Judgement.RIGHT if judged else Judgement.UNTRIED
    return LimiterVerdict(
        judgement=judgement,
        limit=limit,
        most=most,
        fullest_from_s=_seconds(fullest),
        fewest=fewest,
        emptiest_to_s=_seconds(emptiest),
        turned_away=judged,
        unexplained=unexplained,
    )


def _fullest(taken: Sequence[Asked]) -> tuple[int, int | None]:
    """The largest number of calls that lie within one window as a whole, and where that begins.

    A call that lasts longer than a window makes the number smaller than it may be, and never larger.
    """
    began, ended = sorted(call.asked for call in taken), sorted(call.ended for call in taken)
    most, fullest = 0, None
    for before, start in enumerate(began):
        count = bisect_right(ended, start + WINDOW_NS - _GRAIN_NS) - before
        if count > most:
            most, fullest = count, start
    return most, fullest


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
