"""The file: who may open it, and one clear message for each thing that can be wrong with it."""

import contextlib
import hashlib
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
import trio
from tabwarden.actions import Appearance
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden_adapters.application import BookmarkChange, application_store, database
from tabwarden_adapters.application.database import SCHEMA, SCHEMA_VERSION

from tests.application.support import bookmark, files


def use(path: Path, times: int = 30) -> None:
    """Open the store, change it, close it."""

    async def change() -> None:
        async with application_store(path) as store:
            await store.change_appearance(Appearance(mode="dark"), lambda: None)
            start = (await store.bookshelf()).revision
            for number in range(start, start + times):
                await store.change_bookmarks(BookmarkChange("add", bookmark(number)), number, lambda: None)

    trio.run(change)


def statements(path: Path, *texts: str) -> None:
    connection = apsw.Connection(str(path))
    for text in texts:
        connection.execute(text)
    connection.close()


def private(path: Path) -> None:
    path.chmod(0o600)


def test_folder_and_files_are_private(tmp_path: Path):
    path = tmp_path / "made" / "here" / "application.db"

    async def look() -> dict[str, int]:
        async with application_store(path) as store:
            await store.change_appearance(Appearance(mode="dark"), lambda: None)
            return files(path.parent)

    old = os.umask(0)
    try:
        found = trio.run(look)
    finally:
        os.umask(old)
    assert set(found) == {"application.db", "application.db-wal", "application.db-shm"}
    assert set(found.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert set(files(path.parent)) == {"application.db"}


def test_what_was_changed_is_there_when_it_is_opened_again(tmp_path: Path):
    use(tmp_path / "a.db")
    use(tmp_path / "a.db")

    async def look() -> None:
        async with application_store(tmp_path / "a.db") as store:
            shelf = await store.bookshelf()
            assert (shelf.revision, len(shelf.bookmarks)) == (60, 60)
            assert (await store.appearance()).mode == "dark"

    trio.run(look)


def test_an_empty_file_is_a_store_that_was_not_made_to_its_end(tmp_path: Path):
    (tmp_path / "a.db").touch(0o600)
    use(tmp_path / "a.db", 1)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def truncated_to_a_header(path: Path) -> None:
    os.truncate(path, 100)


def truncated_within_the_header(path: Path) -> None:
    os.truncate(path, 50)


def random_bytes(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(20_000))


def random_bytes_behind_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100] + random.Random(2).randbytes(30_000))


def text(path: Path) -> None:
    path.write_text('{"bookmarks": []}')


def another_programs(path: Path) -> None:
    path.unlink()
    statements(path, "CREATE TABLE moz_places (id INTEGER PRIMARY KEY)")
    private(path)


