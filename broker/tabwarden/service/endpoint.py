"""HTTP/1.1 on 127.0.0.1, and nothing else: our own trio listener with bounds on everything a peer controls.

One task reads a connection for its whole life, so that a peer that leaves is noticed while its call
runs; the call itself runs in a task of its own and writes its reply.
"""

import os
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from tabwarden.errors import HostReason, PeerRefused, Refusal
from tabwarden.service.call import Call
from tabwarden.service.dispatch import run_call
from tabwarden.service.http_gate import (
    REFUSED,
    TOO_LARGE,
    BodyTooLarge,
    HttpReply,
    RequestHead,
    wants_close,
)
from tabwarden.service.peer_socket import PeerLookup, PeerSocket
from tabwarden.service.pipeline import Pipeline
from tabwarden.service.request_reader import RequestReader
from tabwarden.service.request_scope import Cause
from tabwarden.service.runtime import Runtime

_READ_BYTES = 65_536
_REASONS = {200: b"OK", 403: b"Forbidden", 413: b"Content Too Large", 429: b"Too Many Requests"}
_HALF_CLOSED_POLL_S = 0.2  # how soon a peer that half-closed and then left is noticed
_LINGER_S = 0.5  # how long a refused peer may take to read its answer
_LINGER_BYTES = 4 * 1024 * 1024


def serialize(reply: HttpReply) -> bytes:
    """The bytes of one reply."""
    lines = [b"HTTP/1.1 %d %s" % (reply.status, _REASONS[reply.status])]
    lines += [b"%s: %s" % header for header in reply.headers()]
    return b"\r\n".join(lines) + b"\r\n\r\n" + reply.body


