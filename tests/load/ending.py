"""A broker that is told to end under load, and how it did."""

import json
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import trio
from tabwarden.model import ConnectionDescriptor
from tabwarden.protocol.codec import SUITE
from tabwarden_adapters.load import Brakes, LoadPlan, Run, drive

HELD = 40


@dataclass(frozen=True, slots=True)
class Ended:
    """`last` is what the broker said last, `seconds` from the signal to the end of its process."""

    last: dict[str, Any]
    held: Run
    quick: Run
    seconds: float


def descriptor(ready: dict[str, Any]) -> ConnectionDescriptor:
    keys = {name: bytes.fromhex(ready[name]) for name in ("token", "ed_public", "pq_public", "instance")}
    return ConnectionDescriptor(
        address=ready["address"], principal_id="legacy", generation=0, protocol=SUITE, **keys
    )


class Lines:
    """What a process says, line by line."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._held = b""

    async def next(self) -> dict[str, Any]:
        while b"\n" not in self._held:
            data = await self._stream.receive_some()
            assert data, "the broker's process ended early"
            self._held += data
        line, self._held = self._held.split(b"\n", 1)
        said: dict[str, Any] = json.loads(line)
        return said


async def ended_under_load(folder: Path, endpoint: str) -> Ended:
    """Load a broker with calls that are held and calls that are quick, and tell it to end."""
    runs: dict[str, Run] = {}
    held, quick = Brakes(), Brakes()
    # Not the developer's own exporters.
    own = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}

    async def load(name: str, plan: LoadPlan, one: ConnectionDescriptor, brakes: Brakes) -> None:
        runs[name] = await drive(plan, [one], brakes=brakes)

    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(
                trio.run_process,
                [sys.executable, "-m", "tests.load.broker_process", str(folder), str(HELD)],
                stdin=b"",
                stdout=-1,
                env={**own, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "NO_PROXY": "127.0.0.1"},
            )
        )
        lines = Lines(process.stdout)
        one = descriptor(await lines.next())
        nursery.start_soon(load, "held", LoadPlan(agents=HELD, seconds=3600, action="read"), one, held)
        nursery.start_soon(load, "quick", LoadPlan(agents=8, seconds=3600, rate=10), one, quick)
        assert await lines.next() == {"held": HELD}
        # Those that are held are not asked again; the quick ones go on into the end of the broker.
        held.press()
        told = trio.current_time()
        process.send_signal(signal.SIGTERM)
        last = await lines.next()
        await process.wait()
        seconds = trio.current_time() - told
        quick.press()
        quick.press()
    return Ended(last, runs["held"], runs["quick"], seconds)
