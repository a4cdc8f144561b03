"""The durable audit log: records in order, chained, on stable storage before an action begins.

How records reach the disk. `admit`, `settle` and `note` only append to memory (room on the disk is kept at
once). `durable` needs them written: a caller alone writes and syncs on the event loop, as long as the disk
has been quick, because a thread hop costs as much as the sync itself; when several wait, one thread writes
and syncs everything gathered so far, and the next batch gathers meanwhile. What nobody waits for is
committed by a background task soon after.

A failed write or sync breaks the log for good: after a failed sync nobody knows what the page cache and the
disk hold. Only opening it anew, which reads the disk, says what was kept.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from tabwarden.errors import AuditUnavailable, HostReason
from tabwarden.model import AgentEvent, AuditEvent, AuditOutcome
from tabwarden.ports import ErrorObserver

from tabwarden_adapters.audit.appender import Appender, Batch, Written
from tabwarden_adapters.audit.chain import MAX_RECORD_BYTES, seal_line
from tabwarden_adapters.audit.files import FileOperations, PosixFiles
from tabwarden_adapters.audit.records import encode_event
from tabwarden_adapters.audit.recovery import Recovered, recover
from tabwarden_adapters.audit.segments import Head
from tabwarden_adapters.audit.statistics import AuditStatistics, Meter

if TYPE_CHECKING:
    import outcome

SEGMENT_BYTES = 64 * 1024 * 1024  # some 100,000 records: a file that tools still open with ease
COMMIT_DELAY_S = 0.05  # how long an outcome may wait for company: far below what a person notices
CLOSE_S = 5.0  # how long closing waits for a disk that does not answer
GATHER_TURNS = 8  # turns of the loop, while each brings more records: some 100 us each
INLINE_SYNC_S = 0.001  # a loop that stands still for longer delays every other call noticeably


class AuditTicket:
    """An authorization on record, with room kept for its outcome. See `tabwarden.ports.AuditTicket`."""

    __slots__ = ("_log", "_request_id", "_settled", "sequence")

    def __init__(self, log: "DurableAuditLog", sequence: int, request_id: str) -> None:
        self._log = log
        self._request_id = request_id
        self._settled = False
        self.sequence = sequence

    async def durable(self) -> None:
        """Return when the authorization is on stable storage; raise `AuditUnavailable` if it cannot be.

        Cancelling it changes nothing for the record or for others: it is committed all the same.
        """
        await self._log.until_durable(self.sequence)

    def settle(self, event: AgentEvent) -> None:
        """Append the terminal outcome. Exactly once; never blocks.

        Raises RuntimeError when settled before, ValueError for the outcome of another request or one that
        is not terminal, `AuditUnavailable` when the log is broken or closed.
        """
        if self._settled:
            raise RuntimeError("this ticket was settled before")
        if event.outcome is AuditOutcome.AUTHORIZED:
            raise ValueError("an authorization is not a terminal outcome")
        if event.request_id != self._request_id:
            raise ValueError("the outcome is of another request")
        self._log.append_outcome(event)
        self._settled = True


class DurableAuditLog:
    """Implements `tabwarden.ports.AuditSink`. Made by `open_audit_log` or `durable_audit_log` only.

    Belongs to one trio event loop; none of its methods may be called from another thread.
    """

    def __init__(
        self,
        opened: Recovered,
        files: FileOperations,
        *,
        segment_bytes: int,
        commit_delay_s: float,
        on_failure: ErrorObserver | None,
    ) -> None:
        self._appender = Appender(opened, files, segment_bytes)
        self._commit_delay_s = commit_delay_s
        self._on_failure = on_failure
        self._token = trio.lowlevel.current_trio_token()
        self._meter = Meter()
        self._head = opened.head  # of everything appended
        self._durable = opened.head.sequence
        self._wanted = 0  # the highest record that somebody asked to be made durable
        self._pending: list[bytes] = []
        self._tickets = 0  # admitted and not settled: each has MAX_RECORD_BYTES kept for it
        self._waiting = 0
        self._in_flight: tuple[Batch, int] | None = None  # written by a thread now, up to this record
        self._in_flight_done = trio.Event()
        self._gathering_done = trio.Event()  # set when what is pending now has been tried
        self._dirty = trio.Event()
        self._committer = trio.CancelScope()
        self._committer_gone = False
        self._closing = False
        self._closed = trio.Event()
        self._failure: str | None = None
        self.path: Path = opened.path
        self.torn_bytes = opened.torn_bytes  # cut off when it was opened: an interrupted write's remains

    @property
    def head(self) -> Head:
        """Number and hash of the last record appended (durable or not)."""
        return self._head

    @property
    def durable_sequence(self) -> int:
        """The last record known to be on stable storage."""
        return self._durable

    @property
    def failure(self) -> str | None:
        """Why the log is broken, in fixed words and an errno's name; None while it is not."""
        return self._failure

    @property
    def statistics(self) -> AuditStatistics:
        """Counters since it was opened."""
        return self._meter.snapshot()

    @trio.lowlevel.enable_ki_protection
    def admit(self, event: AgentEvent) -> AuditTicket:
        """Append an `authorized` event and keep room for its outcome.

        Raises `AuditUnavailable` (broken, closed, disk full) or ValueError (another outcome).
        """
        if event.outcome is not AuditOutcome.AUTHORIZED:
            raise ValueError("only an authorization is admitted; note() takes the others")
        sequence = self._append(event, self._tickets + 1)
        self._tickets += 1
        return AuditTicket(self, sequence, event.request_id)

    def note(self, event: AuditEvent) -> None:
        """Append a record that needs no ticket.

        Raises `AuditUnavailable` (broken, closed, disk full) or ValueError (an authorization).
        """
        if isinstance(event, AgentEvent) and event.outcome is AuditOutcome.AUTHORIZED:
            raise ValueError("an authorization needs a ticket: admit it")
        self._append(event, self._tickets)

    @trio.lowlevel.enable_ki_protection
    def append_outcome(self, event: AgentEvent) -> None:
        """For a ticket only: append into the room that was kept for it."""
        self._append(event, self._tickets - 1)
        self._tickets -= 1

    async def flush(self) -> None:
        """Return when everything appended so far is on stable storage, or raise `AuditUnavailable`."""
        await self.until_durable(self._head.sequence)

    async def until_durable(self, sequence: int) -> None:
        """Return when record number `sequence` is on stable storage, or raise `AuditUnavailable`."""
        self._wanted = max(self._wanted, sequence)
        self._waiting += 1
        try:
            # Everybody who is about to ask gets to do so first: one batch then serves them all.
            for _ in range(GATHER_TURNS):
                before = self._head.sequence
                await trio.lowlevel.checkpoint()
                if self._head.sequence == before or self._durable >= sequence:
                    break
            while self._durable < sequence:
                if self._failure is not None:
                    raise AuditUnavailable(self._failure)
                if self._in_flight is None:
                    self._commit(inline=self._alone_and_quick())
                elif sequence <= self._in_flight[1]:
                    await self._in_flight_done.wait()
                else:
                    await self._gathering_done.wait()
        finally:
            self._waiting -= 1

    async def aclose(self) -> None:
        """Make everything durable, give back room and lock. A second call waits for the first.

        Bounded (`CLOSE_S`) and shielded from cancellation. Raises `AuditUnavailable` when records that were
        accepted were lost by this very call; a log that was broken before was reported then.
        """
        if self._closing:
            with trio.CancelScope(deadline=trio.current_time() + CLOSE_S, shield=True):
                await self._closed.wait()
            return
        self._closing = True
        was_broken = self._failure is not None
        with trio.move_on_after(CLOSE_S, shield=True) as scope, contextlib.suppress(AuditUnavailable):
            await self.flush()
        if scope.cancelled_caught:
            self._break("closing took too long")
        self._committer.cancel()
        if self._in_flight is None:
            # Whole records of a batch whose sync failed may lie behind the durable ones: they stay.
            self._appender.close(trim=self._failure is None)
        # Otherwise a thread hangs in the disk with our descriptor: closing it would hand its number to
        # another file. The end of that thread closes it (`_finish`).
        self._closed.set()
        if self._failure is not None and not was_broken:
            raise AuditUnavailable(self._failure)

    async def commit_lazily(self) -> None:
        """The background task. Only `open_audit_log` starts it."""
        try:
            with self._committer:
                while True:
                    await self._dirty.wait()
                    await trio.sleep(self._commit_delay_s)
                    self._dirty = trio.Event()
                    self._want_all()
        finally:
            # Outcomes are settled while a cancelled nursery unwinds: from here on each is committed at once.
            self._committer_gone = True
            self._want_all()

    @trio.lowlevel.enable_ki_protection
    def _append(self, event: AuditEvent, tickets: int) -> int:
        """Append `event`, keeping room for the outcomes of `tickets` tickets behind it."""
        if self._failure is not None:
            raise AuditUnavailable(self._failure)
        if self._closing:
            raise AuditUnavailable("the audit log is closed")
        sequence = self._head.sequence + 1
        line, digest = seal_line(sequence, self._head.hash, encode_event(event))
        if len(line) > MAX_RECORD_BYTES:
            raise AuditUnavailable("the record is too large")
        try:
            self._appender.make_room(len(line), tickets * MAX_RECORD_BYTES)
        except OSError as error:
            raise AuditUnavailable(f"no room for the record: {os.strerror(error.errno or 0)}") from None
        self._pending.append(line)
        self._appender.end += len(line)
        self._head = Head(sequence, digest)
        self._meter.records += 1
        if self._committer_gone:
            self._want_all()
        elif not self._dirty.is_set():
            self._dirty.set()
        return sequence

    def _alone_and_quick(self) -> bool:
        return (
            self._waiting == 1
            and self._meter.average_waiting < 1.5
            and self._meter.average_sync_s < INLINE_SYNC_S
            and not self._appender.full
        )

    def _want_all(self) -> None:
        """Have everything appended so far committed, without waiting for it."""
        self._wanted = self._head.sequence
        if self._wanted > self._durable and self._in_flight is None and self._failure is None:
            self._commit(inline=self._committer_gone)

    @trio.lowlevel.enable_ki_protection
    def _commit(self, *, inline: bool) -> None:
        """Write and sync what is pending: now, or in a thread that ends in `_finish`."""
        data = b"".join(self._pending)
        first, last = self._head.sequence - len(self._pending) + 1, self._head.sequence
        self._pending.clear()
        batch = self._appender.batch(data, first, self._tickets * MAX_RECORD_BYTES)
        self._meter.batch(self._waiting, inline=inline)
        self._in_flight = (batch, last)
        self._in_flight_done, self._gathering_done = self._gathering_done, trio.Event()
        if not inline:
            try:
                trio.lowlevel.start_thread_soon(batch.write, self._deliver)
            except RuntimeError:  # no thread to be had; the records matter more than the loop's pace
                inline = True
        if inline:
            self._finish(batch.write())

    def _deliver(self, written: "outcome.Outcome[Written]") -> None:
        """Runs in the worker thread."""
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._finish, written.unwrap())

    def _finish(self, result: Written) -> None:
        """The batch in flight has ended. Must not raise: trio itself may be the caller."""
        assert self._in_flight is not None  # noqa: S101 - only `_commit` leads here
        batch, last = self._in_flight
        self._in_flight = None
        self._meter.synced(result.sync_s)
        if self._failure is None and result.problem is None:
            self._appender.wrote(batch)
            self._durable = last
        self._in_flight_done.set()
        if result.problem is not None:
            self._break(result.problem)
        if self._closed.is_set():
            self._appender.close(trim=False)
        elif self._failure is None and self._durable < self._wanted:
            # One pass of the loop later, so that those who were just served can join again.
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._next)

    def _next(self) -> None:
        if self._in_flight is None and self._failure is None and self._durable < self._wanted:
            self._commit(inline=False)

    def _break(self, problem: str) -> None:
        """Broken for good. Wakes all who wait; tells the host once."""
        if self._failure is not None:
            return
        self._failure = f"the audit log is broken: {problem}; records are refused until it is opened anew"
        self._pending.clear()
        self._in_flight_done.set()
        self._gathering_done.set()
        if self._on_failure is not None:
            with contextlib.suppress(Exception):
                self._on_failure(HostReason.AUDIT_UNAVAILABLE)


