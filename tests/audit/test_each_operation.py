"""Each operation of the log's own port fails once: what was acknowledged stays, and the log goes on.

`make faults` does the same with every system call, outside the process.
"""

import contextlib
import errno
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from tabwarden.errors import AuditUnavailable
from tabwarden.model import AgentEvent
from tabwarden_adapters.audit import LogRules, PosixFiles, durable_audit_log, read_records, verify_log

from tests.audit.signed import new_signer
from tests.audit.support import authorized, completed, denied

OPERATIONS = ("open_segment", "allocate", "write", "sync", "sync_directory", "truncate", "state")
RULES = LogRules(segment_bytes=1800, commit_delay_s=1000)


class FailingOnce:
    """The real file system, whose operation number `at` fails. Implements `FileOperations`."""

    def __init__(self, at: int) -> None:
        self._real = PosixFiles()
        self._count = itertools.count(1)
        self._at = at
        self.failed: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            raise AttributeError(name)
        real = getattr(self._real, name)

        def operation(*args: Any, **options: Any) -> Any:
            if next(self._count) == self._at:
                self.failed = name
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*args, **options)

        return operation


async def work(directory: Path, files: FailingOnce) -> dict[int, str]:
    """Record until something fails; returns what was acknowledged."""
    acknowledged: dict[int, str] = {}
    with contextlib.suppress(AuditUnavailable):
        async with durable_audit_log(directory, files=files, rules=RULES) as log:
            await log.sign_with(new_signer())
            for number in range(4):
                ticket = log.admit(authorized(f"r{number}"))
                await ticket.durable()
                acknowledged[ticket.sequence] = f"r{number}"
                ticket.settle(completed(f"r{number}"))
    return acknowledged


@pytest.mark.parametrize("existing", [3])
async def test_each_operation(tmp_path: Path, existing: int) -> None:
    tried = set()
    for at in itertools.count(1):
        directory, files = tmp_path / str(at), FailingOnce(at)
        if existing:
            async with durable_audit_log(directory, rules=RULES) as log:
                for _ in range(existing):
                    log.note(denied())
                    await log.flush()
        acknowledged = await work(directory, files)
        if files.failed is None:
            break
        tried.add(files.failed)
        found = verify_log(directory)
        assert found.ok, (files.failed, at, found.fault)
        stored = {
            record.sequence: record.event.request_id
            for record in read_records(directory)
            if isinstance(record.event, AgentEvent)
        }
        assert acknowledged.items() <= stored.items(), (files.failed, at)
        async with durable_audit_log(directory) as log:
            await log.sign_with(new_signer())
            assert log.head.sequence == found.records + 1
        assert verify_log(directory).signed == found.records + 1
    assert tried == set(OPERATIONS)
    assert len(acknowledged) == 4
