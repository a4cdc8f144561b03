"""What became of calls that carried an idempotency key, for a caller that lost the reply."""

from collections import OrderedDict
from typing import Literal

Effect = Literal["not_started", "committed", "unknown"]


def effect(committed: bool | None) -> Effect:
    """The wire word for what is known of a side effect."""
    return "unknown" if committed is None else "committed" if committed else "not_started"


class OutcomeLedger:
    """The last outcomes of one principal, bounded in number and age. A forgotten key is `unknown`.

    Times are milliseconds of the monotonic clock.
    """

    __slots__ = ("_capacity", "_entries", "_forgot", "_lifetime_ms")

    def __init__(self, capacity: int, lifetime_ms: int) -> None:
        self._capacity = capacity
        self._lifetime_ms = lifetime_ms
        self._entries: OrderedDict[str, tuple[int, Effect]] = OrderedDict()
        self._forgot = False

    def begin(self, key: str, now_ms: int) -> bool:
        """Reserve `key` for a call about to run. False when it was used before: the call must not run."""
        self._expire(now_ms)
        if key in self._entries:
            return False
        if len(self._entries) >= self._capacity:
            self._entries.popitem(last=False)
            self._forgot = True
        self._entries[key] = (now_ms, "unknown")
        return True

    def end(self, key: str, result: Effect, now_ms: int) -> None:
        """Record how the call ended."""
        if key in self._entries:
            self._entries[key] = (now_ms, result)
            self._entries.move_to_end(key)

    def ask(self, key: str, now_ms: int) -> Effect:
        """`not_started` only when that is certain: nothing with an unknown key was ever forgotten."""
        self._expire(now_ms)
        entry = self._entries.get(key)
        if entry is not None:
            return entry[1]
        return "unknown" if self._forgot else "not_started"

    def _expire(self, now_ms: int) -> None:
        while self._entries:
            key, (at, _) = next(iter(self._entries.items()))
            if at > now_ms - self._lifetime_ms:
                return
            del self._entries[key]
            self._forgot = True
