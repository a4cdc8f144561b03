"""The open end of a log: room kept ahead, whole batches appended, a new segment when one is full.

Not thread-safe by itself: the holder runs at most one `Batch.write` at a time, and it alone may run in
another thread; everything else stays on the event loop and does not wait for the disk.
"""

import contextlib
import errno
import os
import time
from dataclasses import dataclass

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.audit.files import FileOperations
from tabwarden_adapters.audit.recovery import Recovered
from tabwarden_adapters.audit.segments import Segment

CHUNK_BYTES = 1 << 20  # allocated ahead at a time: one call for some two thousand records


@dataclass(frozen=True, slots=True)
class Written:
    """How a batch went. `problem` is None or says in fixed words and an errno's name what failed."""

    problem: str | None
    sync_s: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Bytes of whole lines, to be appended at `offset` and made durable."""

    files: FileOperations
    file: int
    offset: int
    data: bytes
    new_in_directory: int | None  # the folder to sync when this is the first batch of a segment
    problem: str | None = None  # why it cannot be written at all

    def write(self) -> Written:
        """Append all of it, then sync. Never raises; blocks for as long as the disk takes."""
        if self.problem is not None:
            return Written(self.problem, 0.0)
        stage = "writing"
        sync_s = 0.0
        written = False
        try:
            state = self.files.state(self.file)
            if state != (self.offset, 1):
                return Written("the segment was changed or removed by another program", 0.0)
            rest = memoryview(self.data)
            written = True
            while rest:
                taken = self.files.write(self.file, rest)
                if taken <= 0:
                    raise OSError(errno.EIO, "nothing was written")
                rest = rest[taken:]
            stage = "syncing"
            started = time.perf_counter()
            self.files.sync(self.file)
            sync_s = time.perf_counter() - started
            if self.new_in_directory is not None:
                self.files.sync_directory(self.new_in_directory)
            state, end = self.files.state(self.file), self.offset + len(self.data)
            if state != (end, 1):
                if state.size < end:
                    self.files.truncate(self.file, self.offset)  # what is there of it is in pieces
                return Written("the segment holds something else than was written", sync_s)
        except OSError as error:
            if stage == "writing" and written:
                # Half a line must not stay for a later reader to stumble over.
                with contextlib.suppress(OSError):
                    self.files.truncate(self.file, self.offset)
            return Written(f"{stage} failed ({errno.errorcode.get(error.errno or 0, 'unknown')})", sync_s)
        except Exception:  # the log must be broken, not the event loop
            return Written(f"{stage} failed (not an OSError)", sync_s)
        return Written(None, sync_s)


class Appender:
    """Knows where the log ends: `end` counts bytes appended to the current segment, written or not yet."""

    def __init__(
        self, opened: Recovered, files: FileOperations, segment_bytes: int, segment_ms: int | None
    ) -> None:
        self._files = files
        self._opened = opened
        self._file = opened.file
        self._segment_bytes = segment_bytes
        self._segment_ms = segment_ms
        self._began_ms = opened.began_ms
        self._allocated = opened.size
        self._written = opened.size
        self._new = False
        self.segment = opened.segment
        self.end = opened.size

    def make_room(self, length: int, behind: int) -> None:
        """Keep room for `length` more bytes and `behind` bytes after them. Raises OSError (ENOSPC)."""
        needed = self.end + length + behind
        if needed > self._allocated:
            self._allocated = self._allocate(self._file, self._allocated, needed)

    def batch(self, data: bytes, first: int, behind: int, now_ms: int) -> Batch:
        """The next batch: `data`, all that was appended, from record number `first` on, now at `now_ms`.

        Begins a new segment (with room for `behind` bytes after the batch) when this one is full or old,
        unless the disk has no room for one: the room in the old one is kept already.
        """
        problem = None
        if self._written and (self._written + len(data) > self._segment_bytes or self._old(now_ms)):
            problem = self._rotate(Segment(first), len(data), behind)
        if self._began_ms is None or not self._written:
            self._began_ms = now_ms
        directory = self._opened.directory if self._new else None
        return Batch(self._files, self._file, self._written, data, directory, problem)

    def full(self, now_ms: int) -> bool:
        """The next batch may begin a new segment, which costs more than a write."""
        return self._new or self.end > self._segment_bytes or self._old(now_ms)

    def wrote(self, batch: Batch) -> None:
        """Tell that `batch` is on stable storage."""
        self._written += len(batch.data)
        self._new = False

    def close(self, *, trim: bool) -> None:
        """Close all descriptors (with them the lock); with `trim`, give back the room that was kept."""
        if trim:
            with contextlib.suppress(OSError):
                self._files.truncate(self._file, self._written)
        for descriptor in (self._file, self._opened.directory, self._opened.lock):
            _close(descriptor)

    def _old(self, now_ms: int) -> bool:
        if self._segment_ms is None or self._began_ms is None:
            return False
        # A clock that was set back must not keep a segment open for as long as it was set back.
        self._began_ms = min(self._began_ms, now_ms)
        return now_ms - self._began_ms >= self._segment_ms

    def _rotate(self, segment: Segment, length: int, behind: int) -> str | None:
        """Begin `segment`, or stay in the old one. Says what is wrong when neither can be: an empty file that
        stays would stand among the records that follow in the old one."""
        directory = self._opened.directory
        file = -1
        try:
            file = self._files.open_segment(directory, segment.name, create=True)
            allocated = self._allocate(file, 0, length + behind)
        except FileExistsError:
            return "a file is where the next segment belongs"
        except (OSError, ConfigurationError):
            _close(file)
            try:
                os.unlink(segment.name, dir_fd=directory)
            except FileNotFoundError:
                pass
            except OSError:
                return "a segment that could not be begun could not be removed either"
            return None
        with contextlib.suppress(OSError):
            self._files.truncate(self._file, self._written)
        _close(self._file)
        self._file, self.segment, self._new = file, segment, True
        self._written, self.end, self._allocated = 0, length, allocated
        return None

    def _allocate(self, file: int, have: int, needed: int) -> int:
        try:
            self._files.allocate(file, have, needed + CHUNK_BYTES - have)
        except OSError:
            # A nearly full disk may still hold exactly what is needed; if not, this raises the reason.
            self._files.allocate(file, have, needed - have)
            return needed
        return needed + CHUNK_BYTES


def _close(descriptor: int) -> None:
    """An error of close(2) says nothing that a sync has not said, and the descriptor is gone all the same."""
    with contextlib.suppress(OSError):
        os.close(descriptor)
