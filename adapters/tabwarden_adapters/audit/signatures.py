"""Compares the checkpoints of a log with its records, while these are walked through."""

from collections.abc import Sequence

from tabwarden_adapters.audit.chain import Link
from tabwarden_adapters.audit.checkpoint import Checkpoint, Place
from tabwarden_adapters.audit.checkpoint_files import checkpoint_name
from tabwarden_adapters.audit.edge import TreeEdge
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.pins import Pin


class SignatureCheck:
    """`checkpoints` ascend; what is damaged among them is raised when the walk reaches it.

    `signed` is the last record that a good one covers, `count` how many were compared.
    """

    def __init__(self, checkpoints: Sequence[Checkpoint | AuditLogDamaged]) -> None:
        self._waiting = list(checkpoints)[::-1]
        self._all = [one for one in checkpoints if isinstance(one, Checkpoint)]
        self._dropped = 0
        self.edge: TreeEdge | None = None
        self.signed = 0
        self.count = 0

    def begin(self, base: Place) -> None:
        """The walk begins behind these records."""
        self.edge, self._dropped = base.edge(), base.size
        while self._waiting and _size(self._waiting[-1]) < base.size:
            self._good(self._waiting.pop())  # its records are gone: only the signatures can be checked
        self._compare(base.head, checkpoint_name(base.size), 1)

    def record(self, link: Link, file: str, line: int) -> None:
        """The next record. Raises `AuditLogDamaged`."""
        assert self.edge is not None  # noqa: S101 - begun
        self.edge.add(bytes.fromhex(link.hash))
        self._compare(link.hash, file, line)

    def end(self, file: str, line: int) -> None:
        """There are no more records. Raises `AuditLogDamaged` when a checkpoint covers more."""
        assert self.edge is not None  # noqa: S101 - begun
        if self._waiting:
            size = self._good(self._waiting.pop()).place.size
            detail = f"a checkpoint signed {size} records, but the log ends here"
            raise AuditLogDamaged(
                LocatedFault(Fault.TAIL_MISSING, file, line + 1, self.edge.size + 1, detail)
            )

    def keys(self, announced: Sequence[Pin]) -> tuple[Pin, ...]:
        """Those that were announced, and in front those that signed before what retention left."""
        ids = dict.fromkeys(one.key_id for one in self._all)
        earlier = [one for one in ids if all(pin.key_id != one for pin in announced)]
        return (*(Pin(one, max(1, self._dropped)) for one in earlier), *announced)

    def pinned(self, pins: Sequence[Pin], announced: Sequence[Pin]) -> None:
        """All is signed by pinned keys, and each of them has signed. Raises `AuditLogDamaged`."""
        ids = {pin.key_id for pin in pins}
        for checkpoint in self._all:
            if checkpoint.key_id not in ids:
                size = checkpoint.place.size
                detail = f"signed by the keys {checkpoint.key_id}, which are not among those noted"
                raise _fault(Fault.KEYS_NOT_PINNED, checkpoint_name(size), size, detail)
        for pin in pins:
            if pin.since <= self._dropped:
                continue
            if pin not in announced:
                detail = f"the record that announced the keys {pin.key_id} is not there"
                raise _fault(Fault.CHECKPOINT_MISSING, "-", pin.since, detail)
            if not any(one.key_id == pin.key_id and one.place.size >= pin.since for one in self._all):
                detail = f"nothing is there that the keys {pin.key_id} have signed"
                raise _fault(Fault.CHECKPOINT_MISSING, "-", pin.since, detail)

    def _compare(self, head: str, file: str, line: int) -> None:
        assert self.edge is not None  # noqa: S101 - begun
        size = self.edge.size
        while self._waiting and _size(self._waiting[-1]) == size:
            checkpoint = self._good(self._waiting.pop())
            if checkpoint.place.head != head or checkpoint.place.root != self.edge.root():
                detail = (
                    f"records {self.signed + 1} to {size} are one chain, but not the one that "
                    f"{checkpoint_name(size)} signed"
                )
                raise AuditLogDamaged(LocatedFault(Fault.REWRITTEN, file, line, size, detail))
            self.signed = size
            self.count += 1

    def _good(self, one: Checkpoint | AuditLogDamaged) -> Checkpoint:
        if isinstance(one, AuditLogDamaged):
            raise one
        return one


def _size(one: Checkpoint | AuditLogDamaged) -> int:
    return one.place.size if isinstance(one, Checkpoint) else one.fault.sequence


def _fault(kind: Fault, file: str, sequence: int, detail: str) -> AuditLogDamaged:
    return AuditLogDamaged(LocatedFault(kind, file, 1, sequence, detail))
