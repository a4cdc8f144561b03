"""One HTTP/1.1 exchange with the host on 127.0.0.1: no redirect, no proxy, no environment, all of it bounded.

A general HTTP library follows settings of the environment and of its own; here there is nothing to turn off.
"""

import httptools
import trio
from tabwarden.loopback_stream import LoopbackStream, PeerGone
from tabwarden.service.peer_socket import listener_is_ours

from tabwarden_adapters.host.host_file import LOOPBACK, HostFile
from tabwarden_adapters.host.limits import MAX_REPLY
from tabwarden_adapters.host.problems import HostProblem, HostUnavailable

_READ_BYTES = 65_536
_MAX_HEAD = 16 * 1024


async def exchange(file: HostFile, method: bytes, target: bytes, body: bytes, *, timeout_s: float) -> bytes:
    """The body of a reply with status 200. Raises `HostUnavailable`; nothing that it raises holds the token.

    Cancelling it closes the connection, which tells the host that nobody waits any more.
    """
    with trio.move_on_after(timeout_s):
        stream = await _connect(file.control_port)
        try:
            # Before the token leaves: a crashed host's port may have been taken by another user's process.
            if not listener_is_ours(LOOPBACK, file.control_port):
                raise HostUnavailable(HostProblem.FOREIGN)
            return await _converse(stream, _request(file, method, target, body))
        except PeerGone:
            raise HostUnavailable(HostProblem.UNREACHABLE) from None
        finally:
            stream.close()
    raise HostUnavailable(HostProblem.TIMEOUT)


async def _connect(port: int) -> LoopbackStream:
    try:
        return await LoopbackStream.connect(LOOPBACK, port)
    except OSError:
        raise HostUnavailable(HostProblem.UNREACHABLE) from None


def _request(file: HostFile, method: bytes, target: bytes, body: bytes) -> bytes:
    lines = [
        b"%s %s HTTP/1.1" % (method, target),
        b"host: %s:%d" % (LOOPBACK.encode(), file.control_port),
        b"authorization: Bearer " + file.token.encode(),
        b"accept: application/json",
        b"connection: close",
    ]
    if method == b"POST":
        lines += [b"content-type: application/json", b"content-length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def _converse(stream: LoopbackStream, request: bytes) -> bytes:
    reader = _ReplyReader()
    async with trio.open_nursery() as nursery:
        # A host may answer and close before it has read everything, so both go on at once.
        nursery.start_soon(_send, stream, request)
        problem = await _read(stream, reader)
        nursery.cancel_scope.cancel()
    if problem is not None:
        raise HostUnavailable(problem)
    return bytes(reader.body)


async def _send(stream: LoopbackStream, request: bytes) -> None:
    try:
        await stream.send(request)
    except PeerGone:
        return  # what the host said before it went is read all the same


async def _read(stream: LoopbackStream, reader: "_ReplyReader") -> HostProblem | None:
    """Returns what is wrong instead of raising: a nursery would wrap it."""
    received = 0
    while not reader.complete:
        try:
            data = await stream.receive(_READ_BYTES)
        except PeerGone:
            data = b""
        if not data:
            return reader.problem or HostProblem.UNREACHABLE
        received += len(data)
        try:
            reader.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return reader.problem or HostProblem.ANSWER
        if reader.problem is not None:
            return reader.problem
        if received > MAX_REPLY + _MAX_HEAD:
            return HostProblem.TOO_LARGE
    return reader.problem


class _ReplyReader:
    """Callbacks of llhttp for one reply."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = bytearray()
        self.complete = False
        self.problem: HostProblem | None = None

    def _fail(self, problem: HostProblem) -> None:
        if self.problem is None:
            self.problem = problem

    def on_message_begin(self) -> None:
        if self.complete:
            self._fail(HostProblem.ANSWER)

    def on_headers_complete(self) -> None:
        status = self.parser.get_status_code()
        if status in (401, 403):
            self._fail(HostProblem.UNAUTHORIZED)
        elif 300 <= status < 400:
            self._fail(HostProblem.REDIRECT)
        elif status != 200:
            self._fail(HostProblem.STATUS)

    def on_body(self, body: bytes) -> None:
        if len(self.body) + len(body) > MAX_REPLY:
            self._fail(HostProblem.TOO_LARGE)
        if self.problem is None:
            self.body += body

    def on_message_complete(self) -> None:
        self.complete = True
