"""Events to record, and a file system that fails when told to."""

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tabwarden.errors import Code
from tabwarden.model import AgentEvent, AuditOutcome
from tabwarden_adapters.audit import LogRules, PosixFiles, durable_audit_log


def authorized(request_id: str = "r", **members: Any) -> AgentEvent:
    return AgentEvent(
        outcome=AuditOutcome.AUTHORIZED,
        request_id=request_id,
        wall_ms=1_800_000_000_000,
        boot_ms=5_000,
        action="read",
        scope="read",
        session_id="00000000-0000-0000-0000-000000000001",
        principal_id="agent",
        generation=1,
        **members,
    )


def completed(request_id: str = "r") -> AgentEvent:
    return AgentEvent(
        outcome=AuditOutcome.COMPLETED,
        request_id=request_id,
        wall_ms=1_800_000_000_001,
        boot_ms=5_001,
        action="read",
        scope="read",
        committed=False,
    )


def denied(request_id: str = "r") -> AgentEvent:
    return AgentEvent(
        outcome=AuditOutcome.DENIED,
        request_id=request_id,
        wall_ms=1_800_000_000_002,
        boot_ms=5_002,
        code=Code.POLICY_DENIED,
        rule="scopes.not-enabled",
    )


async def fill(directory: Path, count: int, *, segment_bytes: int = 1 << 20) -> None:
    """Append `count` denials and close."""
    async with durable_audit_log(directory, rules=LogRules(segment_bytes=segment_bytes)) as log:
        for number in range(count):
            log.note(denied(f"r{number}"))
            if segment_bytes < 1 << 20:
                await log.flush()


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("audit-*.jsonl"))


def lines(directory: Path) -> list[bytes]:
    return b"".join(path.read_bytes() for path in segments(directory)).splitlines(keepends=True)


@dataclass
class FaultyFiles(PosixFiles):
    """The real file system, with faults. Implements `FileOperations`.

    `write_takes` limits what one write takes (then ENOSPC when 0); `room` is how many bytes may be
    allocated in all; of a write's first `lies` bytes it says that they were written; the hooks run in front
    of the real call and may raise.
    """

    lies: int = 0

    write_takes: int | None = None
    room: int | None = None
    before_write: Callable[[], None] = field(default=lambda: None)
    before_sync: Callable[[], None] = field(default=lambda: None)
    syncs: int = 0
    directory_syncs: int = 0
    sync_threads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def allocate(self, file: int, offset: int, length: int) -> None:
        if self.room is not None:
            if length > self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= length
        super().allocate(file, offset, length)

    def write(self, file: int, data: memoryview) -> int:
        self.before_write()
        if self.lies:
            taken, self.lies = self.lies, 0
            return taken
        if self.write_takes is None:
            return super().write(file, data)
        return super().write(file, data[: self.write_takes])

    def sync(self, file: int) -> None:
        self.before_sync()
        super().sync(file)
        self.syncs += 1
        self.sync_threads.add(threading.current_thread().name)

    def sync_directory(self, directory: int) -> None:
        super().sync_directory(directory)
        self.directory_syncs += 1
