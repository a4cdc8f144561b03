"""The runner's side of a child process: spawned, asked in JSON lines, bounded, ended by its own id."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

ANSWER_S = 60.0  # longer than any one measurement
END_S = 3.0  # from end of input to gone; then it is killed
_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """A running child that answers lines."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._held = b""
        self.ready: dict[str, Any] = {}

    async def answer(self) -> dict[str, Any]:
        """The next line it says."""
        assert self._process.stdout is not None
        parts = [self._held]
        with trio.fail_after(ANSWER_S):
            while b"\n" not in parts[-1]:
                data = await self._process.stdout.receive_some()
                if not data:
                    raise RuntimeError(f"a bench process ended early: {self._process.args!r}")
                parts.append(bytes(data))
        line, self._held = b"".join(parts).split(b"\n", 1)
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    async def ask(self, **question: object) -> dict[str, Any]:
        """Say one line and wait for the answer."""
        assert self._process.stdin is not None
        with trio.fail_after(ANSWER_S):
            await self._process.stdin.send_all(json.dumps(question).encode() + b"\n")
        return await self.answer()

    def resident_bytes(self) -> int:
        """Its resident memory, as the kernel counts it."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """The processor time it has used so far, user and system."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@asynccontextmanager
async def child(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Child]:
    """Run `python -m module`; on leaving, close its input, wait, and kill it if it will not end."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", module, *arguments],
        stdin=-1,
        stdout=-1,
        env={**os.environ, **(env or {})},
    )
    try:
        yield Child(process)
    finally:
        with trio.CancelScope(shield=True):
            assert process.stdin is not None
            await process.stdin.aclose()
            with trio.move_on_after(END_S):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
