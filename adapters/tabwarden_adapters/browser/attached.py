"""Attaching to a Chromium that somebody else runs, by its debugging port on 127.0.0.1.

Its process, windows and tabs stay theirs: at the end the connection is closed, and with it ends all that was
asked for over it (CDP domain Target: sessions end with their connection, and so does what they enabled).
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httptools
import msgspec
import trio
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.protocol.codec import parse_json
from tabwarden.service.peer_socket import listener_is_ours

from tabwarden_adapters.browser.cdp import CdpError, Connection
from tabwarden_adapters.browser.cdp.generated import browser
from tabwarden_adapters.browser.cdp.websocket import WebSocketTransport
from tabwarden_adapters.browser.chromium import Chromium

LOOPBACK = "127.0.0.1"
ATTACH_S = 10.0  # a browser that is starting, or restoring a hundred tabs
CLOSE_S = 2.0  # the connection ends its own transport within one
MAX_REPLY = 16 * 1024  # /json/version has seven short fields
_READ_BYTES = 4096
_TARGET = re.compile(r"/devtools/browser/[0-9A-Za-z-]{1,64}")


class _Version(msgspec.Struct, frozen=True):
    """What is used of /json/version."""

    browser: str = msgspec.field(name="Browser")
    address: str = msgspec.field(name="webSocketDebuggerUrl")


@asynccontextmanager
async def attached_chromium(
    nursery: trio.Nursery, port: int, *, attach_timeout: float = ATTACH_S
) -> AsyncIterator[Chromium]:
    """The Chromium whose debugging port is `port`, while the block runs. Its `pid` and `profile` are None.

    The connection's tasks run in `nursery`. Raises `ConfigurationError` when nothing, something else, or
    another user's process answers there.
    """
    connection: Connection | None = None
    with trio.move_on_after(attach_timeout):
        target = await _browser_target(port)
        transport = await WebSocketTransport.open(await _stream(port), f"{LOOPBACK}:{port}", target)
        connection = Connection(transport)
        try:
            await nursery.start(connection.run)
        except BaseException:
            await transport.aclose()
            raise
    if connection is None:
        raise ConfigurationError(f"the debugging port {port} did not answer within {attach_timeout:g} s")
    try:
        yield Chromium(connection, await _product(connection, port, attach_timeout), None, None)
    finally:
        with trio.move_on_after(CLOSE_S, shield=True):
            await connection.aclose()


async def _product(connection: Connection, port: int, timeout: float) -> str:
    with trio.move_on_after(timeout):
        try:
            return (await connection.root.call(browser.get_version())).product
        except CdpError:
            raise ConfigurationError(f"the debugging port {port} speaks no CDP that we know") from None
    raise ConfigurationError(f"the browser at port {port} did not answer within {timeout:g} s")


async def _browser_target(port: int) -> str:
    """The path of the browser's own WebSocket. Raises `ConfigurationError`."""
    head = f"GET /json/version HTTP/1.1\r\nhost: {LOOPBACK}:{port}\r\nconnection: close\r\n\r\n"
    stream = await _stream(port)
    reader = _ReplyReader()
    try:
        await stream.send_all(head.encode())
        while not reader.complete:
            data = await stream.receive_some(_READ_BYTES)
            if not data or reader.feed(bytes(data)):
                break
    except (trio.BrokenResourceError, OSError):
        pass
    finally:
        await trio.aclose_forcefully(stream)
    try:
        found = msgspec.convert(parse_json(bytes(reader.body)), _Version) if reader.complete else None
    except (MalformedError, msgspec.ValidationError):
        found = None
    here = f"ws://{LOOPBACK}:{port}"
    path = "" if found is None else found.address.removeprefix(here)
    if found is None or not found.address.startswith(here) or not _TARGET.fullmatch(path):
        raise ConfigurationError(f"what answers at port {port} is no browser's debugging port")
    return path


async def _stream(port: int) -> trio.SocketStream:
    """A connection to this user's process that listens at `port`. Raises `ConfigurationError`."""
    try:
        stream = await trio.open_tcp_stream(LOOPBACK, port)
    except OSError:
        raise ConfigurationError(
            f"no browser listens at port {port}: is it running, with remote debugging?"
        ) from None
    try:
        ours = listener_is_ours(LOOPBACK, port)
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    if not ours:
        await trio.aclose_forcefully(stream)
        raise ConfigurationError(f"port {port} belongs to another user's process")
    return stream


class _ReplyReader:
    """One reply with status 200, bounded. Redirects are none."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._received = 0
        self.body = bytearray()
        self.complete = False

    def feed(self, data: bytes) -> bool:
        """Take more in; True when no more is to come."""
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.complete = False
            return True
        if self._received > MAX_REPLY or (self.complete and self._parser.get_status_code() != 200):
            self.complete = False
            return True
        return self.complete

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True
