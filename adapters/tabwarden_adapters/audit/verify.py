"""Checking a whole log off line: how many records follow from one another, and where that first fails."""

import os
from dataclasses import dataclass

from tabwarden.errors import MalformedError
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.audit.chain import MAX_RECORD_BYTES, read_line
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.reader import read_links
from tabwarden_adapters.audit.segments import Head, list_segments


@dataclass(frozen=True, slots=True)
class Verification:
    """`head` is the last good record (number 0: none), `fault` the first thing wrong behind it, or None."""

    head: Head
    fault: LocatedFault | None

    @property
    def records(self) -> int:
        """How many records are proven, counted from the first."""
        return self.head.sequence

    @property
    def ok(self) -> bool:
        return self.fault is None


def verify_log(path: str | os.PathLike[str], *, known: Head | None = None) -> Verification:
    """Check every record of every segment in folder `path`. Blocking; takes no lock.

    `known` is a head noted elsewhere before: the log must still contain it. Without one, a log that was cut
    at its end or rewritten as a whole cannot be told from a good one.

    Raises `ConfigurationError` and `FileNotFoundError` as `read_records`.
    """
    head = Head()
    file = "-"
    fault: LocatedFault | None = None
    known_seen = known is None or known == head
    try:
        for segment, link in read_links(path):
            head = Head(link.sequence, link.hash)
            file = segment.name
            known_seen = known_seen or head == known
    except AuditLogDamaged as damage:
        fault = damage.fault
        if fault.kind is Fault.REMOVED and _exists(path, fault.sequence):
            detail = "the record that belongs here stands elsewhere"
            fault = LocatedFault(Fault.SWAPPED, fault.file, fault.line, fault.sequence, detail)
    if fault is None and known is not None and not known_seen:
        detail = "the log does not contain the record that was noted"
        fault = LocatedFault(Fault.HEAD_MISSING, file, 0, known.sequence, detail)
    return Verification(head, fault)


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
