"""Segment files: their names, their order, and a walk along the chain of one of them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tabwarden.errors import MalformedError
from tabwarden.private_files import open_private_file

from tabwarden_adapters.audit.chain import GENESIS, MAX_RECORD_BYTES, VERSION, Link, read_line
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault

_NAME = re.compile(r"audit-(\d{16})\.jsonl")


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file of the log, named by the number of its first record, so that names sort as records do."""

    first: int

    @property
    def name(self) -> str:
        return f"audit-{self.first:016d}.jsonl"


@dataclass(frozen=True, slots=True)
class Head:
    """A place in the chain: the number and hash of a record. Keep one elsewhere to notice a rewritten log."""

    sequence: int = 0
    hash: str = GENESIS


def list_segments(directory: int, dropped: int = 0) -> list[Segment]:
    """The segments in the folder with this descriptor, in order. Other files are left alone.

    `dropped` is the last record that retention took: older files are what a crash left of that work.
    """
    matches = (_NAME.fullmatch(name) for name in os.listdir(directory))
    found = sorted(Segment(int(match[1])) for match in matches if match)
    return [segment for segment in found if segment.first > dropped]


def last_line(directory: int, segment: Segment) -> bytes:
    """What stands behind the last newline but one: a whole record, if the segment ends with one."""
    file = open_private_file(segment.name, os.O_RDONLY, directory=directory)
    try:
        size = os.fstat(file).st_size
        tail = os.pread(file, MAX_RECORD_BYTES + 1, max(0, size - MAX_RECORD_BYTES - 1))
    finally:
        os.close(file)
    return tail[tail.rfind(b"\n", 0, -1) + 1 :]


class SegmentWalk:
    """Iterates over the records of one file as `Link`s, each checked against the one before.

    After the walk `head` is the last record, `whole_bytes` where it ends, `torn_bytes` what follows: an
    incomplete line, or zeros that were allocated and never written. That is allowed in the last segment only
    (`last`), since no later record can exist; an interrupted write leaves it.

    Raises `AuditLogDamaged`. `file` is a descriptor to read from; the caller closes it. A walk may go on
    where another ended: `whole_bytes` and `line` of that one, its head as `before`. Without `before` the
    first record is believed to follow from what came before it.
    """

    def __init__(
        self,
        file: int,
        segment: Segment,
        before: Head | None,
        *,
        last: bool,
        whole_bytes: int = 0,
        line: int = 0,
    ) -> None:
        self._file = file
        self._segment = segment
        self._last = last
        self._believe = before is None
        self.line = line
        self.head = Head(segment.first - 1) if before is None else before
        self.whole_bytes = whole_bytes
        self.torn_bytes = 0

    def __iter__(self) -> Iterator[Link]:
        with os.fdopen(os.dup(self._file), "rb", buffering=1 << 20) as stream:
            stream.seek(self.whole_bytes)
            while line := stream.readline(MAX_RECORD_BYTES + 1):
                if not line.endswith(b"\n"):
                    self._tail(line, stream)
                    return
                self.line += 1
                link = self._checked(line)
                self.head = Head(link.sequence, link.hash)
                self.whole_bytes += len(line)
                yield link

    def fault(self, kind: Fault, detail: str) -> AuditLogDamaged:
        """An error that points to the line being read."""
        place = LocatedFault(kind, self._segment.name, self.line, self.head.sequence + 1, detail)
        return AuditLogDamaged(place)

    def _tail(self, rest: bytes, stream: Iterator[bytes]) -> None:
        self.torn_bytes = len(rest)
        # A short rest is the end of the file (a writer may be adding to it now: look no further). A long one
        # has to be free of newlines to its end, or there were complete lines behind it once.
        if len(rest) > MAX_RECORD_BYTES:
            for more in stream:
                self.torn_bytes += len(more)
                if more.endswith(b"\n"):
                    self.line += 1
                    raise self.fault(Fault.ALTERED, "the line is too long to be a record")
        if not self._last:
            self.line += 1
            raise self.fault(Fault.ALTERED, "the line is incomplete, though later records exist")

    def _checked(self, line: bytes) -> Link:
        try:
            link = read_line(line)
        except MalformedError:
            raise self.fault(Fault.ALTERED, "the line is not an audit record") from None
        if link.version != VERSION:
            raise self.fault(Fault.UNKNOWN_VERSION, f"the record has version {link.version}, not {VERSION}")
        if not link.hash_is_right:
            raise self.fault(Fault.ALTERED, "the record's bytes do not give its hash")
        if link.sequence != self.head.sequence + 1:
            # Whether the expected one is somewhere else is for `verify_log`, which reads everything.
            raise self.fault(Fault.REMOVED, f"record {link.sequence} stands here")
        if link.previous != self.head.hash and not self._believe:
            raise self.fault(Fault.REPLACED, "the record is whole, but does not follow from the one before")
        self._believe = False
        return link
