"""Checking a whole log off line: what follows from what, what was signed, and where that first fails."""

import contextlib
import os
from dataclasses import dataclass

from tabwarden.errors import MalformedError
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.audit.chain import MAX_RECORD_BYTES, Link, read_line
from tabwarden_adapters.audit.checkpoint_files import all_checkpoints
from tabwarden_adapters.audit.clock_steps import ClockStep, StepFinder
from tabwarden_adapters.audit.cursor import LogCursor, RecordsDropped
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.pins import Pin, Pins
from tabwarden_adapters.audit.records import signing_key_id
from tabwarden_adapters.audit.segments import Head, list_segments
from tabwarden_adapters.audit.signatures import SignatureCheck

_TRIES = 5  # a broker drops segments once a minute at the most, but then may drop the one that is next


@dataclass(frozen=True, slots=True)
class Verification:
    """`head` is the last good record (number 0: none), `fault` the first thing wrong behind it, or None.

    `dropped` records were taken by retention, which a checkpoint says; `signed` is the last record that one
    of the `checkpoints` covers; `keys` signed it (whose they are is only known when pins were given);
    `clock_steps` are places where wall time was set, which is no fault.
    """

    head: Head
    fault: LocatedFault | None
    dropped: int = 0
    signed: int = 0
    checkpoints: int = 0
    keys: tuple[Pin, ...] = ()
    clock_steps: tuple[ClockStep, ...] = ()

    @property
    def records(self) -> int:
        """The number of the last record that is proven; the first is `dropped` + 1."""
        return self.head.sequence

    @property
    def ok(self) -> bool:
        return self.fault is None


def verify_log(
    path: str | os.PathLike[str], *, known: Head | None = None, pins: Pins | None = None
) -> Verification:
    """Check every record and checkpoint in folder `path`. Blocking; takes no lock.

    `known` is a head noted elsewhere before: the log must still contain it. `pins` are the keys noted
    elsewhere: every checkpoint must be signed by one of them, and each must have signed one. Without either,
    a log that was cut at its end or rewritten, checkpoints and all, cannot be told from a good one.

    Raises `ConfigurationError` and `FileNotFoundError` as `read_records`.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(RecordsDropped):
            return _verify_once(path, known, pins)
    return _verify_once(path, known, pins)


def _verify_once(path: str | os.PathLike[str], known: Head | None, pins: Pins | None) -> Verification:
    directory = open_private_directory(path)
    try:
        # Before the records: a broker may be adding to both, and a checkpoint follows its records.
        check = SignatureCheck(all_checkpoints(directory))
    finally:
        os.close(directory)
    cursor = LogCursor(path)
    heads = [head for head in (known, pins.head if pins else None) if head is not None and head.sequence]
    keys: list[Pin] = []
    steps = StepFinder()
    last = Head()
    fault: LocatedFault | None = None
    file, seen = "-", set[Head]()
    try:
        for segment, link in cursor.links():
            file = segment.name
            if check.edge is None:
                check.begin(cursor.base)
            check.record(link, segment.name, cursor.line)
            last = Head(link.sequence, link.hash)
            seen.update(head for head in heads if head == last)
            steps.record(link)
            keys.extend(_announced(link))
        if check.edge is None:
            check.begin(cursor.base)
        base = Head(cursor.base.size, cursor.base.head)
        last = max(last, base, key=lambda head: head.sequence)
        seen.update(head for head in heads if head == base)
        check.end(file, cursor.line)
        for head in heads:
            if head not in seen:
                raise AuditLogDamaged(_head_missing(head, file, cursor.base.size))
        if pins is not None:
            check.pinned(pins.keys, keys)
    except AuditLogDamaged as damage:
        fault = damage.fault
        if fault.kind is Fault.REMOVED and _exists(path, fault.sequence):
            detail = "the record that belongs here stands elsewhere"
            fault = LocatedFault(Fault.SWAPPED, fault.file, fault.line, fault.sequence, detail)
    return Verification(
        last, fault, cursor.base.size, check.signed, check.count, check.keys(keys), tuple(steps.found)
    )


def _announced(link: Link) -> list[Pin]:
    announced = signing_key_id(link.members)
    return [] if announced is None else [Pin(announced, link.sequence)]


def _head_missing(head: Head, file: str, dropped: int) -> LocatedFault:
    detail = "the log does not contain the record that was noted"
    if head.sequence < dropped:
        detail = f"retention has dropped the records up to {dropped}, so a later head must be noted"
    return LocatedFault(Fault.HEAD_MISSING, file, 0, head.sequence, detail)


def _exists(path: str | os.PathLike[str], sequence: int) -> bool:
    """Whether a whole record with this number stands anywhere in the log."""
    directory = open_private_directory(path)
    try:
        for segment in list_segments(directory):
            with os.fdopen(open_private_file(segment.name, os.O_RDONLY, directory=directory), "rb") as stream:
                while line := stream.readline(MAX_RECORD_BYTES + 1):
                    try:
                        link = read_line(line)
                    except MalformedError:
                        continue
                    if link.hash_is_right and link.sequence == sequence:
                        return True
    finally:
        os.close(directory)
    return False
