"""A gateway that does everything wrong: each time a typed end, a closed connection, and none of its text."""

import gzip
import json

import pytest
import trio
from tabwarden.errors import Code
from tabwarden_adapters.ai import GatewayLimits

from tests.ai.server import CHUNKED, HEAD, Peer, Server, answer, event
from tests.ai.support import WORDS, Operation, fails, gateway, open_looker

SMALL = GatewayLimits(bytes=100_000, events=500, lines=2_000, line_bytes=2_000, pieces=1_000)


def status(line: bytes, headers: bytes = b"") -> bytes:
    body = json.dumps({"error": {"message": WORDS}}).encode()
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (line, headers, len(body), body)


def whole(body: bytes, head: bytes = HEAD) -> bytes:
    return head + b"content-length: %d\r\n\r\n%b" % (len(body), body)


BOMB = gzip.compress(b"data: " + b"a" * 30_000_000)
TOOL = event(None, finish="tool_calls")

WRONG: dict[str, tuple[bytes, str]] = {
    "unauthorized": (status(b"401 " + WORDS.encode()), "refuses-key"),
    "forbidden": (status(b"403 No"), "refuses-key"),
    "too many": (status(b"429 Slow", b"retry-after: 9\r\n"), "busy"),
    "unavailable": (status(b"503 No"), "busy"),
    "server error": (status(b"500 No"), "status"),
    "not found": (status(b"404 No"), "status"),
    "no content": (b"HTTP/1.1 204 No\r\n\r\n", "status"),
    "partial": (whole(answer("a"), HEAD.replace(b"200", b"206")), "status"),
    "switching": (b"HTTP/1.1 101 No\r\nupgrade: x\r\n\r\n", "broken"),
    "json": (whole(b"{}", HEAD.replace(b"text/event-stream", b"application/json")), "answer"),
    "html": (whole(b"<p>", HEAD.replace(b"event-stream", b"html")), "answer"),
    "no type": (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "answer"),
    "gzip bomb": (whole(BOMB, HEAD + b"content-encoding: gzip\r\n"), "answer"),
    "not http": (WORDS.encode() + b"\r\n\r\n", "broken"),
    "http/0.9": (answer("a"), "broken"),
    "endless header": (HEAD + b"x: " + b"a" * 300_000, "broken"),
    "bad chunk": (CHUNKED + b"zz\r\n" + WORDS.encode(), "broken"),
    "huge chunk": (CHUNKED + b"f" * 30 + b"\r\n", "broken"),
    "huge line": (whole(b"data: " + b"a" * 3_000), "endless"),
    "huge event": (whole(b"data: a\n" * 1_500), "endless"),
    "empty lines": (whole(b"\n" * 3_000), "endless"),
    "comments": (whole(b": keep-alive\n\n" * 9_000), "endless"),
    "empty events": (whole(event("") * 600), "endless"),
    "bad utf-8": (whole(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n'), "answer"),
    "overlong utf-8": (whole(b'data: "\xc0\xaf"\n\n'), "answer"),
    "bad json": (whole(b"data: {" + WORDS.encode() + b"\n\n"), "answer"),
    "deep json": (whole(b"data: " + b"[" * 1_900 + b"\n\n"), "answer"),
    "deep json aside": (whole(b'data: {"x":' + b"[" * 1_900 + b"\n\n"), "answer"),
    "half a character": (whole(event("a").replace(b'"a"', b'"\\ud800"')), "answer"),
    "an array": (whole(b"data: []\n\n"), "answer"),
    "a wrong type": (whole(event("a").replace(b'"a"', b"7")), "answer"),
    "an error": (whole(event("a") + event(None, error={"message": WORDS})), "answer"),
    "a tool": (whole(TOOL), "answer"),
    "filtered": (whole(event("a", finish="content_filter")), "filtered"),
    "cut short": (whole(event("a")), "truncated"),
    "empty": (whole(b""), "truncated"),
    "half an event": (whole(event("a", finish="stop")[:-2]), "truncated"),
    "too long": (whole(answer("a" * 100, "b")), "too-long"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_wrong(nursery, caplog, wrong):
    caplog.set_level("DEBUG")
    data, rule = WRONG[wrong]
    server = await Server().listen(nursery)
    server.sends(data)
    error = await fails(gateway(server, limits=SMALL, max_characters=100))
    code = {"filtered": Code.CONTENT_DENIED, "too-long": Code.RESULT_TOO_LARGE}.get(rule, Code.FAILURE)
    assert (error.code, error.rule) == (code, f"ai.gateway-{rule}".replace("gateway-too", "answer-too"))
    await server.all_gone()
    assert "CANARY" not in caplog.text
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(nursery, code):
    elsewhere = await Server().listen(nursery)
    server = await Server().listen(nursery)
    server.sends(status(b"%d Moved" % code, b"location: %b\r\n" % elsewhere.url.encode()))
    error = await fails(gateway(server))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-redirect")
    await server.all_gone()
    assert elsewhere.peers == []


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\ncontent-ty", HEAD])
async def test_it_hangs_up_before_the_answer(nursery, data):
    server = await Server().listen(nursery)
    server.closes = True
    server.sends(data)
    error = await fails(gateway(server))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-broken")


@pytest.mark.parametrize("data", [CHUNKED + b"5\r\ndata", HEAD + b"content-length: 9\r\n\r\ndata"])
async def test_it_hangs_up_within_the_answer(nursery, data):
    server = await Server().listen(nursery)
    server.closes = True
    server.sends(data)
    error = await fails(gateway(server))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-broken")


async def test_an_answer_that_ends_with_the_connection_and_not_with_its_own_end(nursery):
    server = await Server().listen(nursery)
    server.closes = True
    server.sends(HEAD + b"\r\n" + event("a"))
    error = await fails(gateway(server))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-truncated")


async def test_nobody_is_there(nursery):
    server = Server()
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
    server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    error = await fails(gateway(server))
    listener.close()
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-unreachable")


@pytest.mark.parametrize("begun", [b"", HEAD, CHUNKED, CHUNKED + b"3\r\ndat\r\n"])
async def test_a_stall_ends(nursery, begun):
    server = await Server().listen(nursery)

    async def stall(peer: Peer) -> None:
        await peer.send(begun)
        await trio.sleep_forever()

    server.play = stall
    error = await fails(gateway(server, limits=GatewayLimits(stall_s=0.2)))
    assert (error.code, error.rule) == (Code.DEADLINE, "ai.gateway-stalled")
    await server.all_gone()


@pytest.mark.parametrize("piece", [b"\n", b": x\n", event(""), b"1"])
async def test_an_endless_stream_ends_by_its_bounds(nursery, piece):
    server = await Server().listen(nursery)

    async def endless(peer: Peer) -> None:
        await peer.send(CHUNKED)
        while True:
            await peer.chunk(piece)

    server.play = endless
    error = await fails(gateway(server, limits=SMALL))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-endless")
    await server.all_gone()


async def test_endless_interim_answers_end_with_the_call(nursery):
    server = await Server().listen(nursery)
    sent = trio.Event()

    async def endless(peer: Peer) -> None:
        while True:
            await peer.send(b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 50)
            sent.set()

    server.play = endless
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            inner.start_soon(gateway(server), "q", object(), Operation())
            await sent.wait()
            scope.cancel()
    await server.all_gone()


async def test_others_get_their_turn_while_a_gateway_floods(nursery):
    """One-byte pieces are the dearest to work on: between any two of them the loop goes round."""
    server = await Server().listen(nursery)
    turns = 0
    server.sends(CHUNKED + b"1\r\n:\r\n" * 5_000)

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as inner:
        inner.start_soon(other)
        await fails(gateway(server, limits=GatewayLimits(pieces=5_000 - 1)))
        inner.cancel_scope.cancel()
    assert turns >= 4_000


async def test_a_finding_cuts_an_endless_stream_at_once(nursery):
    server = await Server().listen(nursery)

    async def endless(peer: Peer) -> None:
        await peer.send(CHUNKED)
        await peer.chunk(event("the secret is hun"))
        await peer.chunk(event("ter2, and " + "so on " * 200))
        await trio.sleep_forever()

    server.play = endless
    error = await fails(gateway(server, inspect=open_looker("hunter2")))
    assert (error.code, error.rule) == (Code.CONTENT_DENIED, "dlp.test")
    await server.all_gone()
