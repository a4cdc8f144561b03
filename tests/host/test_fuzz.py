"""Malformed requests by the thousand: no crash, nothing untyped, no growth.

200 in the ordinary tests, 10,000 with TABWARDEN_FUZZ=1 (`make fuzz-host`), which prints what was seen. The
seed is fixed, so a failure can be repeated.
"""

import gc
import json
import os
import random
import resource
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden_adapters.host import Answer, HostControlServer

from tests.host.support import FakeHost, ask, everything, limits, open_stream, parsed, request, serving, until

LONG = os.environ.get("TABWARDEN_FUZZ") == "1"
REQUESTS = 10_000 if LONG else 200
AT_ONCE = 8
ROUNDS = 5
SITE = "https://shop.test"
HONEST: list[tuple[str, str, Any]] = [
    ("GET", "/policy?origin=https%3A%2F%2Fshop.test", None),
    ("GET", "/sensitive-overrides", None),
    ("GET", "/excluded-targets", None),
    ("POST", "/approve", {"kind": "risk", "origin": SITE, "summary": "Buy"}),
    ("POST", "/handoff", {"reason": "Log in", "origin": SITE}),
    ("POST", "/log", {"type": "a", "origin": SITE, "text": "é", "tokens": 1, "at": 1, "meta": {"a": [1]}}),
    ("POST", "/tabs/open", {"url": SITE, "background": True, "agent": "Ada"}),
]
WORDS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n\r\n", b"Origin: null\r\n",
    b"Expect: 100-continue\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Upgrade: h2c\r\nHTTP2-Settings: %%%\r\n",
    b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"HTTP/2.0", b"HTTP/1.0", b"GET / HTTP/1.1\r\n\r\n",
    b"0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\xff\xfe", b"\x80", b"%00", b"%", b"?", b"#", b"[" * 50, b'"',
    b"\\ud800",
    b"\\", b"1e999", b"NaN", b"null", b"{}", b"99999999999999999999", b"-1", b"x" * 9000, b"a: b\r\n" * 60,
]  # fmt: skip


def mutated(chance: random.Random, server: HostControlServer) -> bytes:
    method, target, body = chance.choice(HONEST)
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 600))
    if kind <= 2 and body is not None:
        raw_body = _spoiled(chance, json.dumps(body).encode())
        return request(server, method, target, raw_body=raw_body)
    if kind == 3 and body is not None:
        odd = {
            chance.choice(list(body)): chance.choice(
                [None, True, -1, 2**60, "", "\u202e", [], {}, 1.5, "x" * 5000]
            )
        }
        return request(server, method, target, body | odd)
    return _spoiled(chance, request(server, method, target, body))


def _spoiled(chance: random.Random, raw: bytes) -> bytes:
    for _ in range(chance.randrange(1, 4)):
        at, end = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
        match chance.randrange(6):
            case 0:
                raw = raw[:at] + chance.choice(WORDS) + raw[at:]
            case 1:
                raw = raw[:at] + raw[end:]
            case 2:
                raw = raw[:at] + raw[at:end] * 2 + raw[end:]
            case 3:
                raw = raw[:at] + chance.randbytes(1) + raw[at + 1 :]
            case 4:
                raw = raw[:at]
            case _:
                raw = raw[:at] + chance.choice(WORDS) + raw[end:]
    return raw


async def one(server: HostControlServer, chance: random.Random, seen: Counter[str]) -> None:
    raw = mutated(chance, server)
    async with await open_stream(server) as stream:
        try:
            cut = chance.randrange(len(raw) + 1)
            await stream.send_all(raw[:cut])
            await stream.send_all(raw[cut:])
            leave = chance.randrange(8)
            if leave == 0:
                return
            await stream.send_eof()
        except trio.BrokenResourceError:
            pass
        reply = await everything(stream)
    if not reply:
        seen["closed"] += 1
        return
    status, body = parsed(reply)  # exactly one reply, JSON, whole
    if status == 200:
        seen["200"] += 1
        return
    seen[f"{status} {body['error']['code']}"] += 1
    assert status < 500 or body["error"]["code"] in ("failure", "http-version"), raw


def memory_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


@pytest.mark.timeout(900)
async def test_malformed_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = FakeHost()
    moody = random.Random(7)

    async def person(request: object) -> Any:
        if moody.randrange(4) == 0:
            raise RuntimeError("the host's own fault")
        return Answer.YES

    host.approving = host.handing = person
    seen: Counter[str] = Counter()
    seeds = iter(range(REQUESTS))

    async def worker(count: int) -> None:
        for _ in range(count):
            await one(server, random.Random(next(seeds)), seen)

    grown: list[tuple[int, int]] = []
    async with serving(tmp_path, host, limits=limits(head_s=1, body_s=1, log_entries=20)) as server:
        files = len(os.listdir("/proc/self/fd"))
        for _ in range(ROUNDS):
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(worker, REQUESTS // ROUNDS // AT_ONCE)
            await until(lambda: server.statistics().connections == 0)
            assert len(os.listdir("/proc/self/fd")) <= files
            assert (await ask(server, "GET", "/policy?origin=" + SITE))[0] == 200
            host.asked.clear()
            host.entries.clear()
            gc.collect()
            grown.append((len(gc.get_objects()), memory_kb()))
        assert server.statistics().contained == 0
    # An object kept for each request would show in every round after the first.
    steps = [later[0] - earlier[0] for earlier, later in pairwise(grown)]
    assert min(steps) < REQUESTS // ROUNDS // 4 + 100, steps
    if LONG:
        with capsys.disabled():
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            sys.stdout.write(
                f"\n{REQUESTS} requests: {dict(sorted(seen.items()))}\n"
                f"objects and kB after each fifth: {grown}; most memory: {most} kB\n"
            )
