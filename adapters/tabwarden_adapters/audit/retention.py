"""How much of a log is kept: whole segments are dropped, oldest first, only behind a signed checkpoint."""

import os
from collections.abc import Collection
from dataclasses import dataclass

from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.private_files import open_private_file

from tabwarden_adapters.audit.chain import read_line
from tabwarden_adapters.audit.records import written_ms
from tabwarden_adapters.audit.segments import Segment, last_line, list_segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Each limit that is given drops what is beyond it; none by default. The newest segment always stays.

    `age_ms` counts from a segment's last record, by the wall times in records. Raises `ConfigurationError`.
    """

    age_ms: int | None = None
    total_bytes: int | None = None
    segments: int | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("age_ms", self.age_ms),
            ("total_bytes", self.total_bytes),
            ("segments", self.segments),
        ):
            if value is not None and value <= 0:
                raise ConfigurationError(f"retention {name} must be greater than 0")

    @property
    def keeps_all(self) -> bool:
        """No limit is set."""
        return self.age_ms is None and self.total_bytes is None and self.segments is None


KEEP_ALL = Retention()


def droppable(
    directory: int, kept_from: int, signed: Collection[int], limits: Retention, now_ms: int | None
) -> int | None:
    """The last record to drop, or None. It ends a segment, and is one of `signed`, the sizes of checkpoints.

    `kept_from` is the first record of the log now; with `now_ms` None no segment is too old. Blocking.
    """
    segments = list_segments(directory, kept_from - 1)
    surplus = _surplus(directory, segments, limits, now_ms)
    ends = [segment.first - 1 for segment in segments[1 : surplus + 1]]
    return max((end for end in ends if end in signed), default=None)


def _surplus(directory: int, segments: list[Segment], limits: Retention, now_ms: int | None) -> int:
    """How many segments, from the oldest on, are beyond the limits."""
    most = max(0, len(segments) - 1)
    count = 0
    if limits.segments is not None:
        count = max(count, min(most, len(segments) - limits.segments))
    if limits.total_bytes is not None:
        sizes = [_size(directory, segment) for segment in segments]
        while count < most and sum(sizes[count:]) > limits.total_bytes:
            count += 1
    if limits.age_ms is not None and now_ms is not None:
        while count < most and _is_older(directory, segments[count], now_ms - limits.age_ms):
            count += 1
    return count


def _size(directory: int, segment: Segment) -> int:
    return os.stat(segment.name, dir_fd=directory, follow_symlinks=False).st_size


def _is_older(directory: int, segment: Segment, than_ms: int) -> bool:
    try:
        written = written_ms(read_line(last_line(directory, segment)).members)
    except MalformedError:
        return False  # what cannot be read is evidence
    return written is not None and written < than_ms


def drop_segments(directory: int, through: int) -> int:
    """Remove every segment that holds no record behind number `through`, oldest first. Returns how many.

    Only after a checkpoint that says so is on stable storage: what a crash leaves is then ignored, and
    removed the next time.
    """
    doomed = [segment for segment in list_segments(directory) if segment.first <= through]
    for segment in doomed:
        # Only what is ours goes: a link or somebody else's file under such a name is left for a person.
        os.close(open_private_file(segment.name, os.O_RDONLY, directory=directory))
        os.unlink(segment.name, dir_fd=directory)
    return len(doomed)
