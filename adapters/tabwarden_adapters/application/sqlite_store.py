"""Both stores in one SQLite file, through apsw.

One connection, used by one worker thread at a time and never by the event loop. A change runs in a write
transaction: everything that can refuse it comes first, then the caller's `before_commit` in the event loop,
then COMMIT. So a call that is cancelled, or whose policy changes, while it waits has changed nothing, and
one that ends later knows what became of it.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

import apsw
import msgspec
import trio
from msgspec import UNSET
from tabwarden.actions import Appearance
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.application.addresses import web_href
from tabwarden_adapters.application.database import open_database, roll_back
from tabwarden_adapters.application.ports import BeforeCommit
from tabwarden_adapters.application.values import (
    BookmarkChange,
    Bookshelf,
    StoredBookmark,
    fits,
    plain_text,
)

T = TypeVar("T")

QUEUE: Final = 16  # operations that wait for the thread: at a millisecond each, far within a deadline
CLOSE_S: Final = 5.0  # how long closing waits for a disk that does not answer
_STORE: Final = "application-store"  # the audit's rule when the file, not the caller, is at fault


class ApplicationStore:
    """Implements `SettingsStore` and `BookmarkStore`. Made by `application_store` only."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._thread = trio.CapacityLimiter(1)
        self._closed = False

    # ---- SettingsStore --------------------------------------------------------------------------------

    async def appearance(self) -> Appearance:
        """See `SettingsStore`."""
        return await self._run(self._read_appearance)

    async def change_appearance(self, change: Appearance, before_commit: BeforeCommit, /) -> Appearance:
        """See `SettingsStore`."""

        def prepare() -> Appearance:
            after = msgspec.structs.replace(self._read_appearance(), **_given(change))
            self._connection.execute(
                "UPDATE appearance SET mode = ?, accent = ?, tab_mode = ?",
                [None if value is UNSET else value for value in (after.mode, after.accent, after.tab_mode)],
            )
            return after

        return await self._run(lambda: self._change(prepare, before_commit))

    # ---- BookmarkStore --------------------------------------------------------------------------------

    async def bookshelf(self) -> Bookshelf:
        """See `BookmarkStore`."""
        return await self._run(self._read_shelf_at_once)

    async def change_bookmarks(
        self, change: BookmarkChange, expected_revision: int, before_commit: BeforeCommit, /
    ) -> int:
        """See `BookmarkStore`."""

        def prepare() -> int:
            shelf = self._read_shelf()
            if shelf.revision != expected_revision:
                raise ActionError(Code.CONFLICT, rule="bookmarks.revision")
            after = change.applied_to(shelf)
            self._write(change)
            self._connection.execute("UPDATE shelf SET revision = ?", (after.revision,))
            return after.revision

        return await self._run(lambda: self._change(prepare, before_commit))

    # ---- the file -------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close the file after what is running. Bounded, and shielded from cancellation. Idempotent."""
        if self._closed:
            return
        self._closed = True
        with trio.move_on_after(CLOSE_S, shield=True):
            await trio.to_thread.run_sync(self._connection.close, limiter=self._thread)

    async def _run(self, work: Callable[[], T]) -> T:
        """`work` in the worker thread. Waiting for the thread can be cancelled; what runs is waited for."""
        if self._closed:
            raise ActionError(Code.SHUTTING_DOWN)
        if self._thread.statistics().tasks_waiting >= QUEUE:
            raise ActionError(Code.BUSY, rule="application-store.queue")
        return await trio.to_thread.run_sync(_translated, work, limiter=self._thread)

    def _change(self, prepare: Callable[[], T], before_commit: BeforeCommit) -> T:
        """Runs in the worker thread."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = prepare()
            trio.from_thread.check_cancelled()
            trio.from_thread.run_sync(before_commit)
        except BaseException:
            roll_back(connection)
            raise
        try:
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(apsw.Error):
                roll_back(connection)
            # Frames with a commit mark may be in the WAL though their sync failed: whether they count is
            # decided by whoever opens the file after a crash.
            raise ActionError(Code.FAILURE, rule=_STORE, committed=None) from None
        return result

    def _read_appearance(self) -> Appearance:
        row = self._connection.execute("SELECT mode, accent, tab_mode FROM appearance")
        mode, accent, tab_mode = row.get
        values = {"mode": mode, "accent": accent, "tabMode": tab_mode}
        return msgspec.convert(
            {name: value for name, value in values.items() if value is not None}, Appearance
        )

    def _read_shelf_at_once(self) -> Bookshelf:
        """Rows and revision of one moment, whatever another process commits meanwhile."""
        self._connection.execute("BEGIN")
        try:
            return self._read_shelf()
        finally:
            roll_back(self._connection)

    def _read_shelf(self) -> Bookshelf:
        revision = int(self._connection.execute("SELECT revision FROM shelf").get)
        rows = self._connection.execute("SELECT id, title, url, folder FROM bookmark ORDER BY place")
        shelf = Bookshelf(revision, tuple(StoredBookmark(*row) for row in rows))
        if not fits(shelf.bookmarks) or not all(map(_well_formed, shelf.bookmarks)):
            raise ValueError("not written by this store")
        return shelf

    def _write(self, change: BookmarkChange) -> None:
        one = change.bookmark
        row = (one.title, one.url, one.folder, one.id)
        if change.action == "add":
            self._connection.execute("INSERT INTO bookmark (title, url, folder, id) VALUES (?, ?, ?, ?)", row)
        elif change.action == "update":
            self._connection.execute("UPDATE bookmark SET title = ?, url = ?, folder = ? WHERE id = ?", row)
        else:
            self._connection.execute("DELETE FROM bookmark WHERE id = ?", (one.id,))


@contextlib.asynccontextmanager
async def application_store(path: str | os.PathLike[str]) -> AsyncIterator[ApplicationStore]:
    """The store at `path` while the block runs.

    The folder is made when absent (0700), the file too (0600). Other processes may have it open: writers take
    turns. Raises `ConfigurationError` naming the file and saying what to do.
    """
    connection = await trio.to_thread.run_sync(open_database, path)
    store = ApplicationStore(connection)
    try:
        yield store
    finally:
        await store.aclose()


def _translated(work: Callable[[], T]) -> T:
    """Runs in the worker thread. The file's errors as typed endings: nothing has been changed by them."""
    try:
        return work()
    except apsw.BusyError:
        raise ActionError(Code.BUSY, rule="application-store.writer") from None
    except (apsw.Error, ValueError, TypeError):
        raise ActionError(Code.FAILURE, rule=_STORE) from None


def _given(change: Appearance) -> dict[str, str]:
    values = {name: getattr(change, name) for name in change.__struct_fields__}
    return {name: value for name, value in values.items() if value is not UNSET}


def _well_formed(one: StoredBookmark) -> bool:
    return plain_text(one.title) and plain_text(one.folder) and web_href(one.url) == one.url
