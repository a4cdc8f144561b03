"""What can be wrong with a log that lies on disk, and where."""

from dataclasses import dataclass
from enum import StrEnum

from tabwarden.errors import TabwardenError


class Fault(StrEnum):
    """The first thing found wrong, in the order of the log."""

    ALTERED = "altered"  # a record's bytes do not give its hash, or are no record
    REPLACED = "replaced"  # a record is whole but does not follow from the one before
    REMOVED = "removed"  # numbers are skipped and those records are nowhere
    SWAPPED = "swapped"  # a record stands where another belongs
    SEGMENT_MISSING = "segment-missing"  # a file, or the end of the file before it, is gone
    UNKNOWN_VERSION = "unknown-version"  # written by a later Tabwarden
    HEAD_MISSING = "head-missing"  # the record that was noted elsewhere is not there
    TAIL_MISSING = "tail-missing"  # the log ends before the last record that a checkpoint covers
    REWRITTEN = "rewritten"  # the records are one chain, but not the one that a checkpoint signed
    CHECKPOINT_ALTERED = "checkpoint-altered"  # its bytes are not what the broker signed
    CHECKPOINT_MISSING = "checkpoint-missing"  # keys were pinned, but nothing that they signed is there
    KEYS_NOT_PINNED = "keys-not-pinned"  # signed, but not by keys that were noted elsewhere


@dataclass(frozen=True, slots=True)
class LocatedFault:
    """`file` is a name in the log's folder, `line` counts from 1, `sequence` is the record expected there."""

    kind: Fault
    file: str
    line: int
    sequence: int
    detail: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line} (record {self.sequence}): {self.kind.value}: {self.detail}"


class AuditLogDamaged(TabwardenError):
    """The log was changed by something other than us; nothing may be added to it, or believed after it."""

    def __init__(self, fault: LocatedFault) -> None:
        super().__init__(
            f"{fault}. Keep a copy of the whole folder as evidence; then start a new log in an empty folder"
        )
        self.fault = fault
