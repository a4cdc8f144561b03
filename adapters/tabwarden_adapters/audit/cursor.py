"""A place in a log from which a reader goes on: each record once, checked, as the log grows.

Blocking, takes no lock, and keeps no file open between reads, so a broker may append, begin new segments and
drop old ones meanwhile.
"""

import os
from collections.abc import Iterator

from tabwarden.errors import ConfigurationError
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.audit.chain import Link
from tabwarden_adapters.audit.checkpoint import Place
from tabwarden_adapters.audit.checkpoint_files import newest_checkpoint
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.segments import Head, Segment, SegmentWalk, list_segments

_RECENT_SEGMENTS = 2  # the last may just have begun


class RecordsDropped(ConfigurationError):
    """Retention was quicker than the reader: read again, from the beginning."""


class LogCursor:
    """Reads the log in the folder `path`, from its beginning unless told otherwise.

    `after`: from the record behind this one, which must be there. `recent`: from a segment near the end,
    whose first record is believed. `head` is the last record that was read, `base` what retention dropped.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, after: Head | None = None, recent: bool = False
    ) -> None:
        self._path = path
        self._recent = recent
        self._walk: SegmentWalk | None = None
        self._segment: Segment | None = None
        self.base = Place()
        self.head = after

    @property
    def line(self) -> int:
        """Where in its file the record that was read last stands, counted from 1; 0 before the first."""
        return 0 if self._walk is None else self._walk.line

    def links(self) -> Iterator[tuple[Segment, Link]]:
        """What was appended since the last call, up to an incomplete last line. Use it up, or not again.

        Raises `AuditLogDamaged` at the first fault, `RecordsDropped`, `ConfigurationError` when the folder or
        a file is open to others, FileNotFoundError without such a folder.
        """
        directory = open_private_directory(self._path)
        try:
            # In this order: segments that are dropped in between are left out, not missed.
            segments = list_segments(directory)
            newest = newest_checkpoint(directory)
            if newest is not None:
                self.base = newest.base
            segments = [one for one in segments if one.first > self.base.size]
            if not segments and newest is not None:
                raise self._missing(Segment(self.base.size + 1), "no segment is left")
            for segment in self._from_here(segments):
                expected = None if self.head is None else self.head.sequence + 1
                if expected is not None and segment.first > expected:
                    detail = f"records {expected} to {segment.first - 1} should come before it"
                    raise self._missing(segment, detail)
                yield from self._read(directory, segment, last=segment == segments[-1])
        finally:
            os.close(directory)

    def _from_here(self, segments: list[Segment]) -> list[Segment]:
        if self._segment in segments:
            return segments[segments.index(self._segment) :]
        if self.head is None:
            recent = segments[-_RECENT_SEGMENTS:]
            if self._recent and recent and recent[0].first > self.base.size + 1:
                return recent
            self.head = Head(self.base.size, self.base.head)
        if self.head.sequence < self.base.size:
            raise RecordsDropped(
                f"records {self.head.sequence + 1} to {self.base.size} were dropped before they were read: "
                "read again, from the beginning"
            )
        begun = sum(one.first <= self.head.sequence + 1 for one in segments)
        return segments[max(0, begun - 1) :]

    def _read(self, directory: int, segment: Segment, *, last: bool) -> Iterator[tuple[Segment, Link]]:
        try:
            file = open_private_file(segment.name, os.O_RDONLY, directory=directory)
        except FileNotFoundError:
            raise RecordsDropped(f"{segment.name} was dropped while it was to be read: read again") from None
        try:
            floor = self.head
            walk = self._walk_of(file, segment, last=last)
            for link in walk:
                if floor is None or link.sequence > floor.sequence:
                    self.head = walk.head
                    yield segment, link
                elif link.sequence == floor.sequence and link.hash != floor.hash:
                    raise walk.fault(Fault.REWRITTEN, "it is not the record that stood here before")
            self.head = walk.head
            gone = os.fstat(file).st_size < walk.whole_bytes
            if gone or (floor is not None and walk.head.sequence < floor.sequence):
                raise walk.fault(Fault.TAIL_MISSING, "records that were here before are gone")
        finally:
            os.close(file)

    def _walk_of(self, file: int, segment: Segment, *, last: bool) -> SegmentWalk:
        old = self._walk
        if self._segment == segment and old is not None:
            at, line = old.whole_bytes, old.line
            walk = SegmentWalk(file, segment, old.head, last=last, whole_bytes=at, line=line)
        else:
            before = self.head
            if before is not None and before.sequence != segment.first - 1:
                before = None  # from the middle of the segment: its first records are only passed
            walk = SegmentWalk(file, segment, before, last=last)
        self._segment, self._walk = segment, walk
        return walk

    def _missing(self, segment: Segment, detail: str) -> AuditLogDamaged:
        expected = (self.base.size if self.head is None else self.head.sequence) + 1
        return AuditLogDamaged(LocatedFault(Fault.SEGMENT_MISSING, segment.name, 1, expected, detail))
