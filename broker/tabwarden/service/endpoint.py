"""HTTP/1.1 on 127.0.0.1, and nothing else: our own trio listener with bounds on everything a peer controls.

One task reads a connection for its whole life, so that a peer that leaves is noticed while its call
runs; the call itself runs in a task of its own and writes its reply.
"""

import errno
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

import trio

from tabwarden.errors import HostReason, PeerRefused, Refusal
from tabwarden.loopback_stream import LoopbackStream, PeerGone
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
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_TICK_S = 0.1  # how exactly time limits of connections are kept
_LINGER_S = 0.5  # how long a refused peer may take to read its answer
_LINGER_BYTES = 4 * 1024 * 1024


def serialize(reply: HttpReply) -> bytes:
    """The bytes of one reply."""
    lines = [b"HTTP/1.1 %d %s" % (reply.status, _REASONS[reply.status])]
    lines += [b"%s: %s" % header for header in reply.headers()]
    return b"\r\n".join(lines) + b"\r\n\r\n" + reply.body


class Connection:
    """One peer, from accept to close.

    Two tasks may act on it: its reader, here, and the task of the one call in flight. `until` bounds
    whatever the reader waits for and moves with the state of the connection; `Endpoint.watch` looks at it,
    because moving a scope's own deadline four times a call costs more than the parser does.
    """

    __slots__ = ("_endpoint", "_over", "_reader", "_sent", "_stream", "_timer", "call", "until")

    def __init__(self, endpoint: "Endpoint", stream: LoopbackStream) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self._reader = RequestReader(endpoint.runtime)
        self._over = False
        self._timer = trio.CancelScope()
        self.until = trio.current_time() + endpoint.runtime.limits.idle_connection_s
        self._sent: trio.Event | None = None
        self.call: Call | None = None

    async def run(self) -> None:
        """Serve requests one after the other until either side is done."""
        cause = Cause.DISCONNECTED
        try:
            with suppress(PeerGone):
                while not self._over:
                    with trio.CancelScope() as self._timer:
                        await self._read()
                    self._over |= not self._timer.cancelled_caught or not await self._time_is_up()
        except trio.Cancelled:
            cause = Cause.CLOSED  # not the peer's doing: the whole broker is being torn down
            raise
        finally:
            if self.call is not None:
                self.call.cancel(cause)
                self._endpoint.see_off(self.call)

    async def drain(self) -> None:
        """Return when no reply is on its way."""
        if self._sent is not None:
            await self._sent.wait()

    def expire(self) -> None:
        """Interrupt the reader: `until` has passed, or somebody has answered in its place."""
        self._timer.cancel()

    def _end(self) -> None:
        self._over = True
        self._timer.cancel()

    async def _read(self) -> None:
        """Returns when the connection is to be closed. Raises `PeerGone`."""
        limits, reader = self._endpoint.runtime.limits, self._reader
        while True:
            data = await self._stream.receive(_READ_BYTES)
            if not data:
                return await self._peer_stopped_sending()
            if self._sent is not None and not self._sent.is_set():
                # A second request before the first is answered: no client of ours does that.
                self._endpoint.runtime.refusals.count(Refusal.HTTP)
                return None
            started, headed = reader.started, reader.head is not None
            reader.feed(data)
            del data  # an idle connection would keep its last request for as long as it waits
            if reader.fault is not None:
                return await self._refuse(reader.fault)
            if reader.complete:
                if not await self._serve(*reader.take()):
                    return None
            elif not headed and reader.head is not None:
                self.until = trio.current_time() + limits.body_s
            elif not started:
                self.until = trio.current_time() + limits.headers_s

    async def _time_is_up(self) -> bool:
        """What the reader waited for did not come in time. True when it gets more time after all."""
        if self._over:
            return False
        call = self.call
        if call is None:
            if trio.current_time() < self.until:
                return True  # a call ended just now and left the connection idle
            if self._reader.started:
                await self._refuse(PeerRefused(Refusal.TOO_SLOW))
            return False
        if not call.done.is_set() and trio.current_time() < call.life.hard_deadline:
            self.until = call.life.hard_deadline  # it moved: a person is being asked
            return True
        self.call = None
        call.abandon()
        if call.reply is not None:
            await self._send_within(call.reply)
        if self._sent is not None:
            self._sent.set()
        return False

    async def _peer_stopped_sending(self) -> None:
        """End of the peer's stream. It may still be there and read its reply, or it may be gone."""
        while self._sent is not None and not self._sent.is_set():
            if self.call is not None and self._endpoint.peer_is_gone(self._stream):
                self.call.cancel(Cause.DISCONNECTED)
                return
            with trio.move_on_after(_HALF_CLOSED_POLL_S):
                await self._sent.wait()

    async def _serve(self, head: RequestHead, body: bytes) -> bool:
        runtime = self._endpoint.runtime
        close = wants_close(head.headers)
        self.until = trio.current_time() + runtime.limits.action_deadline_s
        try:
            reply_or_call = await self._endpoint.handle(head, body)
        except PeerRefused as refused:
            await self._refuse(refused)
            return False
        if isinstance(reply_or_call, HttpReply):
            # The deadline stays: a challenge that is not used by then has expired anyway.
            await self._stream.send(serialize(reply_or_call))
            # The client is busy with its own part now: the time to make what it has just used up.
            runtime.pool.replenish()
            return not (reply_or_call.close or close)
        self.call = reply_or_call
        # Whoever revokes or closes does not wait for the adapter any more, and nor does the reader then.
        reply_or_call.on_abandon = self.expire
        self._sent = trio.Event()
        self.until = reply_or_call.life.hard_deadline
        self._endpoint.start(self._run_call, reply_or_call, self._sent, close)
        return True

    async def _run_call(self, call: Call, sent: trio.Event, close: bool) -> None:
        """The task of one call."""
        try:
            await run_call(self._endpoint.runtime, call)
            if self.call is not call:
                return  # abandoned: the reader has answered, or the peer is gone
            self.call, reply, limits = None, call.reply, self._endpoint.runtime.limits
            self.until = trio.current_time() + limits.idle_connection_s
            if reply is None or not await self._send_within(reply) or close:
                self._end()
        finally:
            self._sent = None
            sent.set()

    async def _send_within(self, reply: HttpReply) -> bool:
        """Write one reply within the body's time limit. True when the connection may go on."""
        data = serialize(reply)
        try:
            taken = self._stream.send_now(data)
            if taken < len(data):
                with trio.move_on_after(self._endpoint.runtime.limits.body_s):
                    await self._stream.send(data[taken:])
                    return not reply.close
                return False
        except PeerGone:
            return False
        return not reply.close

    async def _refuse(self, refused: PeerRefused) -> None:
        self._endpoint.runtime.refusals.count(refused.reason)
        # Closing with unread bytes would reset the connection and lose the answer.
        left = _LINGER_BYTES
        with trio.move_on_after(_LINGER_S):
            await self._stream.send(serialize(TOO_LARGE if isinstance(refused, BodyTooLarge) else REFUSED))
            self._stream.send_eof()
            while left > 0 and (data := await self._stream.receive(_READ_BYTES)):
                left -= len(data)


