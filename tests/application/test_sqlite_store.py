"""The store on a real file: compare-and-set, busy before anything begins, and what a cancellation leaves."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from tabwarden.actions import Appearance
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.application import (
    ApplicationStore,
    BookmarkChange,
    Bookshelf,
    application_store,
)
from tabwarden_adapters.application.sqlite_store import QUEUE

from tests.application.support import bookmark

FIRST = BookmarkChange("add", bookmark(1))


def nothing() -> None:
    """Before the commit."""


@asynccontextmanager
async def opened_store(tmp_path: Path) -> AsyncIterator[ApplicationStore]:
    async with application_store(tmp_path / "folder" / "a.db") as store:
        yield store


async def ending(attempt: Any) -> tuple[Code, bool | None]:
    with pytest.raises(ActionError) as caught:
        await attempt
    return caught.value.code, caught.value.committed


async def test_changes_in_order(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        for number in range(3):
            assert await store.change_bookmarks(BookmarkChange("add", bookmark(number)), number, nothing) == (
                number + 1
            )
        await store.change_bookmarks(BookmarkChange("update", bookmark(1, title="new")), 3, nothing)
        await store.change_bookmarks(BookmarkChange("remove", bookmark(0)), 4, nothing)
        assert await store.bookshelf() == Bookshelf(5, (bookmark(1, title="new"), bookmark(2)))


async def test_what_is_not_current_changes_nothing(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        await store.change_bookmarks(FIRST, 0, nothing)
        for change, revision in [
            (BookmarkChange("add", bookmark(2)), 0),
            (BookmarkChange("add", bookmark(2)), 2),
            (BookmarkChange("add", bookmark(1)), 1),
            (BookmarkChange("update", bookmark(2)), 1),
            (BookmarkChange("remove", bookmark(2)), 1),
        ]:
            called: list[int] = []
            attempt = store.change_bookmarks(change, revision, lambda: called.append(1))  # noqa: B023
            assert await ending(attempt) == (Code.CONFLICT, False)
            assert called == []
        assert await store.bookshelf() == Bookshelf(1, (bookmark(1),))


async def test_settings_keep_what_is_not_named(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        after = await store.change_appearance(Appearance(accent="teal"), nothing)
        assert after == Appearance(accent="teal")
        assert await store.appearance() == after


async def test_what_before_commit_raises_prevents_the_change(tmp_path: Path):
    def refuses() -> None:
        raise ActionError(Code.STALE)

    async with opened_store(tmp_path) as store:
        assert await ending(store.change_bookmarks(FIRST, 0, refuses)) == (Code.STALE, False)
        assert await ending(store.change_appearance(Appearance(mode="dark"), refuses)) == (Code.STALE, False)
        assert await store.bookshelf() == Bookshelf(0, ())
        await store.change_bookmarks(FIRST, 0, nothing)


async def test_before_commit_runs_in_the_event_loop(tmp_path: Path):
    loop = threading.get_ident()
    async with opened_store(tmp_path) as store:
        seen: list[tuple[int, object]] = []

        def look() -> None:
            seen.append((threading.get_ident(), trio.lowlevel.current_task()))

        await store.change_bookmarks(FIRST, 0, look)
        assert seen == [(loop, trio.lowlevel.current_task())]


# ---- busy -----------------------------------------------------------------------------------------------


async def test_another_writer_makes_it_busy_before_anything_begins(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        other = apsw.Connection(str(tmp_path / "folder" / "a.db"))
        other.execute("BEGIN IMMEDIATE")
        called: list[int] = []
        for attempt in (
            store.change_bookmarks(FIRST, 0, lambda: called.append(1)),
            store.change_appearance(Appearance(mode="dark"), lambda: called.append(1)),
        ):
            assert await ending(attempt) == (Code.BUSY, False)
        assert called == []
        assert (await store.bookshelf()).revision == 0  # reading is not kept from
        other.execute("ROLLBACK")
        assert await store.change_bookmarks(FIRST, 0, nothing) == 1
        other.close()


async def test_a_full_queue_makes_it_busy(tmp_path: Path):
    endings: list[object] = []

    async def change(store: ApplicationStore, number: int) -> None:
        try:
            await store.change_bookmarks(BookmarkChange("add", bookmark(number)), 0, nothing)
            endings.append("done")
        except ActionError as error:
            endings.append((error.code, error.committed))

    async with opened_store(tmp_path) as store:
        async with trio.open_nursery() as nursery:
            for number in range(1 + QUEUE + 3):
                nursery.start_soon(change, store, number)
        assert endings.count((Code.BUSY, False)) == 3
        assert endings.count((Code.CONFLICT, False)) == QUEUE
        assert endings.count("done") == 1
        assert (await store.bookshelf()).revision == 1


# ---- cancellation -----------------------------------------------------------------------------------------


class Held:
    """A change that stops in the worker thread, in the middle of its transaction."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self.go_on = threading.Event()
        self.token = trio.lowlevel.current_trio_token()
        self.action = FIRST.action
        self.bookmark = FIRST.bookmark

    def applied_to(self, shelf: Bookshelf) -> Bookshelf:
        self.token.run_sync_soon(self.reached.set)
        self.go_on.wait(60)
        return FIRST.applied_to(shelf)


