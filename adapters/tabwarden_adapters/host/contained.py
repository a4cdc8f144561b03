"""Quart-Trio on Hypercorn for one request at a time, where neither can harm anybody.

Hypercorn 0.18 can be ended from outside in several ways, and quart-trio cancels its own last send. So the
gate reads each request strictly and whole; Hypercorn gets, instead of the socket, a stream with one request
written anew: no byte of a peer reaches its parser but the body and the query. What the application answers is
collected first and written after the application has ended. All of it ends with the request.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from tabwarden.loopback_stream import LoopbackStream, PeerGone

from tabwarden_adapters.host.errors import ErrorCode
from tabwarden_adapters.host.leaving import leaving
from tabwarden_adapters.host.limits import HostLimits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
Withdrawn = Callable[[], ErrorCode | None]


def quiet_config() -> Config:
    """Hypercorn without logs (they hold exceptions' text) and without time limits of its own."""
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.include_date_header = False
    config.keep_alive_timeout = 3600.0
    config.read_timeout = None
    return config


class OneRequest:
    """Serves one canonical request. Afterwards `begun` says whether any byte of a reply was written,
    `answered` whether all of it was, and `sound` whether what went wrong, if anything did, was the peer's
    doing."""

    def __init__(
        self, app: App, config: Config, stream: LoopbackStream, limits: HostLimits, withdrawn: Withdrawn
    ) -> None:
        """A reply that is ready once `withdrawn` says something is not written."""
        self._app = app
        self._withdrawn = withdrawn
        self._config = config
        self._stream = stream
        self._limits = limits
        self._ended = trio.Event()
        self._writing = False
        self._reply = bytearray()
        self._cut = False
        self.begun = False
        self.answered = False
        self.sound = True

    async def serve(self, request: bytes) -> None:
        """Only a cancellation from outside gets through."""
        async with trio.open_nursery() as nursery:

            async def hypercorn() -> None:
                app = ASGIWrapper(cast(ASGIFramework, self._run))
                replayed = cast(Any, _Replayed(self, request))
                try:
                    await TCPServer(app, self._config, WorkerContext(None), ConnectionState({}), replayed)
                except BaseException as error:
                    onward = leaving(error)
                    if onward is not error:
                        self.sound = self._cut
                    if onward is not None:
                        raise onward from None
                self._ended.set()

            nursery.start_soon(hypercorn)
            await self._ended.wait()
            nursery.cancel_scope.cancel()
        self.sound &= self.answered or self._cut or self._withdrawn() is not None

    async def _run(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # a canonical request is nothing else
        collected: list[Message] = []

        async def collect(message: Message) -> None:
            await trio.lowlevel.checkpoint()
            collected.append(message)

        try:
            await self._app(scope, receive, collect)
            reply = _whole(collected)
            if reply is not None:
                self._writing = True
                for message in reply:
                    await send(message)
                self._writing = False
                await self._deliver()
        finally:
            self._writing = False
            self._ended.set()

    async def write(self, data: bytes) -> None:
        """Hypercorn's bytes: only those of the application's reply. They are kept until they are all there,
        since Hypercorn shields its writing against cancellation without a limit of its own."""
        await trio.lowlevel.checkpoint()
        if not self._writing:
            raise trio.ClosedResourceError
        self._reply += data

    def closed(self) -> None:
        """Hypercorn closes: after a reply as a matter of course, before one because it gave up."""
        if not self._writing:
            self._ended.set()

    async def _deliver(self) -> None:
        # Nothing waits between this look and the bytes' way into the kernel: an answer that was given just
        # before a revocation does not arrive after it.
        if self._withdrawn() is not None:
            return
        self.begun = True
        with trio.move_on_after(self._limits.send_s), suppress(PeerGone):
            await self._stream.send(bytes(self._reply))
            self.answered = True
            return
        self._cut = True


def _whole(collected: list[Message]) -> list[Message] | None:
    """A start and one body, or None: an application that was cut off has not answered."""
    kinds = [message["type"] for message in collected]
    if kinds[:1] != ["http.response.start"] or len(kinds) < 2 or set(kinds[1:]) != {"http.response.body"}:
        return None
    body = b"".join(message.get("body", b"") for message in collected[1:])
    return [collected[0], {"type": "http.response.body", "body": body, "more_body": False}]


class _Replayed:
    """What Hypercorn takes for a `trio.SocketStream`."""

    def __init__(self, one: OneRequest, request: bytes) -> None:
        self._one = one
        self._request = request
        self.socket = one._stream.socket

    async def receive_some(self, size: int) -> bytes:
        await trio.lowlevel.checkpoint()
        data, self._request = self._request[:size], self._request[size:]
        if not data:
            # The peer's end is watched elsewhere; whoever watches cancels all of this.
            await trio.sleep_forever()
        return data

    async def send_all(self, data: bytes) -> None:
        await self._one.write(data)

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self._one.closed()
        await trio.lowlevel.checkpoint()
