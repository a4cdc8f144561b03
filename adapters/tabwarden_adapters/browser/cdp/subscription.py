"""Events queued for one task, bounded: losing some is told, never hidden."""

from typing import Generic, Self, TypeVar

import trio

from tabwarden_adapters.browser.cdp.command import Event
from tabwarden_adapters.browser.cdp.errors import EventsLost

E = TypeVar("E", bound=Event)


class Subscription(Generic[E]):
    """Iterate over it with `async for`. Ends with its session; raises `EventsLost` after an overflow."""

    def __init__(self, capacity: int) -> None:
        self._sender, self._receiver = trio.open_memory_channel[E](capacity)
        self._overflow = False

    def put(self, event: E) -> None:
        """Queue one event, or give up the subscription. Never blocks."""
        try:
            self._sender.send_nowait(event)
        except trio.WouldBlock:
            self._overflow = True
            self.end()
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            pass

    def end(self) -> None:
        """Nothing more will come: what is queued can still be read."""
        self._sender.close()

    def close(self) -> None:
        """Nobody will read any more."""
        self._sender.close()
        self._receiver.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        try:
            return await self._receiver.receive()
        except trio.EndOfChannel:
            if self._overflow:
                raise EventsLost from None
            raise StopAsyncIteration from None
