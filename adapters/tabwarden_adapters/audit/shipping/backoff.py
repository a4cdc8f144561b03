"""How long to wait before the next try."""

import secrets
from collections.abc import Callable

FIRST_S = 0.5
MOST_S = 60.0
_system_chance = secrets.SystemRandom().random


class Backoff:
    """Doubles from `first_s` to `MOST_S` seconds, less up to a half, so that many shippers that lost the same
    server do not come back at once. `chance` gives a number in [0, 1)."""

    def __init__(self, chance: Callable[[], float] = _system_chance, first_s: float = FIRST_S) -> None:
        self._chance = chance
        self._first = self._next = first_s

    def reset(self) -> None:
        """The other side was there again."""
        self._next = self._first

    def take(self) -> float:
        """Seconds to wait now."""
        wait, self._next = self._next, min(MOST_S, self._next * 2)
        return wait * (1 - self._chance() / 2)