async def open_audit_log(
    nursery: trio.Nursery,
    directory: str | os.PathLike[str],
    *,
    segment_bytes: int = SEGMENT_BYTES,
    commit_delay_s: float = COMMIT_DELAY_S,
    on_failure: ErrorObserver | None = None,
    files: FileOperations | None = None,
) -> DurableAuditLog:
    """Open the log in `directory` (made when absent) or begin one; its background task runs in `nursery`.

    Call `aclose` when done. `on_failure` is told once, from the event loop, when the log breaks; it must not
    block. When `nursery` is cancelled first, the log keeps working, committing each record at once.

    Raises `ConfigurationError` (folder not private, in use by another broker), `AuditLogDamaged` (says which
    file and record), `AuditUnavailable` (the disk refuses).
    """
    operations = PosixFiles() if files is None else files
    opened = await trio.to_thread.run_sync(recover, directory, operations)
    log = DurableAuditLog(
        opened,
        operations,
        segment_bytes=segment_bytes,
        commit_delay_s=commit_delay_s,
        on_failure=on_failure,
    )
    nursery.start_soon(log.commit_lazily)
    return log


@contextlib.asynccontextmanager
async def durable_audit_log(
    directory: str | os.PathLike[str],
    *,
    segment_bytes: int = SEGMENT_BYTES,
    commit_delay_s: float = COMMIT_DELAY_S,
    on_failure: ErrorObserver | None = None,
    files: FileOperations | None = None,
) -> AsyncIterator[DurableAuditLog]:
    """`open_audit_log` with a nursery of its own; leaving the block closes the log."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            log = await open_audit_log(
                nursery,
                directory,
                segment_bytes=segment_bytes,
                commit_delay_s=commit_delay_s,
                on_failure=on_failure,
                files=files,
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
