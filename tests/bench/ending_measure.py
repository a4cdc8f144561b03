"""How soon a broker under load is gone after a SIGTERM. That every call has its end on record by then is
shown by tests/load/test_sigterm.py."""

from dataclasses import dataclass, field
from pathlib import Path

import trio

from tests.bench.process import child
from tests.bench.results import Row
from tests.load.ending import HELD, ended_under_load

ROUNDS, QUICK_ROUNDS = 5, 1


@dataclass(slots=True)
class EndingFindings:
    """Seconds from the signal to the end of the process, each round; spans lost in all of them."""

    seconds: list[float] = field(default_factory=list)
    lost: int = 0


async def measure_ending(folder: Path, quick: bool) -> EndingFindings:
    """With calls that are held, calls that go on coming, and a live receiver of spans."""
    found = EndingFindings()
    await trio.Path(folder).mkdir()
    async with child("tests.bench.otlp_receiver") as receiver:
        address = (await receiver.answer())["address"]
        for number in range(QUICK_ROUNDS if quick else ROUNDS):
            ended = await ended_under_load(folder / str(number), f"http://{address}")
            found.seconds.append(ended.seconds)
            found.lost += ended.last["dropped"]
    return found


def ending_goals(found: EndingFindings) -> list[Row]:
    """The slowest of all rounds counts."""
    return [
        Row("sigterm-to-exit", max(found.seconds), "s", "<= 5"),
        Row("sigterm-spans-lost", found.lost, "spans", "<= 0"),
    ]


def ending_line(found: EndingFindings) -> str:
    """For people."""
    shown = ", ".join(f"{seconds:.2f}" for seconds in found.seconds)
    return f"SIGTERM under load ({HELD} calls held, others coming) to exit: {shown} s"
