"""Opening a log: take its lock, trust only what the chain proves, cut off what an interrupted write left."""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from tabwarden.errors import AuditUnavailable, ConfigurationError, MalformedError
from tabwarden.private_files import open_private_directory, open_private_file

from tabwarden_adapters.audit.chain import read_line
from tabwarden_adapters.audit.checkpoint import Place
from tabwarden_adapters.audit.checkpoint_files import newest_checkpoint
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.files import FileOperations
from tabwarden_adapters.audit.records import written_ms
from tabwarden_adapters.audit.segments import Head, Segment, SegmentWalk, last_line, list_segments

LOCK_NAME = "lock"


@dataclass(frozen=True, slots=True)
class Recovered:
    """An opened log: descriptors that the holder closes, the last record, and what was found.

    `size` is the bytes of whole records in `segment`, which its first record began at `began_ms` (None: it
    has none yet); `torn_bytes` were cut off behind them.
    """

    path: Path
    directory: int
    lock: int
    file: int
    segment: Segment
    size: int
    head: Head
    torn_bytes: int
    began_ms: int | None


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
            newest = newest_checkpoint(directory)
            signed, base = (Place(), Place()) if newest is None else (newest.place, newest.base)
            segments = list_segments(directory, base.size)
            fresh = not segments
            if fresh and newest is not None:
                raise _cut(Segment(base.size + 1), 1, Head(base.size, base.head), signed)
            segment = Segment(1) if fresh else segments[-1]
            file = files.open_segment(directory, segment.name, create=fresh)
            undo.callback(os.close, file)
            # After a failed write-back the page cache may hold what the disk does not: write out what is
            # dirty, forget the rest, and read what is really there.
            files.sync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            before = _head_before(directory, segments, base)
            walk = SegmentWalk(file, segment, before, last=True)
            began_ms = None
            # What the checkpoint says of earlier segments is compared when signing goes on (`resume`).
            if before.sequence == signed.size and before.hash != signed.head:
                raise _missing(segment, "the records before it are not those that a checkpoint signed")
            for link in walk:
                if began_ms is None:
                    began_ms = written_ms(link.members)
                if link.sequence == signed.size and link.hash != signed.head:
                    raise walk.fault(Fault.REWRITTEN, "it is not the record that a checkpoint signed")
            if walk.head.sequence < signed.size:
                raise _cut(segment, walk.line + 1, walk.head, signed)
            files.truncate(file, walk.whole_bytes)
            files.sync(file)
            files.sync_directory(directory)
        except OSError as error:
            raise AuditUnavailable(f"cannot open the audit log in {path}: {error.strerror}") from error
        undo.pop_all()
    return Recovered(
        shown, directory, lock, file, segment, walk.whole_bytes, walk.head, walk.torn_bytes, began_ms
    )


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


def _cut(segment: Segment, line: int, head: Head, signed: Place) -> AuditLogDamaged:
    detail = f"a checkpoint signed {signed.size} records, but the log ends here"
    return AuditLogDamaged(LocatedFault(Fault.TAIL_MISSING, segment.name, line, head.sequence + 1, detail))


def _head_before(directory: int, segments: list[Segment], base: Place) -> Head:
    """The record that the last segment must follow from, read from the end of the segment before."""
    if not segments or segments[-1].first == base.size + 1:
        return Head(base.size, base.head)
    last = segments[-1]
    if len(segments) == 1:
        raise _missing(last, "the segment before it is gone")
    before = segments[-2]
    try:
        link = read_line(last_line(directory, before))
    except MalformedError:
        raise _missing(last, f"the end of {before.name} is damaged") from None
    if not link.hash_is_right or link.sequence != last.first - 1:
        raise _missing(last, f"the end of {before.name} is missing or altered")
    return Head(link.sequence, link.hash)


def _missing(segment: Segment, detail: str) -> AuditLogDamaged:
    return AuditLogDamaged(LocatedFault(Fault.SEGMENT_MISSING, segment.name, 1, segment.first, detail))
