"""Run as a program: fork writers of one log and kill each at a random moment, then look what is left.

    crash_rounds.py DIRECTORY ROUNDS SEED

A writer signs, begins segments and drops old ones, and tells through a pipe what was acknowledged to it as
durable. Ends with status 0 when no acknowledged record was ever lost, no torn one accepted, and the log went
on with contiguous numbers each time.
"""

import os
import random
import signal
import sys
from pathlib import Path

import trio
from tabwarden.model import AgentEvent
from tabwarden_adapters.audit import (
    DurableAuditLog,
    LogReader,
    LogRules,
    Retention,
    durable_audit_log,
    verify_log,
)

from tests.audit.signed import new_signer
from tests.audit.support import authorized, completed

# Small enough that some are killed while they begin a segment, sign or drop; a few rounds' worth is kept.
RULES = LogRules(segment_bytes=30_000, checkpoint_records=50, retention=Retention(segments=40))


async def write(directory: Path, acknowledgements: int, turn: int, callers: int) -> None:
    async def caller(log: DurableAuditLog, name: int) -> None:
        for number in range(1_000_000):
            request_id = f"{turn}-{name}-{number}"
            ticket = log.admit(authorized(request_id))
            await ticket.durable()
            os.write(acknowledgements, f"{ticket.sequence} {request_id}\n".encode())
            ticket.settle(completed(request_id))

    async with durable_audit_log(directory, rules=RULES) as log, trio.open_nursery() as nursery:
        nursery.start_soon(log.sign_with, new_signer())
        for name in range(callers):
            nursery.start_soon(caller, log, name)


def round_trip(directory: Path, turn: int, chance: random.Random) -> dict[int, str]:
    """Let one writer run until a random number of acknowledgements, kill it; return all of them."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            trio.run(write, directory, writing, turn, chance.choice([1, 2, 8]))
        finally:
            os._exit(status)
    os.close(writing)
    acknowledged = b""
    enough = chance.randrange(1, 250)
    with os.fdopen(reading, "rb") as stream:
        while acknowledged.count(b"\n") < enough and (line := stream.readline()):
            acknowledged += line
        os.kill(child, signal.SIGKILL)
        acknowledged += stream.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    whole = acknowledged[: acknowledged.rfind(b"\n") + 1].decode().splitlines()
    return {int(line.split()[0]): line.split()[1] for line in whole}


def main() -> None:
    directory, rounds, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    reader = LogReader(directory)  # reads on over all crashes: each record once, and no gap
    total = last = 0
    for turn in range(rounds):
        acknowledged = round_trip(directory, turn, chance)
        total += len(acknowledged)
        stored = {}
        for record in reader.read():
            assert record.sequence == last + 1
            last = record.sequence
            if isinstance(record.event, AgentEvent) and record.event.outcome == "authorized":
                stored[record.sequence] = record.event.request_id
        lost = {item for item in acknowledged.items() if stored.get(item[0]) != item[1]}
        assert not lost, lost
        if turn % 10 == 0 or turn == rounds - 1:
            verification = verify_log(directory)
            assert verification.ok, verification.fault
            assert verification.records == last
    assert total > rounds
    print(f"{rounds} kills, {total} acknowledged, {last} stored, {verification.dropped} dropped")  # noqa: T201


if __name__ == "__main__":
    main()
