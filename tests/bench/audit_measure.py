"""The durable audit log beside one fdatasync for each record: records a second, and how long one takes.

Both sides encode, chain and append the same records to files of the same folder. Blocks of the kinds
alternate, so that a noisy moment falls on all of them alike.
"""

import os
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trio
from tabwarden.model import AgentEvent, AuditOutcome
from tabwarden.protocol.primitives import Ed25519Signer, NativeProvider
from tabwarden.protocol.statement import InstanceSigner
from tabwarden_adapters.audit import DurableAuditLog, durable_audit_log
from tabwarden_adapters.audit.chain import GENESIS, seal_line
from tabwarden_adapters.audit.records import encode_event

from tests.bench.load import percentile
from tests.bench.results import Row

WRITERS = 64
TURN = 8
BLOCK_S, ROUNDS = 0.25, 8
QUICK_BLOCK_S, QUICK_ROUNDS = 0.1, 2


def _samples() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class Kind:
    """All blocks of one kind. Times in seconds."""

    samples: "array[float]" = field(default_factory=_samples)
    records: int = 0
    seconds: float = 0.0

    @property
    def p50(self) -> float:
        """Of one record, from its event to stable storage."""
        return percentile(sorted(self.samples), 0.5)

    @property
    def rate(self) -> float:
        """Durable records a second."""
        return self.records / self.seconds


@dataclass(slots=True)
class AuditFindings:
    """`bare`: append + fdatasync of bytes that are ready. `each`: one fdatasync for each record of 64
    writers. `one` and `many`: the log with one writer and with 64. `syncs` is what those 64 took a record."""

    bare: Kind = field(default_factory=Kind)
    each: Kind = field(default_factory=Kind)
    one: Kind = field(default_factory=Kind)
    many: Kind = field(default_factory=Kind)
    syncs: float = 0.0


def event(outcome: AuditOutcome, request_id: str) -> AgentEvent:
    """A record as a call makes it."""
    return AgentEvent(
        outcome=outcome,
        request_id=request_id,
        wall_ms=1_800_000_000_000,
        boot_ms=5_000,
        action="read",
        scope="read",
        rule="static",
        session_id="00000000-0000-4000-8000-000000000001",
        principal_id="agent",
        generation=1,
        trace_id="0" * 32,
        span_id="0" * 16,
    )


class EachSynced:
    """A chained log that syncs each record by itself, at once."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self._previous, self._sequence = GENESIS, 0

    def record(self, one: AgentEvent) -> None:
        self._sequence += 1
        line, self._previous = seal_line(self._sequence, self._previous, encode_event(one))
        os.write(self._file, line)
        os.fdatasync(self._file)

    def bare(self, line: bytes) -> None:
        os.write(self._file, line)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


async def measure_audit(folder: Path, quick: bool) -> AuditFindings:
    """Every block of every kind. The log signs its checkpoints meanwhile, as a broker's does."""
    found = AuditFindings()
    block_s, rounds = (QUICK_BLOCK_S, QUICK_ROUNDS) if quick else (BLOCK_S, ROUNDS)
    await trio.Path(folder).mkdir(mode=0o700)
    bare, each = EachSynced(folder / "bare"), EachSynced(folder / "each")
    async with durable_audit_log(folder / "one") as one, durable_audit_log(folder / "many") as many:
        for log in (one, many):
            await log.sign_with(InstanceSigner(Ed25519Signer(), NativeProvider().signer()))
        for number in range(rounds):
            parts: list[Callable[[], object]] = [
                lambda: _turns(found, bare, one, block_s),
                lambda: _each(found.each, each, block_s),
                lambda: _many(found, many, block_s),
            ]
            for part in parts if number % 2 == 0 else reversed(parts):
                await part()  # type: ignore[misc]
    bare.close()
    each.close()
    return found


async def _turns(found: AuditFindings, bare: EachSynced, log: DurableAuditLog, block_s: float) -> None:
    """A few of one kind, a few of the other: the disk of a busy machine is another one a moment later."""
    line = seal_line(1, GENESIS, encode_event(event(AuditOutcome.AUTHORIZED, "request")))[0]
    end = time.perf_counter() + block_s
    while time.perf_counter() < end:
        for _ in range(TURN):
            begun = time.perf_counter()
            bare.bare(line)
            found.bare.samples.append(time.perf_counter() - begun)
        for _ in range(TURN):
            begun = time.perf_counter()
            ticket = log.admit(event(AuditOutcome.AUTHORIZED, "request"))
            await ticket.durable()
            found.one.samples.append(time.perf_counter() - begun)
            ticket.settle(event(AuditOutcome.COMPLETED, "request"))
    await log.flush()


async def _each(kind: Kind, log: EachSynced, block_s: float) -> None:
    begun = time.perf_counter()
    end = begun + block_s

    async def writer() -> None:
        while time.perf_counter() < end:
            log.record(event(AuditOutcome.AUTHORIZED, "request"))
            log.record(event(AuditOutcome.COMPLETED, "request"))
            kind.records += 2
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(WRITERS):
            nursery.start_soon(writer)
    kind.seconds += time.perf_counter() - begun


async def _many(found: AuditFindings, log: DurableAuditLog, block_s: float) -> None:
    kind, before = found.many, log.statistics
    begun = time.perf_counter()
    end = begun + block_s

    async def writer() -> None:
        while time.perf_counter() < end:
            ticket = log.admit(event(AuditOutcome.AUTHORIZED, "request"))
            await ticket.durable()
            ticket.settle(event(AuditOutcome.COMPLETED, "request"))

    async with trio.open_nursery() as nursery:
        for _ in range(WRITERS):
            nursery.start_soon(writer)
    await log.flush()
    kind.seconds += time.perf_counter() - begun
    after = log.statistics
    kind.records += after.records - before.records
    found.syncs = after.fdatasyncs / after.records


def audit_figures(found: AuditFindings) -> list[Row]:
    """Every measured figure, without goals."""
    return [
        Row("audit-bare-p50", found.bare.p50 * 1e3, "ms"),
        Row("audit-one-p50", found.one.p50 * 1e3, "ms"),
        Row("audit-each-rate", found.each.rate, "records/s"),
        Row("audit-many-rate", found.many.rate, "records/s"),
        Row("audit-many-syncs", found.syncs, "syncs/record"),
    ]


def audit_line(found: AuditFindings) -> str:
    """For people."""
    return (
        f"audit log: one writer p50 {found.one.p50 * 1e3:.3f} ms (bare append + fdatasync "
        f"{found.bare.p50 * 1e3:.3f} ms); 64 writers {found.many.rate:.0f} records/s with {found.syncs:.3f} "
        f"syncs each (one sync each: {found.each.rate:.0f} records/s)"
    )


def audit_goals(found: AuditFindings) -> list[Row]:
    """The promises, each judged by a ratio within this one run."""
    return [
        Row("audit-one-writer-p50", found.one.p50 / found.bare.p50, "x append+fdatasync", "<= 1.3"),
        Row("audit-64-writers-rate", found.many.rate / found.each.rate, "x one sync each", ">= 10"),
    ]
