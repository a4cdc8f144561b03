"""Bytes both ways between a browser and an origin, with each side's pace and its half-close kept."""

import trio

from tabwarden_adapters.browser.egress_http import Malformed, RequestReader

IDLE_S = 300.0  # Chromium keeps an unused connection that long
HALF_CLOSED_S = 60.0  # one side has said all: the other finishes what it is sending
CHUNK = 64 * 1024  # the most that is held of either direction


class IdleTimer:
    """Cancels `scope` when nothing has moved for a while, in seconds."""

    def __init__(self, scope: trio.CancelScope, patience_s: float = IDLE_S) -> None:
        self._scope = scope
        self.patience_s = patience_s
        self.touch()

    def touch(self) -> None:
        """Something moved."""
        self._scope.deadline = trio.current_time() + self.patience_s

    def end(self) -> None:
        """Nobody waits any more."""
        self._scope.cancel()


async def relay(one: trio.SocketStream, other: trio.SocketStream, *, idle_s: float = IDLE_S) -> None:
    """Return when both directions have ended, one of them broke, or nothing moved for `idle_s` seconds."""
    async with trio.open_nursery() as nursery:
        idle = IdleTimer(nursery.cancel_scope, idle_s)
        nursery.start_soon(_pump, one, other, idle, nursery.cancel_scope)
        nursery.start_soon(_pump, other, one, idle, nursery.cancel_scope)


async def _pump(
    source: trio.SocketStream, sink: trio.SocketStream, idle: IdleTimer, both: trio.CancelScope
) -> None:
    try:
        while data := await source.receive_some(CHUNK):
            await sink.send_all(data)
            idle.touch()
        await sink.send_eof()
        idle.patience_s = min(idle.patience_s, HALF_CLOSED_S)
        idle.touch()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        both.cancel()


async def send_body(
    client: trio.SocketStream, origin: trio.SocketStream, reader: RequestReader, idle: IdleTimer
) -> None:
    """Send the rest of a request's body on, then end the exchange when the browser leaves.

    Raises `Malformed`, or trio's errors when a side is gone.
    """
    while not reader.done:
        data = await client.receive_some(CHUNK)
        if not data:
            raise Malformed  # half a request: its answer must not look like that of a whole one
        reader.feed(data)
        if body := reader.take_body():
            await origin.send_all(body)
        idle.touch()
    if not await client.receive_some(1):
        idle.end()
