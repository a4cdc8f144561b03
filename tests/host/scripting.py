"""Talks with a scripted host: starts it, tells it what the person does, and hears what it is asked."""

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

ROOT = Path(__file__).parents[2]


class ScriptedHost:
    """Events come in order; those that nobody waited for stay to be heard."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._events: deque[dict[str, Any]] = deque()
        self._came = trio.lowlevel.ParkingLot()
        self._over = False

    async def hear(self) -> None:
        assert self.process.stdout is not None
        buffer = b""
        async for data in self.process.stdout:
            *lines, buffer = (buffer + data).split(b"\n")
            self._events.extend(json.loads(line) for line in lines)
            self._came.unpark_all()
        self._over = True
        self._came.unpark_all()

    async def event(self, name: str) -> dict[str, Any]:
        """The next event of this name; others stay."""
        while True:
            for event in self._events:
                if event["event"] == name:
                    self._events.remove(event)
                    return event
            assert not self._over, f"the host ended before it told of {name}"
            await self._came.park()

    @property
    def unheard(self) -> list[str]:
        """The names of the events that nobody waited for."""
        return [event["event"] for event in self._events]

    async def does(self, **command: Any) -> None:
        """Have the person do something, and wait until it is done."""
        await self._write(command)
        await self.event("ok")

    async def targets(self) -> dict[str, Any]:
        await self._write({"targets": 1})
        return await self.event("targets")

    async def _write(self, command: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(command).encode() + b"\n")


@asynccontextmanager
async def scripted_host(home: Path) -> AsyncIterator[ScriptedHost]:
    """A host whose host.json is in `home`; it is killed at the end, if it still runs."""
    command = [sys.executable, "-m", "tests.host.scripted_host", str(home)]
    # What a killed host leaves behind goes with this folder; its name is short, since sockets are in it.
    with tempfile.TemporaryDirectory(prefix="host-", ignore_cleanup_errors=True) as temporary:
        async with _running(command, {**os.environ, "TMPDIR": temporary}) as host:
            yield host


@asynccontextmanager
async def _running(command: list[str], environment: dict[str, str]) -> AsyncIterator[ScriptedHost]:
    async with trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment
        )
        host = ScriptedHost(process)
        nursery.start_soon(host.hear)
        try:
            await host.event("ready")
            yield host
            assert process.stdin is not None
            await process.stdin.aclose()
            await process.wait()
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
            nursery.cancel_scope.cancel()
