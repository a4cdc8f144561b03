"""Signs checkpoints, puts them into the log's folder, and drops what retention says. Runs in worker threads.

One thread at a time: a second one waits. So a job that was abandoned, because the disk hung, cannot undo what
a later one did.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tabwarden.ports import Clock, StatementSigner

from tabwarden_adapters.audit.checkpoint import Checkpoint, Place, sign
from tabwarden_adapters.audit.checkpoint_files import (
    checkpoint_sizes,
    load_checkpoint,
    newest_checkpoint,
    remove_checkpoint,
    store_checkpoint,
    sweep_left_overs,
)
from tabwarden_adapters.audit.cursor import LogCursor
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.retention import KEEP_ALL, Retention, drop_segments, droppable
from tabwarden_adapters.audit.segments import Head

_STEP_MS = 60_000  # a wall clock that moved more than this against the other was set: drop nothing by it


@dataclass(slots=True)
class CheckpointWriter:
    """Belongs to the holder of the log's lock. `directory` is a descriptor of its own, closed by `close`."""

    path: Path
    directory: int
    signer: StatementSigner
    clock: Clock
    retention: Retention = KEEP_ALL
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _base: Place = field(default_factory=Place)
    _size: int = 0  # of the newest checkpoint
    _replaceable: int | None = None  # the newest one is superseded by the next, unless it ends a segment
    _places: dict[int, Place] = field(
        default_factory=dict
    )  # of each checkpoint, as it was when signed or read
    _offset_ms: int = 0
    _closing: bool = False
    _closed: bool = False

    def resume(self, durable: Head) -> Place:
        """The place of `durable`, which is on stable storage: read from the newest checkpoint on, checked.

        Raises `AuditLogDamaged`, OSError.
        """
        with self._working():
            self._offset_ms = self.clock.wall_ms() - self.clock.boottime_ms()
            sweep_left_overs(self.directory)
            newest = newest_checkpoint(self.directory)
            for size in checkpoint_sizes(self.directory):
                try:
                    self._places[size] = load_checkpoint(self.directory, size).place
                except AuditLogDamaged:
                    continue  # not our newest; `verify` finds it, and nothing is dropped behind it
            start = Place() if newest is None else newest.place
            self._base = Place() if newest is None else newest.base
            self._size = start.size
            return self._walk(start, durable)

    def write(self, place: Place, *, ends_segment: bool) -> None:
        """Sign the log as it is at `place`, all of it durable; then retention. Raises OSError.

        A place that is covered already is left out.
        """
        with self._working():
            if place.size <= self._size:
                if ends_segment and place.size == self._size:
                    self._replaceable = None
                return
            self._store(place)
            if self._replaceable is not None:
                remove_checkpoint(self.directory, self._replaceable)
                del self._places[self._replaceable]
            self._replaceable = None if ends_segment else place.size
            if not self.retention.keeps_all:
                self._retain(place)

    def close(self) -> None:
        """Close the descriptor: at once, or at the end of what a thread is doing. Never blocks."""
        self._closing = True
        if self._lock.acquire(blocking=False):
            try:
                if not self._closed:
                    os.close(self.directory)
                self._closed = True
            finally:
                self._lock.release()

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        try:
            with self._lock:
                if self._closed:
                    raise OSError(errno.EBADF, "the log is closed")
                yield
        finally:
            if self._closing:
                self.close()

    def _walk(self, start: Place, durable: Head) -> Place:
        edge, head = start.edge(), start.head
        if start.size < durable.sequence:
            cursor = LogCursor(self.path, after=Head(start.size, start.head))
            for _, link in cursor.links():
                if link.sequence > durable.sequence:
                    break
                edge.add(bytes.fromhex(link.hash))
                head = link.hash
        if (edge.size, head) != (durable.sequence, durable.hash):
            detail = "the log was changed by another program while it was open"
            raise AuditLogDamaged(LocatedFault(Fault.REWRITTEN, "-", 0, edge.size, detail))
        return Place(edge.size, head, tuple(edge.peaks))

    def _store(self, place: Place) -> None:
        clock = self.clock
        checkpoint: Checkpoint = sign(self.signer, place, self._base, clock.wall_ms(), clock.boottime_ms())
        store_checkpoint(self.directory, checkpoint)
        self._size, self._places[place.size] = place.size, place

    def _retain(self, place: Place) -> None:
        end = droppable(self.directory, self._base.size + 1, self._places, self.retention, self._now_ms())
        if end is not None:
            self._base = self._places[end]
            # The same place signed again, now with another beginning; only then may anything go.
            self._store(place)
        if self._base.size:
            for size in [size for size in self._places if size < self._base.size]:
                remove_checkpoint(self.directory, size)
                del self._places[size]
            drop_segments(self.directory, self._base.size)

    def _now_ms(self) -> int | None:
        """Wall time, unless the clock was set since we began: then it says nothing of how old things are."""
        now = self.clock.wall_ms()
        stepped = abs(now - self.clock.boottime_ms() - self._offset_ms) > _STEP_MS
        return None if stepped else now
