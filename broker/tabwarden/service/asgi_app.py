"""The same pipeline as an ASGI application, for hosts that already run Hypercorn or Quart-Trio on trio.

Everything after the HTTP parser is the same code as the endpoint's. What the parser itself does (header and
connection limits, slow peers, malformed HTTP) is the hosting server's part: see `docs/embedding.md`.
"""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import trio

from tabwarden.errors import PeerRefused, Refusal
from tabwarden.service.call import Call
from tabwarden.service.dispatch import run_call
from tabwarden.service.http_gate import REFUSED, TOO_LARGE, BodyTooLarge, HttpReply, RequestHead, check_head
from tabwarden.service.peer_socket import PeerLookup
from tabwarden.service.pipeline import Pipeline
from tabwarden.service.request_scope import Cause
from tabwarden.service.runtime import Runtime

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiApp:
    """An ASGI 3 callable. Must be served on trio, at the address that the broker was told."""

    def __init__(
        self, runtime: Runtime, pipeline: Pipeline, nursery: trio.Nursery, peers: PeerLookup
    ) -> None:
        self._runtime = runtime
        self._pipeline = pipeline
        self._nursery = nursery
        self._peers = peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            self._runtime.refusals.count(Refusal.HTTP)
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check_peer(scope)
            head = self._head(scope)
            body = await self._body(head, receive)
            if body is None:
                return
            reply_or_call = await self._pipeline.handle(head, body)
        except BodyTooLarge as refused:
            self._runtime.refusals.count(refused.reason)
            await _send(send, TOO_LARGE)
            return
        except PeerRefused as refused:
            self._runtime.refusals.count(refused.reason)
            await _send(send, REFUSED)
            return
        if isinstance(reply_or_call, Call):
            reply = await self._run(reply_or_call, receive)
        else:
            reply = reply_or_call
        if reply is not None:
            await _send(send, reply)
            self._runtime.pool.replenish()

    def _check_peer(self, scope: Scope) -> None:
        client, server = scope.get("client"), scope.get("server")
        if not self._peers.available or client is None or server is None:
            return
        peer = self._peers.find((client[0], client[1]), (server[0], server[1]))
        if peer is None or peer.uid != os.geteuid():
            raise PeerRefused(Refusal.FOREIGN_USER)

    def _head(self, scope: Scope) -> RequestHead:
        target = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
        if scope.get("query_string"):
            raise PeerRefused(Refusal.ROUTE)
        limits = self._runtime.limits
        headers = [(bytes(name).lower(), bytes(value)) for name, value in scope["headers"]]
        if len(target) + sum(len(name) + len(value) for name, value in headers) > limits.header_bytes:
            raise PeerRefused(Refusal.HEADERS)
        return check_head(
            scope["method"].encode("latin-1", "replace"),
            target,
            scope["http_version"],
            headers,
            host=self._runtime.host,
            limits=limits,
        )

    async def _body(self, head: RequestHead, receive: Receive) -> bytes | None:
        """Exactly as many bytes as announced; None when the peer left before it sent them."""
        parts, length = [], 0
        with trio.move_on_after(self._runtime.limits.body_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                length += len(part)
                if length > head.body_length:
                    raise BodyTooLarge
                parts.append(part)
                if not message.get("more_body", False):
                    break
            if length != head.body_length:
                raise PeerRefused(Refusal.HTTP)
            return b"".join(parts)
        raise PeerRefused(Refusal.TOO_SLOW)

    async def _run(self, call: Call, receive: Receive) -> HttpReply | None:
        self._nursery.start_soon(partial(run_call, self._runtime, call))
        try:
            async with trio.open_nursery() as watching:
                watching.start_soon(_watch_disconnect, call, receive)
                while not call.done.is_set():
                    # The deadline moves when a person is asked, so it is read again each time it passes.
                    with trio.CancelScope(deadline=call.life.hard_deadline):
                        await call.done.wait()
                    if not call.done.is_set() and trio.current_time() >= call.life.hard_deadline:
                        call.abandon()
                watching.cancel_scope.cancel()
        finally:
            if not call.done.is_set():
                call.cancel(Cause.DISCONNECTED)
                self._nursery.start_soon(call.see_off)
        return call.reply


async def _watch_disconnect(call: Call, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            call.cancel(Cause.DISCONNECTED)
            await call.see_off()
            return


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _send(send: Send, reply: HttpReply) -> None:
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers()})
    await send({"type": "http.response.body", "body": reply.body})
