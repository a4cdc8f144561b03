"""Challenges that were bound to a caller and not yet used. Each is taken out once, by whoever proves to be
that caller."""

from dataclasses import dataclass, field

from tabwarden.errors import PeerRefused, Refusal
from tabwarden.ports import RequestTrace
from tabwarden.protocol.primitives import KemKey, X25519Key


@dataclass(frozen=True, slots=True, eq=False)
class BoundChallenge:
    """One handed-out challenge with its private keys; `expires_ms` by the clock that never steps."""

    challenge_id: bytes
    generation: int
    kem: KemKey = field(repr=False)
    x: X25519Key = field(repr=False)
    request_input: bytes = field(repr=False)
    request_mac: bytes = field(repr=False)
    wire: bytes = field(repr=False)
    expires_ms: int
    trace: RequestTrace = field(repr=False)


class OutstandingChallenges:
    """Those of one principal: another principal's id finds nothing here, and burns nothing."""

    __slots__ = ("_bound", "_limit", "_reserved")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bound: dict[bytes, BoundChallenge] = {}
        self._reserved = 0

    def __len__(self) -> int:
        return len(self._bound) + self._reserved

    def reserve(self, now_ms: int) -> int:
        """Keep a place while a challenge is fetched from the pool.

        Returns 0, or the milliseconds until a place becomes free when none is.
        """
        for challenge in [c for c in self._bound.values() if c.expires_ms <= now_ms]:
            del self._bound[challenge.challenge_id]
        if len(self) >= self._limit:
            soonest = min((c.expires_ms for c in self._bound.values()), default=now_ms + 1000)
            return max(1, soonest - now_ms)
        self._reserved += 1
        return 0

    def unreserve(self) -> None:
        """Give the place back, used or not."""
        self._reserved -= 1

    def put(self, challenge: BoundChallenge) -> None:
        self._bound[challenge.challenge_id] = challenge

    def take(self, challenge_id: bytes, generation: int, now_ms: int) -> BoundChallenge:
        """Remove and return it: there is no second time, whatever happens next. PeerRefused when there is
        none, it was bound to another generation, or it has expired."""
        challenge = self._bound.pop(challenge_id, None)
        if challenge is None or challenge.generation != generation:
            raise PeerRefused(Refusal.UNKNOWN_CHALLENGE)
        if challenge.expires_ms <= now_ms:
            raise PeerRefused(Refusal.CHALLENGE_EXPIRED)
        return challenge

    def clear(self) -> None:
        self._bound.clear()
