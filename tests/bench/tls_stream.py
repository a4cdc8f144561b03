"""A trio stream over pyOpenSSL memory BIOs: trio's own uses the standard library, which has no ML-DSA."""

import trio
from OpenSSL import SSL
from trio.abc import Stream

_CHUNK = 65536


class TlsStream(Stream):
    """TLS over `transport`. Handshake leftovers travel with the next send, which saves a system call."""

    def __init__(self, transport: trio.SocketStream, context: SSL.Context, *, server: bool) -> None:
        self._transport = transport
        self.connection = SSL.Connection(context, None)
        if server:
            self.connection.set_accept_state()
        else:
            self.connection.set_connect_state()

    def _outgoing(self) -> bytes:
        parts = []
        try:
            while True:
                parts.append(self.connection.bio_read(_CHUNK))
        except SSL.WantReadError:
            return b"".join(parts)

    async def _flush(self) -> None:
        if data := self._outgoing():
            await self._transport.send_all(data)

    async def _feed(self) -> bool:
        await self._flush()
        data = await self._transport.receive_some(_CHUNK)
        if data:
            self.connection.bio_write(data)
        return bool(data)

    async def handshake(self) -> None:
        """Complete the handshake; raises `SSL.Error` or `trio.BrokenResourceError`."""
        while True:
            try:
                self.connection.do_handshake()
            except SSL.WantReadError:
                if not await self._feed():
                    raise trio.BrokenResourceError("closed in the handshake") from None
            else:
                return

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Seal and send."""
        self.connection.sendall(bytes(data))
        await self._flush()

    async def wait_send_all_might_not_block(self) -> None:
        """As the transport says."""
        await self._transport.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What arrives next; b"" at the end."""
        while True:
            try:
                return self.connection.recv(max_bytes or _CHUNK)
            except SSL.WantReadError:
                if not await self._feed():
                    return b""
            except SSL.ZeroReturnError:
                return b""

    async def aclose(self) -> None:
        """Close the transport, without either side's farewell."""
        # OpenSSL forgets the session of a connection that was freed without one.
        self.connection.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)
        await trio.aclose_forcefully(self._transport)
