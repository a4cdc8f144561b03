"""Opening a log: take its lock, trust only what the chain proves, cut off what an interrupted write left."""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from tabwarden.errors import AuditUnavailable, ConfigurationError, MalformedError
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.audit.chain import MAX_RECORD_BYTES, read_line
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.files import FileOperations
from tabwarden_adapters.audit.segments import Head, Segment, SegmentWalk, list_segments

LOCK_NAME = "lock"


@dataclass(frozen=True, slots=True)
class Recovered:
    """An opened log: descriptors that the holder closes, the last record, and what was found.

    `size` is the bytes of whole records in `segment`; `torn_bytes` were cut off behind them.
    """

    path: Path
    directory: int
    lock: int
    file: int
    segment: Segment
    size: int
    head: Head
    torn_bytes: int


def recover(path: str | os.PathLike[str], files: FileOperations) -> Recovered:
    """Open the log in folder `path`, or begin one there. Blocking: run it in a thread.

    Raises `ConfigurationError` (folder not private, log in use), `AuditLogDamaged`, `AuditUnavailable` (the
    disk refuses).
    """
    shown = Path(os.path.abspath(path))
    with contextlib.ExitStack() as undo:
        try:
            directory = open_private_directory(path, create=True)
            undo.callback(os.close, directory)
            lock = _take_lock(directory, shown)
            undo.callback(os.close, lock)
            segments = list_segments(directory)
            fresh = not segments
            segment = Segment(1) if fresh else segments[-1]
            file = files.open_segment(directory, segment.name, create=fresh)
            undo.callback(os.close, file)
            # After a failed write-back the page cache may hold what the disk does not: write out what is
            # dirty, forget the rest, and read what is really there.
            files.sync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            before = _head_before(directory, segments)
            walk = SegmentWalk(file, segment, before, last=True)
            for _ in walk:
                pass
            files.truncate(file, walk.whole_bytes)
            files.sync(file)
            files.sync_directory(directory)
        except OSError as error:
            raise AuditUnavailable(f"cannot open the audit log in {path}: {error.strerror}") from error
        undo.pop_all()
    return Recovered(shown, directory, lock, file, segment, walk.whole_bytes, walk.head, walk.torn_bytes)


def _take_lock(directory: int, shown: Path) -> int:
    lock = open_private_file(LOCK_NAME, os.O_RDWR | os.O_CREAT, directory=directory)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise ConfigurationError(
            f"the audit log in {shown} is in use by another broker: stop it, or choose another folder"
        ) from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _head_before(directory: int, segments: list[Segment]) -> Head:
    """The record that the last segment must follow from, read from the end of the segment before."""
    if not segments or segments[-1].first == 1:
        return Head()
    last = segments[-1]
    if len(segments) == 1:
        raise _missing(last, "the segment before it is gone")
    before = segments[-2]
    file = open_private_file(before.name, os.O_RDONLY, directory=directory)
    try:
        size = os.fstat(file).st_size
        tail = os.pread(file, MAX_RECORD_BYTES + 1, max(0, size - MAX_RECORD_BYTES - 1))
    finally:
        os.close(file)
    try:
        link = read_line(tail[tail.rfind(b"\n", 0, -1) + 1 :])
    except MalformedError:
        raise _missing(last, f"the end of {before.name} is damaged") from None
    if not link.hash_is_right or link.sequence != last.first - 1:
        raise _missing(last, f"the end of {before.name} is missing or altered")
    return Head(link.sequence, link.hash)


def _missing(segment: Segment, detail: str) -> AuditLogDamaged:
    return AuditLogDamaged(LocatedFault(Fault.SEGMENT_MISSING, segment.name, 1, segment.first, detail))
