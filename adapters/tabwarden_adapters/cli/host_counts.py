"""What a host without a terminal says: JSON lines of counts, never of texts."""

import json
import os
from collections.abc import Mapping

import trio

from tabwarden_adapters.host import Questions, SeenLog

REST_S = 1.0  # between two lines: an engine that logs without end must not make as many of them
_STDOUT = 1


async def tell_counts(log: SeenLog, questions: Questions) -> None:
    """One line after each change, at most one a second. Ends when nobody reads them."""
    revision = last = 0
    while True:
        await _change(log, last, questions, revision)
        # Before the line is made: what comes while it is written, or afterwards, is for the next one.
        revision, last = questions.revision, log.last
        counts = log.counts
        line = {
            "logged": counts.taken,
            "unclean": counts.unclean,
            "withheld": counts.withheld,
            "dropped": counts.dropped,
            "answered_no": questions.counts.unasked,
        }
        if not await write_line(line):
            return
        await trio.sleep(REST_S)


async def _change(log: SeenLog, last: int, questions: Questions, revision: int) -> None:
    async with trio.open_nursery() as nursery:

        async def asked() -> None:
            await questions.changed(revision)
            nursery.cancel_scope.cancel()

        nursery.start_soon(asked)
        await log.wait(last)
        nursery.cancel_scope.cancel()


async def write_line(value: Mapping[str, object]) -> bool:
    """Print JSON, and return whether somebody may read it. A reader that reads nothing holds up nothing."""
    return await trio.to_thread.run_sync(_write, json.dumps(value).encode() + b"\n", abandon_on_cancel=True)


def _write(data: bytes) -> bool:
    try:
        while data:
            data = data[os.write(_STDOUT, data) :]
    except OSError:
        return False
    return True
