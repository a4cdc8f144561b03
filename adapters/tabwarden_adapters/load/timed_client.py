"""The shipped client, watched from outside: every check is its own, and only the moments are noted here.

A call's time is divided where bytes leave and arrive:

* `connecting`: until the request for a challenge goes out (a connection if none is kept, and a proof);
* `challenge`: until the challenge is there;
* `sealing`: until the sealed call goes out (checking signatures and binding, encapsulating, sealing);
* `waiting`: until the sealed reply is there (all that the broker does with the call);
* `opening`: until its result is known.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from tabwarden import AgentClient, ConnectionDescriptor
from tabwarden.connection import LoopbackConnection, Reply
from tabwarden.protocol.proof import AGENT_ROUTE

PHASES: Final = ("connecting", "challenge", "sealing", "waiting", "opening")
Now = Callable[[], int]
"""Nanoseconds of a clock that never steps."""


class Marks:
    """The moments of one call, in nanoseconds; None for those that it has not come to."""

    __slots__ = ("answered", "asked", "begun", "challenge_asked", "challenged")

    def __init__(self, begun: int) -> None:
        self.begun = begun
        self.challenge_asked: int | None = None
        self.challenged: int | None = None
        self.asked: int | None = None
        self.answered: int | None = None

    def phases(self, ended: int) -> tuple[int | None, ...]:
        """Nanoseconds of each of `PHASES`; None for those that were not finished."""
        moments = (self.begun, self.challenge_asked, self.challenged, self.asked, self.answered)
        # The last phase ends with the call, and only where an answer was there to be opened.
        bounds = [*moments, None if self.answered is None else ended]
        return tuple(
            None if before is None or after is None else after - before for before, after in pairwise(bounds)
        )


class _Watched(LoopbackConnection):
    """A connection of the client for one exchange, with a note of when bytes leave and arrive."""

    def __init__(self, inner: LoopbackConnection, marks: Marks, now: Now) -> None:
        self._inner = inner
        self._marks = marks
        self._now = now

    async def send(self, route: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        if route == AGENT_ROUTE:
            self._marks.asked = self._now()
        else:
            self._marks.challenge_asked = self._now()
        await self._inner.send(route, headers, body)

    async def receive(self) -> Reply:
        reply = await self._inner.receive()
        if self._marks.asked is None:
            self._marks.challenged = self._now()
        else:
            self._marks.answered = self._now()
        return reply


class TimedClient(AgentClient):
    """One agent with one call in flight at the most. `marks` are those of its last call."""

    def __init__(self, descriptor: ConnectionDescriptor, *, now: Now = time.monotonic_ns) -> None:
        """Raises `DescriptorError`."""
        super().__init__(descriptor)
        self._now = now
        self.marks = Marks(now())

    async def attempt(self, plaintext: bytes) -> None:
        """One exchange. Unlike `call` it tries nothing again and has no deadline of its own: each try is a
        call of the load. Raises `ClientError`."""
        self.marks = Marks(self._now())
        await self._once(plaintext)

    async def _exchange(self, connection: LoopbackConnection, plaintext: bytes) -> Any:
        return await super()._exchange(_Watched(connection, self.marks, self._now), plaintext)
