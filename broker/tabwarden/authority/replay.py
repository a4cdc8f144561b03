"""Nonces seen, so that no proof is accepted twice within the time in which it would be fresh."""

from collections import deque

from tabwarden.errors import PeerRefused, Refusal


class NonceCache:
    """The nonces of one principal. Entries are never evicted early: a full cache refuses instead.

    A proof may be dated up to one window ahead and stays fresh for one window after its date, so an entry
    lives for two windows from when it was seen. Times are milliseconds of the clock that never steps.
    """

    __slots__ = ("_capacity", "_lifetime_ms", "_order", "_seen")

    def __init__(self, window_ms: int, capacity: int) -> None:
        self._lifetime_ms = 2 * window_ms + 1
        self._capacity = capacity
        self._seen: set[bytes] = set()
        self._order: deque[tuple[int, bytes]] = deque()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, nonce: bytes, now_ms: int) -> None:
        """Remember `nonce`; PeerRefused when seen before or there is no room. Only after a good MAC."""
        order, seen = self._order, self._seen
        while order and order[0][0] <= now_ms:
            seen.remove(order.popleft()[1])
        if nonce in seen:
            raise PeerRefused(Refusal.NONCE)
        if len(seen) >= self._capacity:
            raise PeerRefused(Refusal.NONCE_CACHE_FULL)
        seen.add(nonce)
        order.append((now_ms + self._lifetime_ms, nonce))


def check_fresh(timestamp_ms: int, now_ms: int, window_ms: int) -> None:
    """PeerRefused unless the two are at most one window apart."""
    if abs(timestamp_ms - now_ms) > window_ms:
        raise PeerRefused(Refusal.TIMESTAMP)
