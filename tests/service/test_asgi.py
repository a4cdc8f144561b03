"""The ASGI application as any server may call it, also one that parses less strictly than Hypercorn."""

from collections.abc import MutableMapping
from typing import Any

import pytest
import trio
from tabwarden.errors import Refusal
from tabwarden.limits import Limits

from tests.attacks.serving import HYPERCORN, Broker, no_tabs, serve
from tests.attacks.toolkit import Request, peer_of

Message = MutableMapping[str, Any]


class Server:
    """One request by a server of our own making."""

    def __init__(self, *messages: Message, then: Message | None = None) -> None:
        self._messages = list(messages)
        self._then = then
        self.sent: list[Message] = []
        self.asked = trio.Event()

    async def receive(self) -> Message:
        await trio.lowlevel.checkpoint()
        if self._messages:
            return self._messages.pop(0)
        self.asked.set()
        if self._then is None:
            await trio.sleep_forever()
        assert self._then is not None
        return self._then

    async def send(self, message: Message) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(message)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


def _scope(request: Request, host: str, **changed: Any) -> Message:
    headers = [
        (b"host", host.encode()),
        (b"content-type", b"application/vnd.tabwarden.v1"),
        (b"content-length", b"%d" % len(request.body)),
        *request.proof,
    ]
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": request.route.decode(),
        "raw_path": request.route,
        "query_string": b"",
        "headers": headers,
    } | changed


def _body(data: bytes, more: bool = False) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


async def _ask(broker: Broker, scope: Message, *messages: Message) -> Server:
    server = Server(*messages)
    with trio.fail_after(10):
        await broker.control.asgi_app(scope, server.receive, server.send)
    return server


async def _assert_refused(broker: Broker, scope: Message, reason: Refusal, *messages: Message) -> None:
    before, counted = broker.kept(), broker.refused(reason)
    server = await _ask(broker, scope, *messages)
    assert (server.status, server.body) == (403, b"refused\n")
    assert broker.refused(reason) == counted + 1
    assert broker.kept() == before


async def test_a_request_in_one_piece_or_many():
    async with serve(HYPERCORN) as broker:
        peer = peer_of(broker)
        for cut in (0, 1, 50):
            request = peer.m1()
            head, tail = request.body[:cut], request.body[cut:]
            server = await _ask(broker, _scope(request, peer.host), _body(head, True), _body(tail))
            assert server.status == 200
            assert (b"cache-control", b"no-store") in server.sent[0]["headers"]
        without = _scope(request := peer.m1(), peer.host)
        del without["raw_path"], without["query_string"]
        assert (await _ask(broker, without, _body(request.body))).status == 200


async def test_a_body_that_is_not_as_long_as_announced():
    async with serve(HYPERCORN) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        scope = _scope(request, peer.host)
        await _assert_refused(broker, scope, Refusal.HTTP, _body(request.body[:-1]))
        await _assert_refused(broker, scope, Refusal.HTTP, _body(b""))
        server = await _ask(broker, scope, _body(request.body + b"\0"))
        assert (server.status, server.body) == (413, b"too large\n")
        server = await _ask(broker, scope, _body(request.body, True), _body(b"\0", True))
        assert server.status == 413
        assert broker.refused(Refusal.TOO_LARGE) == 2


async def test_a_peer_that_leaves_before_its_body_is_there():
    async with serve(HYPERCORN) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        before = broker.kept()
        server = await _ask(
            broker, _scope(request, peer.host), _body(request.body[:5], True), {"type": "http.disconnect"}
        )
        assert server.sent == []
        assert broker.kept() == before


