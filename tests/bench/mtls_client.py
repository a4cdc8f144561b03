"""The clients of mutual TLS: a new connection for each call, a resumed one, and one kept alive."""

from functools import cache
from pathlib import Path

from OpenSSL import SSL

from tests.bench.http_client import HttpConnection, open_tcp
from tests.bench.mtls import context
from tests.bench.stacks import Client, Ready
from tests.bench.tls_stream import TlsStream

_HEADERS = "content-type: application/json\r\n"
_BODY = b'{"type":"agent-request","action":"sessions","args":{}}'


@cache
def _context(folder: str) -> SSL.Context:
    return context(Path(folder), "client", "server", server=False)


def _reused(connection: SSL.Connection) -> bool:
    # pyOpenSSL has no public name for it.
    return bool(SSL._lib.SSL_session_reused(connection._ssl))  # type: ignore[attr-defined]


async def _open(ready: Ready, session: SSL.Session | None = None) -> TlsStream:
    stream = TlsStream(await open_tcp(ready["address"]), _context(ready["folder"]), server=False)
    if session is not None:
        stream.connection.set_session(session)
    await stream.handshake()
    return stream


async def _post(http: HttpConnection) -> None:
    status, _ = await http.post("/v1/agent", _HEADERS, _BODY)
    if status != 200:
        raise RuntimeError(f"refused: {status}")


class NewClient:
    """Connects, calls and closes, each time with a full handshake."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    async def call(self) -> None:
        """Make one no-op call on a new connection."""
        http = HttpConnection(await _open(self._ready))
        await _post(http)
        await http.aclose()

    async def aclose(self) -> None:
        """Nothing is open between calls."""


class ResumedClient:
    """Connects, calls and closes, each time with the newest ticket (and a fresh key exchange)."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready
        self._session: SSL.Session | None = None

    async def call(self) -> None:
        """Make one no-op call on a resumed connection; only the first may be new."""
        stream = await _open(self._ready, self._session)
        if self._session is not None and not _reused(stream.connection):
            raise RuntimeError("the session was not resumed")
        http = HttpConnection(stream)
        await _post(http)
        self._session = stream.connection.get_session()
        await http.aclose()

    async def aclose(self) -> None:
        """Nothing is open between calls."""


class KeptClient:
    """Calls on one connection."""

    def __init__(self, http: HttpConnection) -> None:
        self._http = http

    async def call(self) -> None:
        """Make one no-op call."""
        await _post(self._http)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._http.aclose()


async def connect_new(ready: Ready, index: int) -> Client:
    """A caller that makes a new connection for each call."""
    return NewClient(ready)


async def connect_resumed(ready: Ready, index: int) -> Client:
    """A caller that resumes its session for each call."""
    return ResumedClient(ready)


async def connect_kept(ready: Ready, index: int) -> Client:
    """A caller that keeps its connection."""
    return KeptClient(HttpConnection(await _open(ready)))


async def facts(ready: Ready) -> dict[str, object]:
    """What was really negotiated."""
    stream = await _open(ready)
    connection = stream.connection
    certificate = connection.get_peer_certificate()
    assert certificate is not None
    said: dict[str, object] = {
        "version": connection.get_protocol_version_name(),
        "group": connection.get_group_name(),
        "suite": connection.get_cipher_name(),
        "certificate": certificate.to_cryptography().signature_algorithm_oid._name,
    }
    await stream.aclose()
    return said
