"""One peer from accept to close: one request, one reply. A fault in here is nobody else's."""

from contextlib import suppress

import trio
from hypercorn.config import Config
from tabwarden.loopback_stream import LoopbackStream, PeerGone

from tabwarden_adapters.host.contained import App, OneRequest, Withdrawn
from tabwarden_adapters.host.errors import ControlError, ErrorCode, error_reply
from tabwarden_adapters.host.limits import HostLimits
from tabwarden_adapters.host.peers import Peers
from tabwarden_adapters.host.request_reader import Request, read_request

_READ_BYTES = 65_536
_LINGER_S = 0.5  # how long a refused peer may take to read its answer
_LINGER_BYTES = 4 * 1024 * 1024
_HALF_CLOSED_POLL_S = 0.2  # how soon a peer that half-closed and then left is noticed


class Connection:
    """Lives for one request."""

    def __init__(
        self, stream: LoopbackStream, peers: Peers, limits: HostLimits, withdrawn: Withdrawn
    ) -> None:
        """`withdrawn` says how everything ended, once it has."""
        self._stream = stream
        self._withdrawn = withdrawn
        self._peers = peers
        self._limits = limits
        self.sound = True
        self.served = False
        self.refused: ErrorCode | None = None

    async def run(self, app: App, config: Config, host: bytes, token: bytes) -> None:
        """`app` answers what passes the gate. Afterwards `refused` says why the gate refused, `served`
        whether a whole reply was written, and `sound` whether all of our own went well."""
        try:
            try:
                request = await read_request(self._stream, host, token, self._limits)
            except ControlError as refused:
                self.refused = refused.code
                await self._linger(error_bytes(refused.code))
                return
            if request is not None:
                await self._serve(request, app, config, host)
        except PeerGone:
            return

    async def _serve(self, request: Request, app: App, config: Config, host: bytes) -> None:
        one = OneRequest(app, config, self._stream, self._limits, self._withdrawn)
        here = False
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await self._peer_left()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            await one.serve(request.canonical(host))
            here = True
            nursery.cancel_scope.cancel()
        if not here:
            return  # nobody is there to be answered
        self.sound, self.served = one.sound, one.answered
        if not one.begun:
            await self._linger(error_bytes(self._withdrawn() or ErrorCode.FAILURE))
            return
        with suppress(PeerGone):
            self._stream.send_eof()

    async def _peer_left(self) -> None:
        """Return when the peer is gone, or sends more than its one request."""
        try:
            data = await self._stream.receive(1)
        except PeerGone:
            return
        if data:
            return
        # End of its stream: it may have closed, or only half-closed and still want its reply. No event tells.
        while not self._peers.gone(self._stream.socket):  # noqa: ASYNC110
            await trio.sleep(_HALF_CLOSED_POLL_S)

    async def _linger(self, reply: bytes) -> None:
        """Answer, and read what is still coming: closing with unread bytes would lose the answer."""
        left = _LINGER_BYTES
        with trio.move_on_after(_LINGER_S):
            await self._stream.send(reply)
            self._stream.send_eof()
            while left > 0 and (data := await self._stream.receive(_READ_BYTES)):
                left -= len(data)


def error_bytes(code: ErrorCode) -> bytes:
    """A whole reply of our own, for what never came as far as the application."""
    status, body = error_reply(code)
    return (
        b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"cache-control: no-store\r\nconnection: close\r\n\r\n%s" % (status, len(body), body)
    )