async def test_a_body_that_does_not_come():
    async with serve(HYPERCORN, limits=Limits(body_s=0.05, batch_size=8)) as broker:
        peer = peer_of(broker)
        await _assert_refused(broker, _scope(peer.m1(), peer.host), Refusal.TOO_SLOW, _body(b"", True))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"http_version": "1.0"}, Refusal.HTTP),
        ({"http_version": "2"}, Refusal.HTTP),
        ({"http_version": "3"}, Refusal.HTTP),
        ({"method": "GET"}, Refusal.HTTP),
        ({"method": "P\u00d6ST\u0394"}, Refusal.HTTP),
        ({"query_string": b"a=b"}, Refusal.ROUTE),
        ({"raw_path": b"/v1/%63hallenge"}, Refusal.ROUTE),
        ({"raw_path": b"/app/v1/challenge", "root_path": "/app"}, Refusal.ROUTE),
        ({"raw_path": None, "path": "/v1/\udcff"}, Refusal.ROUTE),
        ({"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}, Refusal.FOREIGN_USER),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_scope_that_is_none_of_ours(changed, reason):
    async with serve(HYPERCORN) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        await _assert_refused(broker, _scope(request, peer.host, **changed), reason, _body(request.body))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([(b"transfer-encoding", b"chunked")], Refusal.HTTP),
        ([(b"Transfer-Encoding", b"chunked")], Refusal.HTTP),
        ([(b"content-length", b"0")], Refusal.HEADERS),
        ([(b"host", b"evil.test")], Refusal.HOST),
        ([(b"Origin", b"null")], Refusal.BROWSER),
        ([(b"upgrade", b"h2c")], Refusal.HTTP),
        ([(b"connection", b"Upgrade")], Refusal.HTTP),
        ([(b"expect", b"100-continue")], Refusal.HTTP),
        ([(b"x", b"y")] * 25, Refusal.HEADERS),
        ([(b"x", b"y" * 8000)], Refusal.HEADERS),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_headers_that_a_lenient_parser_lets_through(more, reason):
    async with serve(HYPERCORN) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        scope = _scope(request, peer.host)
        scope["headers"] += more
        await _assert_refused(broker, scope, reason, _body(request.body))


async def test_websockets_are_closed_and_the_lifespan_is_followed():
    async with serve(HYPERCORN) as broker:
        server = await _ask(broker, {"type": "websocket"}, {"type": "websocket.connect"})
        assert server.sent == [{"type": "websocket.close", "code": 1008}]
        assert broker.refused(Refusal.HTTP) == 1
        server = await _ask(
            broker, {"type": "lifespan"}, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}
        )
        assert [message["type"] for message in server.sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]
        assert (await _ask(broker, {"type": "webtransport"})).sent == []


async def test_a_server_that_cancels_its_handler_hangs_up():
    started, cancelled = trio.Event(), trio.Event()

    async def hang(arguments: object, context: object) -> None:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with serve(HYPERCORN, actions={"sessions": hang}) as broker:
        peer = peer_of(broker)
        request = peer.m3(await peer.challenge(broker)).request
        server = Server(_body(request.body))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                broker.control.asgi_app, _scope(request, peer.host), server.receive, server.send
            )
            await started.wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await cancelled.wait()
        assert server.sent == []
        await broker.quiet()
        assert [event.code for event in broker.audit.terminal()] == ["disconnected"]


async def test_a_server_that_reports_a_hang_up_while_the_adapter_goes_on():
    started, release = trio.Event(), trio.Event()

    async def stubborn(arguments: object, context: object) -> list[object]:
        started.set()
        with trio.CancelScope(shield=True):
            await release.wait()
        return await no_tabs(arguments, context)

    async with serve(
        HYPERCORN, actions={"sessions": stubborn}, limits=Limits(cancel_grace_s=0.05, batch_size=8)
    ) as broker:
        peer = peer_of(broker)
        request = peer.m3(await peer.challenge(broker)).request
        server = Server(_body(request.body), then={"type": "http.disconnect"})
        with trio.fail_after(5):
            await broker.control.asgi_app(_scope(request, peer.host), server.receive, server.send)
        assert server.sent == []
        assert [event.code for event in broker.audit.terminal()] == ["disconnected"]
        release.set()