class Connection:
    """One peer, from accept to close."""

    __slots__ = (
        "_endpoint",
        "_idle_since",
        "_reader",
        "_request_since",
        "_scope",
        "_sent",
        "_stream",
        "call",
    )

    def __init__(self, endpoint: "Endpoint", stream: trio.SocketStream) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self._reader = RequestReader(endpoint.runtime)
        self._scope = trio.CancelScope()
        self._idle_since = trio.current_time()
        self._request_since = 0.0
        self._sent: trio.Event | None = None
        self.call: Call | None = None

    async def run(self) -> None:
        """Serve requests one after the other until either side is done."""
        try:
            with self._scope:
                while await self._step():
                    pass
        finally:
            if self.call is not None:
                self.call.cancel(Cause.DISCONNECTED)

    async def drain(self) -> None:
        """Return when no reply is on its way."""
        if self._sent is not None:
            await self._sent.wait()

    async def _step(self) -> bool:
        """One read and what follows from it. False ends the connection."""
        data = b""
        with trio.CancelScope(deadline=self._deadline()) as waiting:
            try:
                data = await self._stream.receive_some(_READ_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
        if waiting.cancelled_caught:
            return await self._time_is_up()
        if not data:
            return await self._peer_stopped_sending()
        if self.call is not None:
            # A second request before the first is answered: no client of ours does that.
            self._endpoint.runtime.refusals.count(Refusal.HTTP)
            return False
        if not self._reader.started:
            self._request_since = trio.current_time()
        head_was_open = self._reader.head is None
        self._reader.feed(data)
        if self._reader.fault is not None:
            return await self._refuse(self._reader.fault)
        if head_was_open and self._reader.head is not None:
            self._request_since = trio.current_time()
        if self._reader.complete:
            return await self._serve(*self._reader.take())
        return True

    def _deadline(self) -> float:
        limits = self._endpoint.runtime.limits
        if self.call is not None:
            return self.call.life.hard_deadline
        if not self._reader.started:
            return self._idle_since + limits.idle_connection_s
        return self._request_since + (limits.headers_s if self._reader.head is None else limits.body_s)

    async def _time_is_up(self) -> bool:
        if trio.current_time() < self._deadline():
            return True  # the call got more time, or ended and left the connection idle
        if self.call is not None:
            return await self._abandon()
        if self._reader.started:
            return await self._refuse(PeerRefused(Refusal.TOO_SLOW))
        return False

    async def _abandon(self) -> bool:
        call, self.call = self.call, None
        if call is not None:
            call.abandon()
            if call.reply is not None:
                await self.send(call.reply)
        return False

    async def _peer_stopped_sending(self) -> bool:
        """End of the peer's stream. It may still be there and read its reply, or it may be gone."""
        while self.call is not None and self._sent is not None:
            if self._endpoint.peer_is_gone(self._stream):
                self.call.cancel(Cause.DISCONNECTED)
                return False
            with trio.CancelScope(
                deadline=min(self.call.life.hard_deadline, trio.current_time() + _HALF_CLOSED_POLL_S)
            ):
                await self._sent.wait()
                return False
            if self.call is not None and trio.current_time() >= self.call.life.hard_deadline:
                return await self._abandon()
        if self._sent is not None:
            await self._sent.wait()
        return False

    async def _serve(self, head: RequestHead, body: bytes) -> bool:
        close = wants_close(head.headers)
        try:
            reply_or_call = await self._endpoint.handle(head, body)
        except PeerRefused as refused:
            return await self._refuse(refused)
        if isinstance(reply_or_call, HttpReply):
            self._idle_since = trio.current_time()
            return await self.send(reply_or_call) and not close
        self.call = reply_or_call
        self._sent = trio.Event()
        self._endpoint.start(partial(self._run_call, reply_or_call, close))
        return True

    async def _run_call(self, call: Call, close: bool) -> None:
        """The task of one call."""
        try:
            await run_call(self._endpoint.runtime, call)
            if self.call is not call:
                return  # abandoned: somebody else has answered
            self.call = None
            self._idle_since = trio.current_time()
            reply = call.reply
            if reply is None or not await self.send(reply) or close:
                self._scope.cancel()
        finally:
            if self._sent is not None:
                self._sent.set()

    async def send(self, reply: HttpReply) -> bool:
        """Write one reply, within the body's time limit. True when the connection may go on."""
        with trio.move_on_after(self._endpoint.runtime.limits.body_s) as writing:
            try:
                await self._stream.send_all(serialize(reply))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
        return not writing.cancelled_caught and not reply.close

    async def _refuse(self, refused: PeerRefused) -> bool:
        self._endpoint.runtime.refusals.count(refused.reason)
        await self.send(TOO_LARGE if isinstance(refused, BodyTooLarge) else REFUSED)
        # Closing with unread bytes would reset the connection and lose the answer.
        left = _LINGER_BYTES
        with trio.move_on_after(_LINGER_S):
            try:
                await self._stream.send_eof()
                while left > 0 and (data := await self._stream.receive_some(_READ_BYTES)):
                    left -= len(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        return False


class Endpoint:
    """The listener. `serve()` runs until cancelled; every connection and call is a task of `nursery`."""

    def __init__(
        self, runtime: Runtime, pipeline: Pipeline, nursery: trio.Nursery, listener: trio.SocketListener
    ) -> None:
        self.runtime = runtime
        self._pipeline = pipeline
        self._nursery = nursery
        self._listener = listener
        self._peers = PeerLookup()
        self._connections: set[Connection] = set()
        self._open = 0

    async def serve(self) -> None:
        """Accept until cancelled."""
        try:
            await trio.serve_listeners(self._connected, [self._listener], handler_nursery=self._nursery)
        finally:
            self._peers.close()

    @property
    def connections(self) -> int:
        """How many are open."""
        return self._open

    async def drain(self) -> None:
        """Return when every reply under way was written."""
        for connection in list(self._connections):
            await connection.drain()

    async def handle(self, head: RequestHead, body: bytes) -> HttpReply | Call:
        """A reply to M1, or the opened call of M3. Raises `PeerRefused`."""
        return await self._pipeline.handle(head, body)

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a call in a task that outlives its connection."""
        self._nursery.start_soon(work)

    async def _connected(self, stream: trio.SocketStream) -> None:
        runtime = self.runtime
        if self._open >= runtime.limits.connections:
            runtime.refusals.count(Refusal.TOO_MANY_CONNECTIONS)
            await trio.aclose_forcefully(stream)
            return
        self._open += 1
        connection: Connection | None = None
        try:
            if self._foreign(stream):
                runtime.refusals.count(Refusal.FOREIGN_USER)
                return
            connection = Connection(self, stream)
            self._connections.add(connection)
            await connection.run()
        except Exception:
            # A fault in one connection is never the host's, nor another connection's.
            runtime.report(HostReason.CONNECTION_FAILED)
        finally:
            self._open -= 1
            if connection is not None:
                self._connections.discard(connection)
            await trio.aclose_forcefully(stream)

    def _foreign(self, stream: trio.SocketStream) -> bool:
        if not self._peers.available:
            return False
        peer = self._look_up(stream)
        return peer is None or peer.uid != os.geteuid()

    def peer_is_gone(self, stream: trio.SocketStream) -> bool:
        """Whether a peer that sent its end of stream has closed rather than half-closed.

        Where the system does not tell, it counts as gone: an action must not go on for nobody.
        """
        peer = self._look_up(stream)
        return peer is None or not peer.open

    def _look_up(self, stream: trio.SocketStream) -> PeerSocket | None:
        try:
            return self._peers.find(stream.socket.getpeername(), stream.socket.getsockname())
        except OSError:
            return None
