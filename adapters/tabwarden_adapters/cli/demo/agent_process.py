"""Runs the demo's agent as a separate process and talks to it line by line."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio
from tabwarden.errors import ConfigurationError

_MAX_LINE = 256 * 1024
_END_S = 3.0


class AgentProcess:
    """One agent. `ask` does one thing and returns what the agent saw."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._buffer = b""

    async def ask(self, do: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
        """The agent's answer: `ok`, and `result` or `code`."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the agent has no pipes")
        await self._process.stdin.send_all(json.dumps({"do": do, "args": args or {}}).encode() + b"\n")
        while b"\n" not in self._buffer:
            data = await self._process.stdout.receive_some()
            if not data or len(self._buffer) > _MAX_LINE:
                raise ConfigurationError("the demo's agent ended early: run `tabwarden doctor`")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def agent_process(connection: Path) -> AsyncIterator[AgentProcess]:
    """An agent paired through the descriptor at `connection`, while the block runs."""
    command = [sys.executable, "-m", "tabwarden_adapters.cli.demo.agent", str(connection)]
    async with trio.open_nursery() as nursery:
        start = partial(trio.run_process, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
        process: trio.Process = await nursery.start(start)
        try:
            yield AgentProcess(process)
        finally:
            with trio.move_on_after(_END_S, shield=True):
                if process.stdin is not None:
                    await process.stdin.aclose()
                await process.wait()
            nursery.cancel_scope.cancel()