class Endpoint:
    """The listener. `serve()` runs until cancelled; every connection and call is a task of `nursery`."""

    def __init__(
        self,
        runtime: Runtime,
        pipeline: Pipeline,
        nursery: trio.Nursery,
        listener: trio.SocketListener,
        peers: PeerLookup,
    ) -> None:
        self.runtime = runtime
        self._pipeline = pipeline
        self._nursery = nursery
        self._listener = listener
        self._peers = peers
        self._connections: set[Connection] = set()
        self._occupied = trio.Event()
        self._open = 0

    async def serve(self) -> None:
        """Accept until cancelled. When file descriptors run out it waits for some to be given back."""
        with closing(self._listener.socket):
            await self._accept()

    async def _accept(self) -> None:
        while True:
            try:
                accepted = await self._listener.accept()
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self.runtime.report(HostReason.CONNECTION_FAILED)
                await trio.sleep(_TICK_S)
                continue
            # Only the socket is kept: the general stream around it is half of an idle connection's memory.
            stream = LoopbackStream(socket.socket(fileno=accepted.socket.detach()), on_trio=True)
            del accepted
            self._nursery.start_soon(self._connected, stream)

    async def watch(self) -> None:
        """Interrupt connections whose time is up, until cancelled. Rests while there are none."""
        limits = self.runtime.limits
        tick = min(_TICK_S, limits.headers_s / 4, limits.body_s / 4, limits.idle_connection_s / 4)
        while True:
            if not self._connections:
                self._occupied = trio.Event()
                await self._occupied.wait()
            await trio.sleep(tick)
            now = trio.current_time()
            for connection in list(self._connections):
                if connection.until <= now:
                    connection.expire()

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

    def start(
        self,
        work: Callable[[Call, trio.Event, bool], Awaitable[None]],
        call: Call,
        sent: trio.Event,
        close: bool,
    ) -> None:
        """Run a call in a task that outlives its connection."""
        self._nursery.start_soon(work, call, sent, close)

    def see_off(self, call: Call) -> None:
        """End a call whose peer is gone, in a task that outlives its connection."""
        self._nursery.start_soon(call.see_off)

    async def _connected(self, stream: LoopbackStream) -> None:
        runtime = self.runtime
        if self._open >= runtime.limits.connections:
            runtime.refusals.count(Refusal.TOO_MANY_CONNECTIONS)
            stream.close()
            return
        self._open += 1
        connection: Connection | None = None
        try:
            if self._foreign(stream):
                runtime.refusals.count(Refusal.FOREIGN_USER)
                return
            connection = Connection(self, stream)
            self._connections.add(connection)
            self._occupied.set()
            await connection.run()
        except PeerGone:
            pass
        except Exception:
            # A fault in one connection is never the host's, nor another connection's.
            runtime.report(HostReason.CONNECTION_FAILED)
        finally:
            self._open -= 1
            if connection is not None:
                self._connections.discard(connection)
            stream.close()

    def _foreign(self, stream: LoopbackStream) -> bool:
        if not self._peers.available:
            return False
        peer = self._look_up(stream)
        return peer is None or peer.uid != os.geteuid()

    def peer_is_gone(self, stream: LoopbackStream) -> bool:
        """Whether a peer that sent its end of stream has closed rather than half-closed.

        Where the system does not tell, it counts as gone: an action must not go on for nobody.
        """
        peer = self._look_up(stream)
        return peer is None or not peer.open

    def _look_up(self, stream: LoopbackStream) -> PeerSocket | None:
        try:
            return self._peers.find(stream.socket.getpeername(), stream.socket.getsockname())
        except OSError:
            return None
