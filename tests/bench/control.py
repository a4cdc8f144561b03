"""A server process's side of the runner: one ready line, then counters on demand, until end of input."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping

import trio


def say(value: Mapping[str, object]) -> None:
    """Write one JSON line to standard output at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def input_lines() -> AsyncIterator[bytes]:
    """The lines of standard input, without blocking the loop.

    End of input also comes when the runner dies, so that no process of the bench outlives it.
    """
    held = b""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        while data := await stream.receive_some():
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                yield line


async def serve_control(ready: Mapping[str, object], counters: Callable[[], Mapping[str, int]]) -> None:
    """Announce `ready`, then answer each line with what `counters()` gives; return at end of input."""
    say(ready)
    async for _ in input_lines():
        say(counters())