def newer(path: Path) -> None:
    statements(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def older(path: Path) -> None:
    statements(path, "PRAGMA user_version = 0")


def with_a_trigger(path: Path) -> None:
    statements(path, "CREATE TRIGGER t AFTER INSERT ON bookmark BEGIN DELETE FROM bookmark; END")


def with_another_column(path: Path) -> None:
    statements(path, "ALTER TABLE bookmark ADD COLUMN visits INTEGER")


def without_a_table(path: Path) -> None:
    statements(path, "DROP TABLE shelf")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def hard_link(path: Path) -> None:
    os.link(path, path.with_name("other"))


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def open_to_others(path: Path) -> None:
    path.chmod(0o640)


def huge(path: Path) -> None:
    os.truncate(path, 65 * 1024 * 1024)


def device(path: Path) -> None:
    path.unlink()
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no device can be made here")


def link_to_a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def in_utf_16(path: Path) -> None:
    path.unlink()
    statements(path, "PRAGMA encoding = 'UTF-16'", "CREATE TABLE moz_places (id INTEGER PRIMARY KEY)")
    private(path)


def zeros(path: Path) -> None:
    path.write_bytes(bytes(20_000))


def with_one_more_table(path: Path) -> None:
    statements(path, "CREATE TABLE more (id INTEGER PRIMARY KEY)")


def of_a_much_newer_version(path: Path) -> None:
    statements(path, f"PRAGMA user_version = {2**31 - 1}")


def wal_link(path: Path) -> None:
    path.with_name(path.name + "-wal").symlink_to("/etc/passwd")


def shm_directory(path: Path) -> None:
    path.with_name(path.name + "-shm").mkdir()


def open_folder(path: Path) -> None:
    path.parent.chmod(0o755)


DAMAGE: list[tuple[Callable[[Path], None], str]] = [
    (truncated, "is damaged"),
    (truncated_to_a_header, "is damaged"),
    (truncated_within_the_header, "is damaged"),
    (random_bytes, "is damaged"),
    (random_bytes_behind_the_header, "is damaged"),
    (text, "is damaged"),
    (another_programs, "is another program's database: name another file"),
    (newer, "was written by a newer Tabwarden (schema 2, this one knows 1): update this one"),
    (older, "is damaged: its tables are not those of a store"),
    (with_a_trigger, "is damaged: its tables are not those of a store"),
    (with_another_column, "is damaged: its tables are not those of a store"),
    (without_a_table, "is damaged: its tables are not those of a store"),
    (directory, "is not a regular file: remove it"),
    (link, "is a symbolic link: put the file itself there"),
    (dangling_link, "is a symbolic link: put the file itself there"),
    (hard_link, "has another name (a hard link)"),
    (pipe, "is not a regular file: remove it"),
    (open_to_others, "is open to other users: chmod 600 it"),
    (huge, "is larger than any store of ours"),
    (device, "is not a regular file: remove it"),
    (link_to_a_device, "is a symbolic link: put the file itself there"),
    (in_utf_16, "is another program's database: name another file"),
    (zeros, "is damaged"),
    (with_one_more_table, "is damaged: its tables are not those of a store"),
    (of_a_much_newer_version, "was written by a newer Tabwarden (schema 2147483647, this one knows 1)"),
    (wal_link, "-wal is a symbolic link"),
    (shm_directory, "-shm is not a regular file: remove it"),
    (open_folder, "is open to other users: chmod 700 it"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_what_is_wrong_is_said(tmp_path: Path, damage: Callable[[Path], None], message: str):
    path = tmp_path / "folder" / "application.db"
    use(path)
    damage(path)
    before = path.read_bytes() if path.is_file() and path.stat().st_size < 2**20 else None
    with pytest.raises(ConfigurationError) as caught:
        use(path)
    assert before is None or path.read_bytes() == before, "what is not ours, or is broken, stays as it is"
    said = str(caught.value)
    assert message in said
    assert str(path.parent) in said
    assert "\n" not in said
    if "damaged" in message:
        assert "restore a backup or start anew" in said


def test_a_store_that_a_writer_holds_can_be_opened(tmp_path: Path):
    path = tmp_path / "a.db"
    use(path, 1)
    writer = apsw.Connection(str(path))
    writer.execute("BEGIN IMMEDIATE")

    async def look() -> None:
        async with application_store(path) as store:
            assert (await store.bookshelf()).revision == 1
            with pytest.raises(ActionError) as caught:
                await store.change_bookmarks(BookmarkChange("add", bookmark(9)), 1, lambda: None)
            assert (caught.value.code, caught.value.committed) == (Code.BUSY, False)

    trio.run(look)
    writer.close()


def test_a_store_that_another_program_has_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.db"
    use(path, 1)
    monkeypatch.setattr(database, "OPEN_BUSY_MS", 1)
    owner = apsw.Connection(str(path))
    owner.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    owner.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ConfigurationError) as caught:
        use(path, 1)
    assert f"{path} is in use by another program" in str(caught.value)
    owner.close()


def test_a_file_of_ours_with_foreign_rows_is_not_believed(tmp_path: Path):
    path = tmp_path / "a.db"
    use(path, 1)
    statements(path, "UPDATE bookmark SET url = 'javascript:alert(1)'")

    async def look() -> None:
        async with application_store(path) as store:
            for attempt in (
                store.bookshelf,
                lambda: store.change_bookmarks(BookmarkChange("add", bookmark(9)), 1, lambda: None),
            ):
                with pytest.raises(ActionError) as caught:
                    await attempt()
                ending = (caught.value.code, caught.value.rule, caught.value.committed)
                assert ending == (Code.FAILURE, "application-store", False)

    trio.run(look)


@pytest.mark.parametrize("seed", range(40))
def test_changed_bytes_lead_to_typed_endings_only(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    path = tmp_path / "a.db"
    use(path)
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 4, 64])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])

    async def try_it() -> None:
        async with application_store(path) as store:
            shelf = await store.bookshelf()
            await store.change_bookmarks(BookmarkChange("add", bookmark(99)), shelf.revision, lambda: None)
            await store.appearance()

    with contextlib.suppress(ConfigurationError, ActionError):
        trio.run(try_it)


def test_the_schema_is_what_version_1_says():
    """A change of these texts needs a new version, and a way from the old one."""
    assert SCHEMA_VERSION == 1
    digest = hashlib.sha256("\n".join(SCHEMA).encode()).hexdigest()
    assert digest == "e87cf3498dd54409cd7067f7dd182ac35c26936c33117c5c2438f7ca74367afd"
