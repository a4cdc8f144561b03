"""A lean HTTP/1.1 client connection (httptools on a stream), so that no measurement is of its client."""

import httptools
import trio
from trio.abc import Stream


class HttpConnection:
    """One keep-alive connection; one request in flight."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._body: list[bytes] = []
        self._complete = False
        self._parser = httptools.HttpResponseParser(self)

    def on_body(self, data: bytes) -> None:
        """A piece of the reply's body, from the parser."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The end of the reply, from the parser."""
        self._complete = True

    async def post(self, path: str, headers: str, body: bytes) -> tuple[int, bytes]:
        """POST `body`; `headers` are whole lines, each with its CRLF. Gives status and body."""
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}content-length: {len(body)}\r\n\r\n"
        return await self.exchange(head.encode("ascii") + body)

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a whole request and read one reply."""
        self._body.clear()
        self._complete = False
        await self._stream.send_all(request)
        while not self._complete:
            data = await self._stream.receive_some(65536)
            if not data:
                raise trio.BrokenResourceError("closed before the reply")
            self._parser.feed_data(data)
        return self._parser.get_status_code(), b"".join(self._body)

    async def aclose(self) -> None:
        """Close the stream without ceremony."""
        await trio.aclose_forcefully(self._stream)


async def open_tcp(address: str) -> trio.SocketStream:
    """Connect to `127.0.0.1:<port>`, with no name look-up and no second family to race."""
    host, _, port = address.rpartition(":")
    sock = trio.socket.socket()
    try:
        await sock.connect((host, int(port)))
    except BaseException:
        sock.close()
        raise
    return trio.SocketStream(sock)
