"""When checkpoints are made: not too often, never in a call's path, at each segment's end and at closing.

On the event loop it only counts records and adds their hashes to the tree's edge (a microsecond each); what
costs time is done by `CheckpointWriter` in a worker thread.
"""

from collections.abc import Callable, Sequence

import trio

from tabwarden_adapters.audit.checkpoint import Place
from tabwarden_adapters.audit.checkpoint_writer import CheckpointWriter
from tabwarden_adapters.audit.edge import TreeEdge


class Checkpointer:
    """Knows the tree over all durable records, once `begin` and `adopt` were called. Not thread-safe.

    `problem` says in an errno's words why the newest checkpoint could not be made; None while all is well.
    """

    def __init__(self, every_records: int, every_s: float, on_problem: Callable[[], None]) -> None:
        self._every_records = every_records
        self._every_s = every_s
        self._on_problem = on_problem
        self._scope = trio.CancelScope()
        self._writer: CheckpointWriter | None = None
        self._edge: TreeEdge | None = None
        self._head = ""
        self._early: list[tuple[Sequence[str], bool]] = []  # made durable while the log was still being read
        self._ends: list[Place] = []  # of segments that were completed and are not signed yet
        self._covered = 0
        self._something = trio.Event()
        self._much = trio.Event()
        self._making = trio.Lock()
        self.problem: str | None = None

    @property
    def signing(self) -> bool:
        """Whether checkpoints are made at all."""
        return self._writer is not None

    def begin(self, writer: CheckpointWriter) -> None:
        """From now on every durable record is counted."""
        self._writer = writer

    def adopt(self, place: Place) -> None:
        """What was durable when `begin` was called."""
        self._edge, self._head, self._covered = place.edge(), place.head, place.size
        early, self._early = self._early, []
        for hashes, new_segment in early:
            self.advance(hashes, new_segment=new_segment)

    def forget(self) -> None:
        """No more are made."""
        writer, self._writer, self._edge = self._writer, None, None
        self._early.clear()
        if writer is not None:
            writer.close()

    def advance(self, hashes: Sequence[str], *, new_segment: bool) -> None:
        """Records are on stable storage; with `new_segment` the first of them begins one."""
        if self._writer is None:
            return
        if self._edge is None:
            self._early.append((hashes, new_segment))
            return
        if new_segment and self._edge.size:
            self._ends.append(self._place())
        for text in hashes:
            self._edge.add(bytes.fromhex(text))
        if hashes:
            self._head = hashes[-1]
        self._something.set()
        # A disk that refuses is asked again when the time has come, and not for every record.
        if self.problem is None and self._much_is_due():
            self._much.set()

    async def run(self) -> None:
        """The background task: makes checkpoints until cancelled or closed."""
        with self._scope:
            while True:
                await self._something.wait()
                with trio.move_on_after(self._every_s) as waiting:
                    await self._much.wait()
                if waiting.cancelled_caught or self._much_is_due():
                    await self.make()

    def _much_is_due(self) -> bool:
        size = 0 if self._edge is None else self._edge.size
        return bool(self._ends) or size - self._covered >= self._every_records

    async def make(self) -> None:
        """Make those that are due, now. Never raises but when cancelled; the thread then goes on alone.

        A failure is kept in `problem`, and the next one covers what this one would have.
        """
        async with self._making:
            await self._make()

    async def _make(self) -> None:
        writer = self._writer
        if writer is None or self._edge is None:
            return
        if self._edge.size == self._covered:
            return
        before = self._much
        self._something, self._much = trio.Event(), trio.Event()
        before.set()  # who waits for the old one is to wait for the new one
        ends, last = list(self._ends), self._place()

        def job() -> None:
            for place in ends:
                writer.write(place, ends_segment=True)
            writer.write(last, ends_segment=False)

        try:
            await trio.to_thread.run_sync(job, abandon_on_cancel=True)
        except Exception as error:  # a log without a new checkpoint is still a log
            first = self.problem is None
            self.problem = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
            self._something.set()
            if first:
                self._on_problem()
            return
        self._covered = last.size
        del self._ends[: len(ends)]
        self.problem = None

    async def close(self, *, sign: bool, limit_s: float) -> None:
        """With `sign` make the last one; then no more. Shielded, and bounded: a thread that hangs goes on
        alone."""
        self._scope.cancel()
        with trio.move_on_after(limit_s, shield=True):
            if sign:
                await self.make()
        self.forget()

    def _place(self) -> Place:
        assert self._edge is not None  # noqa: S101 - its callers have looked
        return Place(self._edge.size, self._head, tuple(self._edge.peaks))
