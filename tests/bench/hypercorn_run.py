"""Runs a Quart-Trio app on Hypercorn as a bench server."""

from collections import Counter
from collections.abc import Mapping

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from quart_trio import QuartTrio

from tests.bench.control import serve_control


async def serve_app(app: QuartTrio, ready: Mapping[str, object], counters: Counter[str]) -> None:
    """Serve `app` on a free loopback port until end of input."""
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    config.include_server_header = False
    config.backlog = 256
    # Its defaults would make clients reconnect in the middle of a measurement.
    config.keep_alive_timeout = 120
    config.keep_alive_max_requests = 10**9
    async with trio.open_nursery() as nursery:
        binds: list[str] = await nursery.start(serve, app, config)
        await serve_control({"address": binds[0].removeprefix("http://"), **ready}, lambda: counters)
        nursery.cancel_scope.cancel()
