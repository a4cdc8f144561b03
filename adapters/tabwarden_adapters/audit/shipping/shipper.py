"""Follows the log and ships each record, at least once and in order, however often the other side goes away.

Nothing is held but one batch: while the other side is away, the log itself is the queue.
"""

from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import trio
from tabwarden.errors import TabwardenError

from tabwarden_adapters.audit.cursor import RecordsDropped
from tabwarden_adapters.audit.reader import AuditRecord, LogReader
from tabwarden_adapters.audit.segments import Head
from tabwarden_adapters.audit.shipping.backoff import Backoff
from tabwarden_adapters.audit.shipping.cursor_file import CursorFile
from tabwarden_adapters.audit.shipping.port import Delivery, DeliveryFailed, Destination
from tabwarden_adapters.audit.shipping.settling import Settling

BATCH_RECORDS = 256  # of at most 4 KiB each
POLL_S = 0.5  # a look costs a fraction of a millisecond
FINISH_S = 2.0  # a person waits for the program to end
_STABLE_S = 10.0  # a connection that lived so long was one

Tell = Callable[[dict[str, Any]], None]


class Shipper:
    """Ships the log in `folder` to `destination`, from behind `cursor.head`.

    `tell` is given what happens: `connected`, `waiting` (why, and for how long), `records-dropped`.
    """

    def __init__(
        self,
        folder: Path,
        destination: Destination,
        cursor: CursorFile,
        *,
        tell: Tell,
        backoff: Backoff | None = None,
        poll_s: float = POLL_S,
        finish_s: float = FINISH_S,
    ) -> None:
        self._folder = folder
        self._destination = destination
        self._cursor = cursor
        self._tell = tell
        self._backoff = backoff or Backoff()
        self._poll_s = poll_s
        self._finish_s = finish_s
        self._settling = Settling(destination.settle_s)
        self._from = cursor.head  # differs from the cursor's only after records were dropped

    async def run(self) -> None:
        """Until it is cancelled; then what is on its way is given `finish_s` seconds to arrive.

        Raises `AuditLogDamaged` (nothing that cannot be believed is shipped), `ConfigurationError` when the
        log or the cursor cannot be used, FileNotFoundError and other OSError of the log's folder.
        """
        while True:
            try:
                await self._one_connection()
            except DeliveryFailed as failure:
                wait = self._backoff.take()
                self._tell({"shipping": "waiting", "why": str(failure), "seconds": round(wait, 1)})
                await trio.sleep(wait)
            except RecordsDropped as dropped:
                # The gap stays visible: numbers are missing at the other side.
                self._tell({"shipping": "records-dropped", "why": str(dropped)})
                self._from = None

    async def _one_connection(self) -> None:
        self._settling.forget()  # what had not settled is sent again
        async with self._destination.connect() as delivery:
            self._tell({"shipping": "connected"})
            try:
                await _first_failure(lambda: self._pump(delivery), delivery.broken)
            except (TabwardenError, OSError):
                raise
            except BaseException:  # cancelled, alone or in a group
                with trio.move_on_after(self._finish_s, shield=True):
                    if await delivery.finish():
                        await self._took(self._settling.everything())
                raise

    async def _pump(self, delivery: Delivery) -> None:
        reader = LogReader(self._folder, after=self._from)
        began = trio.current_time()
        while True:
            records = reader.read()
            while batch := await trio.to_thread.run_sync(_next_batch, records):
                await delivery.send(batch)
                head = Head(batch[-1].sequence, batch[-1].hash)
                self._settling.handed_over(head)
                await delivery.confirmed()
                self._settling.sent(head, trio.current_time())
                await self._took(self._settling.settled(trio.current_time()))
            await self._took(self._settling.settled(trio.current_time()))
            if trio.current_time() - began >= _STABLE_S:
                self._backoff.reset()  # all that there was is there, and the connection stands
            await trio.sleep(self._poll_s)

    async def _took(self, head: Head | None) -> None:
        if head is not None:
            await trio.to_thread.run_sync(self._cursor.save, head)
            self._from = head
            self._backoff.reset()


def _next_batch(records: Iterator[AuditRecord]) -> list[AuditRecord]:
    return list(islice(records, BATCH_RECORDS))


async def _first_failure(*works: Callable[[], Awaitable[None]]) -> None:
    """Run all; when one raises what is expected, cancel the others and raise that, by itself."""
    failures: list[Exception] = []

    async def run(work: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
        try:
            await work()
        except (TabwardenError, OSError) as error:
            failures.append(error)
            scope.cancel()

    async with trio.open_nursery() as nursery:
        for work in works:
            nursery.start_soon(run, work, nursery.cancel_scope)
    raise failures[0]
