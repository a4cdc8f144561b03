"""The file with other processes: two writers take turns, and one that is killed loses nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.application import Bookshelf, application_store

ROOT = Path(__file__).parents[2]
CHANGES = 40
WRITER = f"""
import sys
import trio
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.application import BookmarkChange, StoredBookmark, application_store

async def main():
    async with application_store(sys.argv[1]) as store:
        done = 0
        while done < {CHANGES}:
            shelf = await store.bookshelf()
            one = StoredBookmark(f"{{sys.argv[2]}}-{{done}}", "T", "https://a.test/")
            try:
                revision = await store.change_bookmarks(BookmarkChange("add", one), shelf.revision, int)
            except ActionError as error:
                assert error.code in (Code.CONFLICT, Code.BUSY) and error.committed is False, error
                continue
            assert revision == shelf.revision + 1
            done += 1

trio.run(main)
"""


def python(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return out


async def stored(path: Path) -> Bookshelf:
    async with application_store(path) as store:
        return await store.bookshelf()


def test_two_processes_make_the_file_at_once_and_lose_no_change(tmp_path: Path):
    path = tmp_path / "folder" / "a.db"
    for process in [python("-c", WRITER, str(path), name) for name in ("one", "two")]:
        finish(process)
    shelf = trio.run(stored, path)
    assert shelf.revision == len(shelf.bookmarks) == 2 * CHANGES
    for name in ("one", "two"):
        mine = [one.id for one in shelf.bookmarks if one.id.startswith(name)]
        assert mine == [f"{name}-{number}" for number in range(CHANGES)]


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_ten_times(tmp_path: Path, seed: int):
    rounds = python("-m", "tests.application.crash_rounds", str(tmp_path / "a.db"), "10", str(seed))
    assert "acknowledged" in finish(rounds)
