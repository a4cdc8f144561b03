"""Run as a program: fork writers of one store and kill each at a random moment, then look what is left.

    crash_rounds.py FILE ROUNDS SEED

A writer tells through a pipe what it is about to change, and that it was acknowledged. Ends with status 0
when every acknowledged change was there each time, and nothing else but the one that was being made.
"""

import os
import random
import signal
import sys
from pathlib import Path

import apsw
import msgspec
import trio
from tabwarden_adapters.application import (
    BookmarkChange,
    Bookshelf,
    StoredBookmark,
    application_store,
)

MOST = 30  # bookmarks: changes and removals happen as often as additions


class Told(msgspec.Struct):
    """One line of the pipe. `done` is the revision that was acknowledged."""

    action: str = ""
    bookmark: StoredBookmark | None = None
    done: int | None = None


def next_change(shelf: Bookshelf, chance: random.Random, number: int) -> BookmarkChange:
    text = f"{number}-" + "x" * chance.randrange(200)
    there = [one.id for one in shelf.bookmarks]
    action = chance.choice(["add", "update", "remove"]) if there else "add"
    if len(there) >= MOST:
        action = "remove"
    name = f"{number}-{chance.getrandbits(64):x}" if action == "add" else chance.choice(there)
    one = StoredBookmark(name, text[:256], f"https://a.test/{number}", f"F{number}")
    return BookmarkChange(action, one)  # type: ignore[arg-type]


async def write(path: Path, pipe: int, seed: int) -> None:
    chance = random.Random(seed)

    def tell(told: Told) -> None:
        os.write(pipe, msgspec.json.encode(told) + b"\n")

    async with application_store(path) as store:
        shelf = await store.bookshelf()
        for number in range(1_000_000):
            change = next_change(shelf, chance, number)
            tell(Told(change.action, change.bookmark))
            revision = await store.change_bookmarks(change, shelf.revision, lambda: None)
            tell(Told(done=revision))
            shelf = change.applied_to(shelf)


def killed_writer(path: Path, chance: random.Random) -> list[Told]:
    """Let a writer run until a random number of lines, kill it; return all that it told."""
    reading, writing = os.pipe()
    seed = chance.getrandbits(32)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            trio.run(write, path, writing, seed)
        finally:
            os._exit(status)
    os.close(writing)
    enough = chance.randrange(1, 160)
    told = b""
    with os.fdopen(reading, "rb", 0) as stream:
        while told.count(b"\n") < enough and (more := stream.read(100)):
            told += more
        os.kill(child, signal.SIGKILL)
        while more := stream.read(65536):
            told += more
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    return [msgspec.json.decode(line, type=Told) for line in told[: told.rfind(b"\n") + 1].splitlines()]


def after(shelf: Bookshelf, told: list[Told]) -> tuple[Bookshelf, Bookshelf]:
    """What must be there, and what may be there instead: the change that was being made."""
    possible = shelf
    for one in told:
        if one.done is not None:
            assert one.done == possible.revision, "a revision was left out"
            shelf = possible
        else:
            assert one.bookmark is not None
            possible = BookmarkChange(one.action, one.bookmark).applied_to(shelf)  # type: ignore[arg-type]
    return shelf, possible


async def stored(path: Path) -> Bookshelf:
    async with application_store(path) as store:
        return await store.bookshelf()


def main() -> None:
    path, rounds, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    expected = Bookshelf(0, ())
    acknowledged = unfinished = 0
    for _ in range(rounds):
        told = killed_writer(path, chance)
        sure, possible = after(expected, told)
        expected = trio.run(stored, path)
        assert expected in (sure, possible), (sure.revision, possible.revision, expected.revision)
        acknowledged += sum(one.done is not None for one in told)
        unfinished += expected == possible != sure
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        connection.close()
    assert acknowledged > rounds
    print(f"{acknowledged} acknowledged, {unfinished} committed unacknowledged")  # noqa: T201


if __name__ == "__main__":
    main()
