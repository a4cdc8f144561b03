"""Opening a durable log, in a nursery of yours or for the length of a block."""

import contextlib
import os
from collections.abc import AsyncIterator

import trio
from tabwarden.clock import SystemClock
from tabwarden.ports import Clock, ErrorObserver

from tabwarden_adapters.audit.files import FileOperations, PosixFiles
from tabwarden_adapters.audit.log import DurableAuditLog
from tabwarden_adapters.audit.recovery import recover
from tabwarden_adapters.audit.rules import LogRules


async def open_audit_log(
    nursery: trio.Nursery,
    directory: str | os.PathLike[str],
    *,
    rules: LogRules | None = None,
    on_failure: ErrorObserver | None = None,
    files: FileOperations | None = None,
    clock: Clock | None = None,
) -> DurableAuditLog:
    """Open the log in `directory` (made when absent) or begin one; its background tasks run in `nursery`.

    Call `aclose` when done. `on_failure` is told from the event loop, once when the log breaks and each time
    checkpoints begin to fail; it must not block. When `nursery` is cancelled first, the log keeps working,
    committing each record at once.

    Raises `ConfigurationError` (folder not private, in use by another broker), `AuditLogDamaged` (says which
    file and record), `AuditUnavailable` (the disk refuses).
    """
    operations = PosixFiles() if files is None else files
    opened = await trio.to_thread.run_sync(recover, directory, operations)
    log = DurableAuditLog(
        opened,
        operations,
        rules=rules or LogRules(),
        on_failure=on_failure,
        clock=clock or SystemClock(),
    )
    nursery.start_soon(log.commit_lazily)
    nursery.start_soon(log.sign_lazily)
    return log


@contextlib.asynccontextmanager
async def durable_audit_log(
    directory: str | os.PathLike[str],
    *,
    rules: LogRules | None = None,
    on_failure: ErrorObserver | None = None,
    files: FileOperations | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[DurableAuditLog]:
    """`open_audit_log` with a nursery of its own; leaving the block closes the log."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            log = await open_audit_log(
                nursery, directory, rules=rules, on_failure=on_failure, files=files, clock=clock
            )
            try:
                yield log
            finally:
                await log.aclose()
        except Exception as error:
            # Past the nursery it would reach the caller wrapped in a group.
            failure = error
    if failure is not None:
        raise failure
