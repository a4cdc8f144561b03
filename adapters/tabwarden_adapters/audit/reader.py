"""Reading a log while it lies still or while a broker appends to it: checked, in order, from the start."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tabwarden.errors import MalformedError
from tabwarden.model import AuditEvent
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.audit.chain import Link
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.records import decode_event
from tabwarden_adapters.audit.segments import Head, Segment, SegmentWalk, list_segments


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One record. `event` is None when a later version wrote a type or a value that this one does not know.

    `members` are all JSON members of the line, for exports and printing.
    """

    sequence: int
    hash: str
    file: str
    event: AuditEvent | None
    members: dict[str, Any] = field(repr=False)


def read_records(path: str | os.PathLike[str]) -> Iterator[AuditRecord]:
    """The records of the log in folder `path`, oldest first. Blocking; takes no lock.

    Stops silently before an incomplete last line: a broker may be writing it just now.

    Raises `AuditLogDamaged` at the first fault, `ConfigurationError` when the folder or a file is open to
    others, `FileNotFoundError` when there is no such folder.
    """
    for segment, link in read_links(path):
        event: AuditEvent | None = None
        # Later versions may have codes and members that we do not know; the chain holds all the same.
        with contextlib.suppress(MalformedError):
            event = decode_event(link.members)
        yield AuditRecord(link.sequence, link.hash, segment.name, event, link.members)


def read_links(path: str | os.PathLike[str]) -> Iterator[tuple[Segment, Link]]:
    """As `read_records`, without looking at what the records say."""
    directory = open_private_directory(path)
    try:
        segments = list_segments(directory)
        head = Head()
        for segment in segments:
            if segment.first != head.sequence + 1:
                detail = f"records {head.sequence + 1} to {segment.first - 1} should come before it"
                place = LocatedFault(Fault.SEGMENT_MISSING, segment.name, 1, head.sequence + 1, detail)
                raise AuditLogDamaged(place)
            file = open_private_file(segment.name, os.O_RDONLY, directory=directory)
            try:
                walk = SegmentWalk(file, segment, head, last=segment == segments[-1])
                for link in walk:
                    yield segment, link
                head = walk.head
            finally:
                os.close(file)
    finally:
        os.close(directory)
