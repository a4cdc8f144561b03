"""Finding a browser at a port of 127.0.0.1: what is believed of what answers there."""

import json
from functools import partial

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.browser.attached import attached_chromium

PORT = b"PORT_"  # as long as what takes its place: ephemeral ports have five digits
GOOD = {"Browser": "Chrome/1", "webSocketDebuggerUrl": "ws://127.0.0.1:PORT_/devtools/browser/1-2-3"}


def reply(body, status=b"200 OK", *headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [b"HTTP/1.1 " + status, b"content-length: %d" % len(data), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + data


ELSEWHERE = "ws://127.0.0.1:1/devtools/browser/1"
REPLIES = {
    "no JSON": reply(b"hello"),
    "no object": reply([]),
    "no address": reply({"Browser": "x"}),
    "another port": reply({**GOOD, "webSocketDebuggerUrl": ELSEWHERE}),
    "another host": reply({**GOOD, "webSocketDebuggerUrl": "ws://evil.test/devtools/browser/1"}),
    "user information": reply(
        {**GOOD, "webSocketDebuggerUrl": "ws://127.0.0.1:PORT_@evil.test/devtools/browser/1"}
    ),
    "a page": reply({**GOOD, "webSocketDebuggerUrl": "ws://127.0.0.1:PORT_/devtools/page/1"}),
    "more than a path": reply({**GOOD, "webSocketDebuggerUrl": "ws://127.0.0.1:PORT_/devtools/browser/1?x"}),
    "only a path": reply({**GOOD, "webSocketDebuggerUrl": "/devtools/browser/1"}),
    "twice the same key": reply(b'{"Browser":"a","Browser":"b","webSocketDebuggerUrl":"x"}'),
    "a redirect": reply(GOOD, b"302 Found", b"location: http://127.0.0.1:PORT_/other"),
    "an error": reply(GOOD, b"500 No"),
    "too much": reply({**GOOD, "more": "x" * 20_000}),
    "half of it": reply(GOOD)[:-5],
    "nothing": b"",
    "no HTTP": b"220 mail.test ESMTP\r\n",
}


@pytest.fixture
async def answering(nursery):
    """Serves one reply to whoever asks; tells the port, and what was asked."""

    async def serve(data, asked, stream):
        async with stream:
            asked.append(await stream.receive_some())
            port = stream.socket.getsockname()[1]
            await stream.send_all(data.replace(PORT, b"%05d" % port))

    async def start(data):
        asked = []
        listeners = await nursery.start(trio.serve_tcp, partial(serve, data, asked), 0)
        return listeners[0].socket.getsockname()[1], asked

    return start


@pytest.mark.parametrize("name", REPLIES)
async def test_what_is_no_browser_is_not_believed(nursery, answering, name):
    data = REPLIES[name]
    port, asked = await answering(data)
    with pytest.raises(ConfigurationError, match="no browser's debugging port"):
        async with attached_chromium(nursery, port):
            pass
    (head,) = asked
    assert head.startswith(b"GET /json/version HTTP/1.1\r\n")
    assert b"origin" not in head.lower()


async def test_what_is_one_is_asked_for_its_websocket(nursery, answering):
    port, asked = await answering(reply(GOOD))
    with pytest.raises(ConfigurationError, match="takes no connection"):
        async with attached_chromium(nursery, port):
            pass
    assert asked[1].startswith(b"GET /devtools/browser/1-2-3 HTTP/1.1\r\n")


async def test_nothing_listens(nursery):
    with trio.socket.socket() as unused:
        await unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ConfigurationError, match="no browser listens"):
            async with attached_chromium(nursery, port):
                pass


async def test_what_does_not_answer_is_not_waited_for(nursery):
    async def silent(stream):
        await trio.sleep_forever()

    listeners = await nursery.start(trio.serve_tcp, silent, 0)
    port = listeners[0].socket.getsockname()[1]
    with pytest.raises(ConfigurationError, match="did not answer"):
        async with attached_chromium(nursery, port, attach_timeout=0.05):
            pass