async def test_cancelled_while_it_waits_for_the_thread(tmp_path: Path):
    async with opened_store(tmp_path) as store, trio.open_nursery() as nursery:
        held: Any = Held()
        nursery.start_soon(store.change_bookmarks, held, 0, nothing)
        await held.reached.wait()
        called: list[int] = []
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.change_bookmarks(BookmarkChange("add", bookmark(2)), 1, lambda: called.append(1))
        assert scope.cancelled_caught
        held.go_on.set()
        assert await store.bookshelf() == Bookshelf(1, (bookmark(1),))
        assert called == []


async def test_cancelled_within_the_transaction(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        held: Any = Held()
        called: list[int] = []
        scope = trio.CancelScope()

        async def change() -> None:
            with scope:
                await store.change_bookmarks(held, 0, lambda: called.append(1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            await held.reached.wait()
            scope.cancel()
            held.go_on.set()
        assert scope.cancelled_caught
        assert called == []
        assert await store.bookshelf() == Bookshelf(0, ())


async def test_cancelled_at_the_commit_it_is_committed(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        with trio.CancelScope() as scope:
            assert await store.change_bookmarks(FIRST, 0, scope.cancel) == 1
        assert not scope.cancelled_caught
        assert (await store.bookshelf()).revision == 1


@pytest.mark.parametrize("turns", range(12))
async def test_cancelled_at_any_turn_it_is_done_or_not(tmp_path: Path, turns: int):
    """Whenever the cancellation comes: what the caller knows is what is in the file."""
    async with opened_store(tmp_path) as store:
        scope, told = trio.CancelScope(), list[str]()

        async def change() -> None:
            with scope:
                await store.change_bookmarks(FIRST, 0, lambda: told.append("begin"))
                told.append("done")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        assert told in ([], ["begin", "done"])
        assert (await store.bookshelf()).revision == (1 if told else 0)


# ---- failures ---------------------------------------------------------------------------------------------


async def test_a_commit_that_fails_is_unknown(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        store._connection.set_commit_hook(lambda: True)  # turns COMMIT into an error (sqlite3_commit_hook)
        assert await ending(store.change_bookmarks(FIRST, 0, nothing)) == (Code.FAILURE, None)
        store._connection.set_commit_hook(None)
        assert await store.bookshelf() == Bookshelf(0, ())
        assert await store.change_bookmarks(FIRST, 0, nothing) == 1


async def test_no_room_before_the_commit_is_not_started(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        pages = store._connection.pragma("page_count")
        store._connection.pragma("max_page_count", pages)
        code: tuple[Code, bool | None] | None = None
        for number in range(200):
            try:
                await store.change_bookmarks(BookmarkChange("add", bookmark(number)), number, nothing)
            except ActionError as error:
                code = error.code, error.committed
                break
        assert code == (Code.FAILURE, False)
        assert (await store.bookshelf()).revision == number


async def test_a_closed_store(tmp_path: Path):
    async with opened_store(tmp_path) as store:
        await store.aclose()
        await store.aclose()
        assert await ending(store.bookshelf()) == (Code.SHUTTING_DOWN, False)
        assert await ending(store.change_bookmarks(FIRST, 0, nothing)) == (Code.SHUTTING_DOWN, False)


async def test_closing_waits_for_what_runs(tmp_path: Path):
    held: Any = Held()
    async with trio.open_nursery() as nursery, opened_store(tmp_path) as store:
        nursery.start_soon(store.change_bookmarks, held, 0, nothing)
        await held.reached.wait()
        held.go_on.set()
    async with opened_store(tmp_path) as store:
        assert (await store.bookshelf()).revision == 1
