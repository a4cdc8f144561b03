"""CDP over a WebSocket to a debugging port on 127.0.0.1 (RFC 6455), for a Chromium that somebody else runs.

wsproto reads and writes the frames; no extension is offered, so nothing is compressed. It hands a message on
in pieces as they come: what is larger than allowed is dropped piece by piece, and never held.
"""

from collections import deque

import trio
from tabwarden.errors import ConfigurationError
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, ProtocolError

from tabwarden_adapters.browser.cdp.transport import CHUNK_BYTES, MAX_MESSAGE_BYTES, MessageParts

CLOSE_S = 0.3  # loopback: the word that we leave is taken at once, or by nobody


class WebSocketTransport:
    """A `Transport`. Made by `open`; takes the stream over."""

    def __init__(self, stream: trio.abc.Stream, *, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._stream = stream
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._sending = trio.StrictFIFOLock()  # the reader answers pings
        self._whole = True  # False while a frame is half written: nothing may follow it then
        self._accepted = False
        self._over = False
        self._parts = MessageParts(max_message_bytes)
        self._ready: deque[bytes] = deque()

    @classmethod
    async def open(
        cls, stream: trio.abc.Stream, host: str, target: str, *, max_message_bytes: int = MAX_MESSAGE_BYTES
    ) -> "WebSocketTransport":
        """Begin a WebSocket on `stream`, which is closed when that fails. `host` is what `Host` says.

        There is no `Origin`: Chromium takes one for a web page's. Raises `ConfigurationError`.
        """
        made = cls(stream, max_message_bytes=max_message_bytes)
        try:
            await made._write(made._protocol.send(Request(host=host, target=target)))
            while not made._accepted and not made._over:
                await made._read()
        except BaseException as error:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_S):
                await trio.aclose_forcefully(stream)
            if isinstance(error, trio.BrokenResourceError | trio.ClosedResourceError | OSError):
                raise _refused() from None
            raise
        if not made._accepted:
            await trio.aclose_forcefully(stream)
            raise _refused()
        return made

    async def receive(self) -> bytes | None:
        """See `Transport.receive`."""
        while not self._ready:
            if self._over:
                return None
            await self._read()
        return self._ready.popleft()

    async def send(self, message: bytes) -> None:
        """See `Transport.send`."""
        await self._write(self._frame(TextMessage(data=message.decode())))

    async def aclose(self) -> None:
        """See `Transport.aclose`. Says that it leaves, if that can be said."""
        try:
            if self._accepted and not self._over and self._whole:
                self._over = True
                with trio.move_on_after(CLOSE_S):
                    await self._write(self._protocol.send(CloseConnection(code=1000)))
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError, ProtocolError):
            pass
        finally:
            await trio.aclose_forcefully(self._stream)

    async def _read(self) -> None:
        """Take in what there is. A peer that breaks the protocol is at its end."""
        data = bytes(await self._stream.receive_some(CHUNK_BYTES))
        try:
            self._protocol.receive_data(data or None)
            # As a list: an answer that is written meanwhile changes the state that they come from.
            for event in list(self._protocol.events()):
                await self._take(event)
        except ProtocolError:
            self._over = True
        if not data:
            self._over = True

    async def _take(self, event: Event) -> None:
        match event:
            case TextMessage(data=text, message_finished=finished):
                self._add(text.encode(), finished)
            case BytesMessage(data=data, message_finished=finished):
                self._add(bytes(data), finished)
            case Ping():
                await self._write(self._frame(event.response()))
            case AcceptConnection():
                self._accepted = True
            case Pong():
                pass
            case _:  # closed, or never accepted
                self._over = True

    def _add(self, part: bytes, finished: bool) -> None:
        self._parts.add(part)
        if finished:
            self._ready.append(self._parts.whole())

    def _frame(self, event: Event) -> bytes:
        """As it travels. Raises `trio.ClosedResourceError` once the peer has said that it leaves."""
        try:
            return self._protocol.send(event)
        except LocalProtocolError:
            raise trio.ClosedResourceError from None

    async def _write(self, data: bytes) -> None:
        async with self._sending:
            if not self._whole:
                raise trio.ClosedResourceError
            self._whole = False
            await self._stream.send_all(data)
            self._whole = True


def _refused() -> ConfigurationError:
    return ConfigurationError("the browser's debugging port takes no connection: is it another program's?")
