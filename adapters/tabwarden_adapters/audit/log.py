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
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from tabwarden.errors import AuditUnavailable, HostReason
from tabwarden.model import AgentEvent, AuditEvent, AuditOutcome
from tabwarden.ports import Clock, ErrorObserver, StatementSigner

from tabwarden_adapters.audit.appender import Appender, Batch, Written
from tabwarden_adapters.audit.chain import MAX_RECORD_BYTES, seal_line
from tabwarden_adapters.audit.checkpoint import key_id
from tabwarden_adapters.audit.checkpoint_writer import CheckpointWriter
from tabwarden_adapters.audit.checkpointer import Checkpointer
from tabwarden_adapters.audit.files import FileOperations
from tabwarden_adapters.audit.pins import Pin
from tabwarden_adapters.audit.records import encode_event, encode_signing
from tabwarden_adapters.audit.recovery import Recovered
from tabwarden_adapters.audit.rules import LogRules
from tabwarden_adapters.audit.segments import Head
from tabwarden_adapters.audit.statistics import AuditStatistics, Meter

if TYPE_CHECKING:
    import outcome

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
        rules: LogRules,
        on_failure: ErrorObserver | None,
        clock: Clock,
    ) -> None:
        self._appender = Appender(opened, files, rules.segment_bytes, rules.segment_ms)
        self._rules = rules
        self._on_failure = on_failure
        self._clock = clock
        self._checkpoints = Checkpointer(rules.checkpoint_records, rules.checkpoint_s, self._not_signed)
        self._directory = opened.directory
        self._token = trio.lowlevel.current_trio_token()
        self._meter = Meter()
        self._head = opened.head  # of everything appended
        self._durable_head = opened.head
        self._wanted = 0  # the highest record that somebody asked to be made durable
        self._pending: list[bytes] = []
        self._pending_hashes: list[str] = []
        self._tickets = 0  # admitted and not settled: each has MAX_RECORD_BYTES kept for it
        self._waiting = 0
        self._in_flight: tuple[Batch, Head, list[str]] | None = None  # being written, up to this record
        self._in_flight_done = trio.Event()
        self._gathering_done = trio.Event()  # set when what is pending now has been tried
        self._dirty = trio.Event()
        self._committer = trio.CancelScope()
        self._committer_gone = False
        self._closing = False
        self._closed = trio.Event()
        self._failure: str | None = None
        self._refused: str | None = None  # why the last record was not taken, though the next one may be
        self.path: Path = opened.path
        self.torn_bytes = opened.torn_bytes  # cut off when it was opened: an interrupted write's remains

    @property
    def head(self) -> Head:
        """Number and hash of the last record appended (durable or not)."""
        return self._head

    @property
    def durable_sequence(self) -> int:
        """The last record known to be on stable storage."""
        return self._durable_head.sequence

    @property
    def failure(self) -> str | None:
        """Why the log is broken, in fixed words and an errno's name; None while it is not."""
        return self._failure

    @property
    def trouble(self) -> str | None:
        """Why nothing can be recorded, or else why nothing can be signed; None while all is well."""
        return self._failure or self._refused or self.checkpoint_problem

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
        sequence = self._append(encode_event(event), self._tickets + 1)
        self._tickets += 1
        return AuditTicket(self, sequence, event.request_id)

    def note(self, event: AuditEvent) -> None:
        """Append a record that needs no ticket.

        Raises `AuditUnavailable` (broken, closed, disk full) or ValueError (an authorization).
        """
        if isinstance(event, AgentEvent) and event.outcome is AuditOutcome.AUTHORIZED:
            raise ValueError("an authorization needs a ticket: admit it")
        self._append(encode_event(event), self._tickets)

    @trio.lowlevel.enable_ki_protection
    def append_outcome(self, event: AgentEvent) -> None:
        """For a ticket only: append into the room that was kept for it."""
        self._append(encode_event(event), self._tickets - 1)
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
                if self._head.sequence == before or self._durable_head.sequence >= sequence:
                    break
                if self._in_flight is not None:
                    break  # the next batch gathers by itself meanwhile
            while self._durable_head.sequence < sequence:
                if self._failure is not None:
                    raise AuditUnavailable(self._failure)
                if self._in_flight is None:
                    self._commit(inline=self._alone_and_quick())
                elif sequence <= self._in_flight[1].sequence:
                    await self._in_flight_done.wait()
                else:
                    await self._gathering_done.wait()
        finally:
            self._waiting -= 1

    async def aclose(self) -> None:
        """Make everything durable, give back room and lock. A second call waits for the first.

        Bounded (twice `CLOSE_S`) and shielded from cancellation. Raises `AuditUnavailable` when records that
        were accepted were lost by this very call; a log that was broken before was reported then.
        """
        if self._closing:
            with trio.CancelScope(deadline=trio.current_time() + 2 * CLOSE_S, shield=True):
                await self._closed.wait()
            return
        self._closing = True
        was_broken = self._failure is not None
        with trio.move_on_after(CLOSE_S, shield=True) as scope, contextlib.suppress(AuditUnavailable):
            await self.flush()
        if scope.cancelled_caught:
            self._break("closing took too long")
        self._committer.cancel()
        await self._checkpoints.close(sign=self._failure is None, limit_s=CLOSE_S)
        if self._in_flight is None:
            # Whole records of a batch whose sync failed may lie behind the durable ones: they stay.
            self._appender.close(trim=self._failure is None)
        # Otherwise a thread hangs in the disk with our descriptor: closing it would hand its number to
        # another file. The end of that thread closes it (`_finish`).
        self._closed.set()
        if self._failure is not None and not was_broken:
            raise AuditUnavailable(self._failure)

    async def sign_with(self, signer: StatementSigner) -> Pin:
        """Have checkpoints signed from now on; return when the first, over all records so far, is stored.

        Reads what no checkpoint covers yet: at first the whole log. Once only. Nothing waits for later ones;
        `checkpoint_problem` says when they cannot be made. Raises `AuditLogDamaged` when the log is not the
        one that was signed before, `AuditUnavailable` when the disk refuses, RuntimeError the second time.
        """
        if self._checkpoints.signing:
            raise RuntimeError("this log is signed already")
        keys = key_id(signer.ed_public, signer.pq_public)
        writer = CheckpointWriter(
            self.path, os.dup(self._directory), signer, self._clock, self._rules.retention
        )
        self._checkpoints.begin(writer)
        durable = self._durable_head
        try:
            place = await trio.to_thread.run_sync(writer.resume, durable, abandon_on_cancel=True)
            self._checkpoints.adopt(place)
            times = self._clock.wall_ms(), self._clock.boottime_ms()
            since = self._append(encode_signing(keys, *times), self._tickets)
            await self.until_durable(since)
            await self._checkpoints.make()
            if self.checkpoint_problem is not None:
                raise AuditUnavailable(f"the audit log cannot be signed: {self.checkpoint_problem}")
        except OSError as error:
            self._checkpoints.forget()
            raise AuditUnavailable(f"the audit log cannot be signed: {error.strerror}") from None
        except BaseException:
            self._checkpoints.forget()
            raise
        return Pin(keys, since)

    @property
    def checkpoint_problem(self) -> str | None:
        """Why the newest checkpoint could not be made; None while all is well."""
        return self._checkpoints.problem

    async def sign_lazily(self) -> None:
        """A background task. Only `open_audit_log` starts it."""
        await self._checkpoints.run()

    async def commit_lazily(self) -> None:
        """The background task. Only `open_audit_log` starts it."""
        try:
            with self._committer:
                while True:
                    await self._dirty.wait()
                    await trio.sleep(self._rules.commit_delay_s)
                    self._dirty = trio.Event()
                    self._want_all()
        finally:
            # Outcomes are settled while a cancelled nursery unwinds: from here on each is committed at once.
            self._committer_gone = True
            self._want_all()

    @trio.lowlevel.enable_ki_protection
    def _append(self, members: bytes, tickets: int) -> int:
        """Append a record, keeping room for the outcomes of `tickets` tickets behind it."""
        if self._failure is not None:
            raise AuditUnavailable(self._failure)
        if self._closing:
            raise AuditUnavailable("the audit log is closed")
        sequence = self._head.sequence + 1
        line, digest = seal_line(sequence, self._head.hash, members)
        if len(line) > MAX_RECORD_BYTES:
            raise AuditUnavailable("the record is too large")
        try:
            self._appender.make_room(len(line), tickets * MAX_RECORD_BYTES)
        except OSError as error:
            self._refused = f"no room for the record: {os.strerror(error.errno or 0)}"
            raise AuditUnavailable(self._refused) from None
        self._refused = None
        self._pending.append(line)
        self._pending_hashes.append(digest)
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
            and not self._appender.full(self._clock.wall_ms())
        )

    def _want_all(self) -> None:
        """Have everything appended so far committed, without waiting for it."""
        self._wanted = self._head.sequence
        if self._wanted > self._durable_head.sequence and self._in_flight is None and self._failure is None:
            self._commit(inline=self._committer_gone)

    @trio.lowlevel.enable_ki_protection
    def _commit(self, *, inline: bool) -> None:
        """Write and sync what is pending: now, or in a thread that ends in `_finish`."""
        data = b"".join(self._pending)
        first = self._head.sequence - len(self._pending) + 1
        hashes, self._pending_hashes = self._pending_hashes, []
        self._pending.clear()
        behind = self._tickets * MAX_RECORD_BYTES
        batch = self._appender.batch(data, first, behind, self._clock.wall_ms())
        self._meter.batch(self._waiting, inline=inline)
        self._in_flight = (batch, self._head, hashes)
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
        batch, head, hashes = self._in_flight
        self._in_flight = None
        self._meter.synced(result.sync_s)
        if self._failure is None and result.problem is None:
            self._appender.wrote(batch)
            self._durable_head = head
            self._checkpoints.advance(hashes, new_segment=batch.new_in_directory is not None)
        self._in_flight_done.set()
        if result.problem is not None:
            self._break(result.problem)
        if self._closed.is_set():
            self._appender.close(trim=False)
        elif self._failure is None and self._durable_head.sequence < self._wanted:
            # One pass of the loop later, so that those who were just served can join again.
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._next)

    def _next(self) -> None:
        if self._in_flight is None and self._failure is None and self._durable_head.sequence < self._wanted:
            self._commit(inline=False)

    def _break(self, problem: str) -> None:
        """Broken for good. Wakes all who wait; tells the host once."""
        if self._failure is not None:
            return
        self._failure = f"the audit log is broken: {problem}; records are refused until it is opened anew"
        self._pending.clear()
        self._pending_hashes.clear()
        self._in_flight_done.set()
        self._gathering_done.set()
        self._tell(HostReason.AUDIT_UNAVAILABLE)

    def _not_signed(self) -> None:
        self._tell(HostReason.AUDIT_NOT_SIGNED)

    def _tell(self, reason: HostReason) -> None:
        if self._on_failure is not None:
            with contextlib.suppress(Exception):
                self._on_failure(reason)
