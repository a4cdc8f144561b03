"""Peer: a bearer token and no cryptography, httptools on a trio listener."""

import hmac
import secrets
from collections import Counter
from collections.abc import Mapping

import trio

from tests.bench.control import serve_control
from tests.bench.http_server import listen, serve_connection


async def main() -> None:
    """Serve no-op calls until end of input."""
    counters: Counter[str] = Counter(calls=0)
    token = secrets.token_hex(32)
    expected = b"Bearer " + token.encode()

    def handle(path: bytes, headers: Mapping[bytes, bytes], body: bytes) -> tuple[int, bytes]:
        if path != b"/v1/agent" or not hmac.compare_digest(headers.get(b"authorization", b""), expected):
            return 403, b""
        counters["calls"] += 1
        return 200, b'{"type":"agent-response","status":200,"body":[]}'

    async def connection(stream: trio.SocketStream) -> None:
        await serve_connection(stream, handle)

    listener, address = await listen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, connection, [listener])
        await serve_control({"address": address, "token": token}, lambda: counters)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
