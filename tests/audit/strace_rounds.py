"""Run as a program: let strace(1) make each file system call of a log fail, one by one, and see what is left.

    strace_rounds.py DIRECTORY [--sample N] [--calls NAME,NAME,…]

A writer opens a log that is there, signs, records, begins segments, drops old ones and closes. At the nth
call of each kind it gets EIO or ENOSPC, is killed, or is told that a write took 7 bytes while it took none.
Afterwards: what was acknowledged is there, nothing torn is accepted, the writer ended with an error of ours
or with none, and the log goes on with contiguous numbers. With --sample only so many are tried.

Not a test of the ordinary run, because it takes minutes: `make faults`.
"""

import argparse
import collections
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import trio
from tabwarden.errors import TabwardenError
from tabwarden.model import AgentEvent
from tabwarden_adapters.audit import (
    DurableAuditLog,
    LogRules,
    Retention,
    durable_audit_log,
    read_records,
    verify_log,
)

from tests.audit.signed import new_signer
from tests.audit.support import authorized, completed, denied

CALLS = (
    "openat", "read", "pread64", "write", "fstat", "newfstatat", "lseek", "fdatasync", "fsync", "ftruncate",
    "fallocate", "fadvise64", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat",
    "flock", "getdents64", "readlinkat", "fcntl", "close",
)  # fmt: skip
FAULTS = ("error=EIO", "error=ENOSPC", "signal=SIGKILL")
SHORT_WRITE = "retval=7"
RULES = LogRules(
    segment_bytes=3000, checkpoint_records=5, retention=Retention(segments=3), commit_delay_s=0.001
)
LIMIT_S = 60
EXPECTED, UNEXPECTED = 3, 4


async def work(directory: Path, told: socket.socket | None) -> None:
    """What is made to fail."""
    async with durable_audit_log(directory, rules=RULES) as log:
        await log.sign_with(new_signer())

        async def caller(name: str) -> None:
            for number in range(6):
                request_id = f"{name}-{number}-{os.getpid()}"
                ticket = log.admit(authorized(request_id))
                await ticket.durable()
                if told is not None:
                    told.send(f"{ticket.sequence} {request_id}\n".encode())
                ticket.settle(completed(request_id))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(caller, "a")
            nursery.start_soon(caller, "b")


async def go_on(directory: Path) -> None:
    """A next broker adds to what is left."""
    async with durable_audit_log(directory) as log:
        await add(log)


async def add(log: DurableAuditLog) -> None:
    await log.sign_with(new_signer())
    log.note(denied("afterwards"))
    await log.flush()


def in_child(job: Callable[[], None]) -> int:
    """Fork; the child does `job` and ends with 0, EXPECTED (an error of ours) or UNEXPECTED."""
    child = os.fork()
    if child:
        return child
    status = UNEXPECTED
    try:
        job()
        status = 0
    except* TabwardenError:
        status = EXPECTED
    except* BaseException as group:
        # What trio opens and closes of its own is not the log's.
        text = "".join(traceback.format_exception(group))
        status = UNEXPECTED if "tabwarden_adapters" in text else EXPECTED
        if status == UNEXPECTED:
            sys.stderr.write(text)
    finally:
        os._exit(status)


