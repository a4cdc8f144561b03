"""One HTTP/1.1 exchange with a gateway: a new connection, one request, a body that comes in pieces.

On httpcore, the engine of httpx, as it is: it takes nothing from the environment, follows and decompresses
nothing, keeps no cookies, and adds no headers. No connection outlives its exchange.
"""

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Final

import httpcore
import trio
from tabwarden.errors import ActionError

from tabwarden_adapters.ai.faults import ANSWER, failed, fault_of, fault_of_status
from tabwarden_adapters.ai.key import ApiKey
from tabwarden_adapters.ai.limits import GatewayLimits
from tabwarden_adapters.ai.settings import Endpoint

_CLOSE_S: Final = 1.0  # closing sends nothing and waits for nobody


def system_trust() -> ssl.SSLContext:
    """TLS 1.2 or later, certificates and names verified against the system's trust store.

    Not `ssl.create_default_context`: that writes the session's secrets to a file when SSLKEYLOGFILE says so.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


class Exchange:
    """`open`, then `receive` until it gives b"", then `aclose`; that one always, and at any time."""

    def __init__(self, endpoint: Endpoint, trust: ssl.SSLContext, limits: GatewayLimits) -> None:
        self._url = httpcore.URL(
            scheme=endpoint.scheme, host=endpoint.host, port=endpoint.port, target=endpoint.target
        )
        self._authority = endpoint.authority
        self._timeouts = {
            "connect": limits.connect_s,
            "pool": limits.connect_s,
            "read": limits.stall_s,
            "write": limits.stall_s,
        }
        self._network = _Network()
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=1,
            max_keepalive_connections=0,
            http1=True,
            http2=False,
            network_backend=self._network,
        )
        self._response: httpcore.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def open(self, body: bytes, key: ApiKey | None) -> None:
        """Send the request and wait for a stream to begin. Raises `ActionError`."""
        headers = [
            (b"host", self._authority),
            (b"accept", b"text/event-stream"),
            (b"accept-encoding", b"identity"),
            (b"connection", b"close"),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"user-agent", b"tabwarden"),
        ]
        if key is not None:
            headers.append((b"authorization", b"Bearer " + key.secret.encode("ascii")))
        request = httpcore.Request(
            "POST", self._url, headers=headers, content=_Once(body), extensions={"timeout": self._timeouts}
        )
        try:
            self._response = response = await self._pool.handle_async_request(request)
        except Exception as error:
            fault = fault_of(error)
        else:
            if response.status == 200 and _is_plain_stream(response.headers):
                return
            fault = failed(ANSWER) if response.status == 200 else fault_of_status(response.status)
        # Outside of the handler, so that nothing of the library's exception hangs on ours.
        raise fault

    async def receive(self) -> bytes:
        """The next piece of the body as it came, or b"" at its end. Raises `ActionError`."""
        if self._response is None:
            raise RuntimeError("not open")
        if self._pieces is None:
            self._pieces = self._response.aiter_stream()
        fault: ActionError
        try:
            return await anext(self._pieces, b"")
        except Exception as error:
            fault = fault_of(error)
        raise fault

    async def aclose(self) -> None:
        """Close the connection at once, whatever is under way. Never raises."""
        with trio.move_on_after(_CLOSE_S, shield=True):
            await self._network.aclose()
            # The exchange is over, and what the library says of that may hold the gateway's text.
            if self._pieces is not None:
                # Its generators end by themselves, now that the connection is gone. Left alone, they would be
                # found by the garbage collector, which trio warns of.
                with suppress(Exception):
                    async for _ in self._pieces:
                        pass
            if self._response is not None:
                with suppress(Exception):
                    await self._response.aclose()
            with suppress(Exception):
                await self._pool.aclose()


class _Once:
    """A body in one piece. The library's own is a generator, which a cancelled request would leave behind."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> "_Once":
        return self

    async def __anext__(self) -> bytes:
        data, self._data = self._data, b""
        if not data:
            raise StopAsyncIteration
        return data


class _Network(httpcore.AsyncNetworkBackend):
    """Trio's, with an end: the library leaves a socket open when it is cancelled within a TLS handshake."""

    def __init__(self) -> None:
        self._trio = httpcore.TrioBackend()
        self._streams: list[httpcore.AsyncNetworkStream] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._trio.connect_tcp(host, port, timeout, local_address, socket_options)
        self._streams.append(stream)
        return stream

    async def aclose(self) -> None:
        """Close what was opened."""
        for stream in self._streams:
            with suppress(Exception):
                await stream.aclose()


def _is_plain_stream(headers: list[tuple[bytes, bytes]]) -> bool:
    values = {name: [one for other, one in headers if other.lower() == name] for name in _JUDGED}
    media_types = [one.partition(b";")[0].strip().lower() for one in values[b"content-type"]]
    encodings = [one.strip().lower() for one in values[b"content-encoding"]]
    return media_types == [b"text/event-stream"] and encodings in ([], [b"identity"])


_JUDGED: Final = (b"content-type", b"content-encoding")
