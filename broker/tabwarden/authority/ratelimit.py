"""How often a principal may ask: a sliding window, exact for every minute and not only for calendar ones."""

from collections import deque

WINDOW_MS = 60_000


class SlidingWindow:
    """At most `limit` units in any 60 seconds of the monotonic clock."""

    __slots__ = ("_limit", "_taken")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: deque[int] = deque()

    def take(self, now_ms: int) -> int:
        """Take one unit and return 0, or take none and return the milliseconds until one is free."""
        taken = self._taken
        while taken and taken[0] <= now_ms - WINDOW_MS:
            taken.popleft()
        if len(taken) >= self._limit:
            return taken[0] + WINDOW_MS - now_ms
        taken.append(now_ms)
        return 0
