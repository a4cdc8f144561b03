"""Peer: mutual TLS 1.3, httptools on a trio listener; the caller is whoever its certificate says."""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import trio
from OpenSSL import SSL

from tests.bench.control import serve_control
from tests.bench.http_server import listen, serve_connection
from tests.bench.mtls import context, write_identity
from tests.bench.tls_stream import TlsStream


async def main() -> None:
    """Serve no-op calls until end of input."""
    folder = Path(sys.argv[1])
    write_identity(folder, "server")
    expected = write_identity(folder, "client")
    settings = context(folder, "server", "client", server=True)
    counters: Counter[str] = Counter(calls=0, connections=0)

    def handle(path: bytes, headers: Mapping[bytes, bytes], body: bytes) -> tuple[int, bytes]:
        if path != b"/v1/agent":
            return 403, b""
        counters["calls"] += 1
        return 200, b'{"type":"agent-response","status":200,"body":[]}'

    async def connection(transport: trio.SocketStream) -> None:
        stream = TlsStream(transport, settings, server=True)
        try:
            await stream.handshake()
        except (SSL.Error, trio.BrokenResourceError):
            await stream.aclose()
            return
        # On a resumed connection the ticket brings the certificate back; without one there is no caller.
        certificate = stream.connection.get_peer_certificate()
        if certificate is None or certificate.get_serial_number() != expected:
            await stream.aclose()
            return
        counters["connections"] += 1
        await serve_connection(stream, handle)

    listener, address = await listen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, connection, [listener])
        await serve_control({"address": address, "folder": str(folder)}, lambda: counters)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
