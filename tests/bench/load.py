"""The load generator: one process for a stack, N clients in a closed loop, the same code for every stack.

Run as `python -m tests.bench.load`. The first line of input names the client and gives the server's ready
line; every further line is one job (`load`, `turns`, `pace`, `hold`, `forge`, `facts`), answered by one
line.
"""

import base64
import gc
import json
import math
import pkgutil
import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import trio

from tests.bench.control import input_lines, say
from tests.bench.http_client import HttpConnection, open_tcp
from tests.bench.stacks import Client, Connect, Ready

MAX_CALLS = 500_000  # for one job: more than any stack does in its time
FORGERS = 8


def encode_samples(samples: Iterable[float]) -> str:
    """Seconds, packed for a JSON line."""
    return base64.b64encode(array("d", samples).tobytes()).decode()


def decode_samples(text: str) -> "array[float]":
    """Undo `encode_samples`."""
    samples = array("d")
    samples.frombytes(base64.b64decode(text))
    return samples


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of sorted samples; `share` in 0..1."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


async def connect_all(connect: Connect, ready: Ready, count: int) -> list[Client]:
    """Connect `count` clients, each having made one call."""
    clients: list[Client] = []
    for index in range(count):
        client = await connect(ready, index)
        clients.append(client)
        await client.call()
    return clients


async def close_all(clients: list[Client]) -> None:
    """Close them all."""
    for client in clients:
        await client.aclose()
    clients.clear()


async def closed_loop(clients: Sequence[Client], warm: float, seconds: float) -> dict[str, object]:
    """Every client calls again as soon as its last call ended.

    All that ends within the window counts, for each client in `each` as well. The loop runs on from warm-up
    into the window, so that the clients are not in step when it opens.
    """
    samples = array("d")
    each = [0] * len(clients)
    opens = time.perf_counter() + warm
    closes = opens + seconds

    async def run(number: int, client: Client) -> None:
        while len(samples) < MAX_CALLS:
            begun = time.perf_counter()
            await client.call()
            ended = time.perf_counter()
            if ended >= closes:
                return
            if ended >= opens:
                samples.append(ended - begun)
                each[number] += 1

    gc.collect()
    gc.freeze()
    begun_all, cpu = time.perf_counter(), time.process_time()
    async with trio.open_nursery() as nursery:
        for number, client in enumerate(clients):
            nursery.start_soon(run, number, client)
    busy = (time.process_time() - cpu) / (time.perf_counter() - begun_all)
    return {"samples": encode_samples(samples), "seconds": seconds, "cpu": busy, "each": each}


async def by_turns(clients: Sequence[Client], warm: float, seconds: float) -> dict[str, object]:
    """One call of each client after the other, again and again, so that whatever else the machine does falls
    on all of them alike. Samples of each."""
    samples = [array("d") for _ in clients]
    gc.collect()
    gc.freeze()
    opens = time.perf_counter() + warm
    closes = opens + seconds
    while (now := time.perf_counter()) < closes and len(samples[0]) < MAX_CALLS:
        for client, mine in zip(clients, samples, strict=True):
            begun = time.perf_counter()
            await client.call()
            if now >= opens:
                mine.append(time.perf_counter() - begun)
    return {"samples": [encode_samples(mine) for mine in samples]}


async def paced(clients: Sequence[Client], rate: float, seconds: float) -> dict[str, object]:
    """Calls at even times, `rate` a second, whether or not those before have ended."""
    begun = trio.current_time()
    count = min(int(rate * seconds), MAX_CALLS)

    async def run(client: Client, first: int) -> None:
        for number in range(first, count, len(clients)):
            await trio.sleep_until(begun + number / rate)
            await client.call()

    async with trio.open_nursery() as nursery:
        for number, client in enumerate(clients):
            nursery.start_soon(run, client, number)
    return {"calls": count, "seconds": trio.current_time() - begun}


async def forge(ready: Ready, name: str, count: int) -> dict[str, object]:
    """Send `count` forged requests over a few connections; every one must be refused."""
    make = pkgutil.resolve_name(name)(ready)
    left, refused = count, 0

    async def run() -> None:
        nonlocal left, refused
        connection: HttpConnection | None = None
        while left > 0:
            left -= 1
            connection = connection or HttpConnection(await open_tcp(ready["address"]))
            try:
                status, _ = await connection.exchange(make())
            except trio.BrokenResourceError:
                # A server may close on a bad proof; that is a refusal as well.
                status = 403
                await connection.aclose()
                connection = None
            refused += status == 403
        if connection is not None:
            await connection.aclose()

    begun = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(FORGERS):
            nursery.start_soon(run)
    return {"refused": refused, "seconds": time.perf_counter() - begun}


async def main() -> None:
    """Do one job a line until end of input."""
    connect: Connect | None = None
    ready: Ready = {}
    held: list[Client] = []
    async for line in input_lines():
        job: dict[str, Any] = json.loads(line)
        if connect is None:
            connect, ready = pkgutil.resolve_name(job["client"]), job["ready"]
            say({})
        elif job["do"] == "load":
            clients = await connect_all(connect, ready, job["clients"])
            say(await closed_loop(clients, job["warm"], job["seconds"]))
            await close_all(clients)
        elif job["do"] == "turns":
            clients = [await connect(one, 0) for one in (ready, job["other"])]
            say(await by_turns(clients, job["warm"], job["seconds"]))
            await close_all(clients)
        elif job["do"] == "pace":
            clients = await connect_all(connect, ready, job["clients"])
            say(await paced(clients, job["rate"], job["seconds"]))
            await close_all(clients)
        elif job["do"] == "hold":
            held += await connect_all(connect, ready, job["connections"])
            say({"held": len(held)})
        elif job["do"] == "forge":
            say(await forge(ready, job["forge"], job["count"]))
        elif job["do"] == "facts":
            say(await pkgutil.resolve_name(job["facts"])(ready))
    await close_all(held)


if __name__ == "__main__":
    trio.run(main)
