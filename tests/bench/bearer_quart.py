"""Peer: a bearer token and no cryptography, Quart-Trio on Hypercorn."""

import hmac
import secrets
from collections import Counter

import trio
from quart import Response, request
from quart_trio import QuartTrio

from tests.bench.hypercorn_run import serve_app


async def main() -> None:
    """Serve no-op calls until end of input."""
    counters: Counter[str] = Counter(calls=0)
    token = secrets.token_hex(32)
    app = QuartTrio(__name__)

    @app.post("/v1/agent")
    async def agent() -> Response:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), b"Bearer " + token.encode()):
            return Response(b"", status=403)
        await request.get_data()
        counters["calls"] += 1
        return Response(b'{"type":"agent-response","status":200,"body":[]}', content_type="application/json")

    await serve_app(app, {"token": token}, counters)


if __name__ == "__main__":
    trio.run(main)
