"""Reading a log while it lies still or while a broker appends to it: checked, in order, from the start."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tabwarden.errors import MalformedError
from tabwarden.model import AuditEvent

from tabwarden_adapters.audit.chain import Link
from tabwarden_adapters.audit.cursor import LogCursor
from tabwarden_adapters.audit.records import decode_event
from tabwarden_adapters.audit.segments import Head, Segment


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One record. `event` is None when a later version wrote a type or a value that this one does not know.

    `members` are all JSON members of the line, for exports and printing; `line` is its exact bytes with the
    newline, which prove the record. Whoever could write the log chose what both hold: escape before printing.
    """

    sequence: int
    hash: str
    file: str
    event: AuditEvent | None
    members: dict[str, Any] = field(repr=False)
    line: bytes = field(repr=False)


class LogReader:
    """Reads on from where it stopped: what ships records elsewhere asks it now and then.

    `after`, `recent` and the errors are those of `LogCursor`. `head` is the last record read: keep it to go
    on after a restart.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, after: Head | None = None, recent: bool = False
    ) -> None:
        self._cursor = LogCursor(path, after=after, recent=recent)

    @property
    def head(self) -> Head | None:
        """None before the first read."""
        return self._cursor.head

    def read(self) -> Iterator[AuditRecord]:
        """What was appended since the last call, oldest first. Blocking; use it up."""
        for segment, link in self._cursor.links():
            yield record_of(segment, link)


def read_records(path: str | os.PathLike[str]) -> Iterator[AuditRecord]:
    """The records of the log in folder `path`, oldest first. Blocking; takes no lock.

    Stops silently before an incomplete last line: a broker may be writing it just now.

    Raises `AuditLogDamaged` at the first fault, `ConfigurationError` when the folder or a file is open to
    others, `FileNotFoundError` when there is no such folder.
    """
    yield from LogReader(path).read()


def record_of(segment: Segment, link: Link) -> AuditRecord:
    """What a line says."""
    event: AuditEvent | None = None
    # Later versions may have codes and members that we do not know; the chain holds all the same.
    with contextlib.suppress(MalformedError):
        event = decode_event(link.members)
    return AuditRecord(link.sequence, link.hash, segment.name, event, link.members, link.line)
