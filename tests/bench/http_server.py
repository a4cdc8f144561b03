"""The fastest HTTP/1.1 server that Python readily gives a trio program: httptools on a trio stream."""

from collections.abc import Callable, Mapping

import httptools
import trio
from trio.abc import Stream

Handler = Callable[[bytes, Mapping[bytes, bytes], bytes], tuple[int, bytes]]
"""(path, headers in lower case, body) -> (status, body)."""


class _Requests:
    """Collects whole requests out of what the parser says."""

    def __init__(self) -> None:
        self._path = b""
        self._headers: dict[bytes, bytes] = {}
        self._body = b""
        self.ready: list[tuple[bytes, dict[bytes, bytes], bytes]] = []

    def on_message_begin(self) -> None:
        self._path, self._headers, self._body = b"", {}, b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self.ready.append((self._path, self._headers, self._body))


async def serve_connection(stream: Stream, handler: Handler) -> None:
    """Answer requests until the peer closes or misbehaves."""
    requests = _Requests()
    parser = httptools.HttpRequestParser(requests)
    try:
        while data := await stream.receive_some(65536):
            parser.feed_data(data)
            for request in requests.ready:
                status, body = handler(*request)
                head = b"HTTP/1.1 %d -\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
                await stream.send_all(head + body)
            requests.ready.clear()
    except (trio.BrokenResourceError, httptools.HttpParserError):
        pass
    finally:
        await trio.aclose_forcefully(stream)


async def listen() -> tuple[trio.SocketListener, str]:
    """A listener on a free loopback port, and its address."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=256)
    host, port = listener.socket.getsockname()
    return listener, f"{host}:{port}"