def ended(child: int) -> int:
    """The status of a child that ends by itself: 0, EXPECTED, UNEXPECTED, or minus a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Case:
    """One writer under strace, in a copy of a log."""

    def __init__(self, folder: Path, template: Path, options: list[str]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        self.log, self.trace = folder / "log", folder / "trace"
        shutil.copytree(template, self.log)
        ours, theirs = socket.socketpair()
        ready, begin = os.pipe(), os.pipe()

        def job() -> None:
            ours.close()
            # Everything that is imported or opened once only is so before strace looks.
            trio.run(work, folder / "warm", None)
            os.write(ready[1], b"x")
            os.read(begin[0], 1)
            trio.run(work, self.log, theirs)

        child = in_child(job)
        theirs.close()
        os.read(ready[0], 1)
        tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", str(self.trace), "-p", str(child), *options], stderr=subprocess.PIPE
        )
        while not self._attached(child) and tracer.poll() is None:
            pass  # it ends at once when the fault hits what the child itself waits in
        os.write(begin[1], b"x")
        self.acknowledged = b"".join(iter(lambda: ours.recv(4096), b"")).decode()
        ours.close()
        self.status = ended(child)
        said = tracer.communicate(timeout=LIMIT_S)[1]
        if b"attach" in said:
            raise SystemExit(f"strace does not run: {said.decode()}")
        for descriptor in (*ready, *begin):
            os.close(descriptor)

    def _attached(self, child: int) -> bool:
        try:
            tasks = [int(name) for name in os.listdir(f"/proc/{child}/task")]
            return all("TracerPid:\t0" not in Path(f"/proc/{task}/status").read_text() for task in tasks)
        except OSError:
            return False

    def check(self) -> None:
        """Raise AssertionError unless all that was promised holds."""
        assert self.status in (0, EXPECTED, -signal.SIGKILL), f"it ended with {self.status}"
        lines = self.acknowledged[: self.acknowledged.rfind("\n") + 1].splitlines()
        acknowledged = {int(number): name for number, name in (line.split() for line in lines)}
        left = verify_log(self.log)
        assert left.ok, left.fault
        stored = {}
        for record in read_records(self.log):
            if isinstance(record.event, AgentEvent) and record.event.outcome == "authorized":
                stored[record.sequence] = record.event.request_id
        lost = {
            item for item in acknowledged.items() if item[0] > left.dropped and stored.get(item[0]) != item[1]
        }
        assert not lost, f"lost: {lost}"
        assert ended(in_child(lambda: trio.run(go_on, self.log))) == 0, "no broker could go on"
        after = verify_log(self.log)
        assert after.ok, after.fault
        assert after.records == left.records + 2
        assert after.signed == after.records


def counts(folder: Path, template: Path) -> dict[str, int]:
    """How often each call is made by the thread that makes most of it: strace counts for each thread."""
    case = Case(folder, template, ["-e", f"trace={','.join(f'?{name}' for name in CALLS)}"])
    case.check()
    assert case.status == 0
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for line in case.trace.read_text().splitlines():
        if match := re.match(r"(\d+) +(\w+)\(", line):
            found[match[2], match[1]] += 1
    return {name: max(n for (call, _), n in found.items() if call == name) for name, _ in found}


def cases(found: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    for name, most in sorted(found.items()):
        for when in range(1, most + 1):
            for fault in FAULTS if name != "write" else (*FAULTS, SHORT_WRITE):
                yield name, fault, when


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.strace_rounds")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--calls")
    asked = parser.parse_args()
    directory: Path = asked.directory
    template, folder = directory / "template", directory / "case"
    for _ in range(2):
        assert ended(in_child(lambda: trio.run(work, template, None))) == 0
    found = counts(folder, template)
    chosen = list(cases(found))
    if asked.calls:
        chosen = [case for case in chosen if case[0] in asked.calls.split(",")]
    if asked.sample:
        chosen = random.Random(1).sample(chosen, min(asked.sample, len(chosen)))
    ends: collections.Counter[str] = collections.Counter()
    failed = 0
    for name, fault, when in chosen:
        case = Case(folder, template, ["-e", f"inject={name}:{fault}:when={when}", "-e", f"trace={name}"])
        kind = {0: "went on", EXPECTED: "refused", -signal.SIGKILL: "killed"}.get(case.status, "wrong")
        ends[kind] += 1
        try:
            case.check()
        except AssertionError as error:
            failed += 1
            print(f"{name} {fault} at {when}: {error}", flush=True)  # noqa: T201
            with contextlib.suppress(OSError):
                shutil.copytree(folder, directory / f"failed-{name}-{fault}-{when}", dirs_exist_ok=True)
    print(f"calls: {found}")  # noqa: T201
    print(f"{len(chosen)} cases, {failed} failed; {dict(ends)}")  # noqa: T201
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
