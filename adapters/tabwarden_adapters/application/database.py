"""The SQLite file: made, checked and opened, with one clear message for each thing that can be wrong with it.

Settings, and why: WAL with synchronous=FULL puts each commit on stable storage before it is acknowledged
(https://sqlite.org/pragma.html#pragma_synchronous); trusted_schema off, defensive on and no memory map,
because the file may have been changed by others; foreign schemas are refused as a whole.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Final

import apsw
from tabwarden.errors import ConfigurationError
from tabwarden.private_files import check_private_file, ensure_private_directory, open_private_file

APPLICATION_ID: Final = 0x54425744  # "TBWD": whose file it is, at a fixed place in its header
SCHEMA_VERSION: Final = 1
OPEN_BUSY_MS: Final = 5_000  # another process of ours is making or recovering the same file
BUSY_MS: Final = 100  # a commit takes a millisecond; what takes longer is answered `busy`, and asked again
MAX_FILE_BYTES: Final = 64 * 1024 * 1024  # some hundred times what fits in it: anything larger is not ours

SCHEMA: Final = (
    "CREATE TABLE appearance (one INTEGER PRIMARY KEY CHECK (one = 1), mode TEXT, "
    "accent TEXT, tab_mode TEXT) STRICT",
    "CREATE TABLE shelf (one INTEGER PRIMARY KEY CHECK (one = 1), "
    "revision INTEGER NOT NULL CHECK (revision >= 0)) STRICT",
    "CREATE TABLE bookmark (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, "
    "url TEXT NOT NULL, folder TEXT NOT NULL) STRICT",
)
_FIRST_ROWS: Final = (
    "INSERT INTO appearance VALUES (1, NULL, NULL, NULL)",
    "INSERT INTO shelf VALUES (1, 0)",
)


def open_database(path: str | os.PathLike[str]) -> apsw.Connection:
    """Open the store at `path`, or make it: 0600, in a folder that is checked (0700, ours) or made.

    An empty file is a store that was not made to its end, and is made. Blocks; may be used by one thread at a
    time. Raises `ConfigurationError` naming the file and saying what to do.
    """
    shown = os.path.abspath(path)
    ensure_private_directory(os.path.dirname(shown))
    _ensure_private_files(shown)
    connection: apsw.Connection | None = None
    try:
        with _explained(shown):
            connection = apsw.Connection(shown, flags=apsw.SQLITE_OPEN_READWRITE)
            _configure(connection)
            _prepare(connection, shown)
            connection.set_busy_timeout(BUSY_MS)
    except BaseException:
        if connection is not None:
            connection.close(True)
        raise
    return connection


def _ensure_private_files(shown: str) -> None:
    """SQLite gives its companions the mode of the file, but opens what is there already."""
    with contextlib.suppress(FileExistsError):
        os.close(open_private_file(shown, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    for name in (shown, f"{shown}-wal", f"{shown}-shm"):
        with contextlib.suppress(FileNotFoundError):
            _check(name)


def _check(shown: str) -> None:
    state = os.lstat(shown)
    if stat.S_ISLNK(state.st_mode):
        raise ConfigurationError(f"{shown} is a symbolic link: put the file itself there")
    if not stat.S_ISREG(state.st_mode):
        raise ConfigurationError(f"{shown} is not a regular file: remove it, or name another file")
    try:
        # O_PATH where there is one: closing any other descriptor of the file would drop the locks that this
        # process holds on it already (fcntl(2), F_SETLK).
        file = os.open(shown, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigurationError(f"cannot open {shown}: {os.strerror(error.errno or 0)}") from None
    try:
        if check_private_file(file, shown).st_size > MAX_FILE_BYTES:
            raise ConfigurationError(
                f"{shown} is larger than any store of ours: name another file, or restore a backup"
            )
    finally:
        os.close(file)


def _configure(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(OPEN_BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    for pragma in ("mmap_size = 0", "cell_size_check = ON", "synchronous = FULL", "fullfsync = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _prepare(connection: apsw.Connection, shown: str) -> None:
    # First of all: a WAL is a change of the file, and another program's is not to be changed.
    if not _is_blank(connection):
        _check_ours(connection, shown)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise ConfigurationError(f"{shown} is where SQLite cannot keep a WAL: name a file on a local disk")
    if _is_blank(connection):
        with writing(connection):
            if _is_blank(connection):  # or another process was quicker
                for statement in (*SCHEMA, *_FIRST_ROWS):
                    connection.execute(statement)
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", SCHEMA_VERSION)
    _check_ours(connection, shown)
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise ConfigurationError(
            f"{shown} was written by a newer Tabwarden (schema {version}, this one knows {SCHEMA_VERSION}): "
            "update this one, or name another file"
        )
    if version != SCHEMA_VERSION or _schema(connection) != set(SCHEMA):
        raise _damaged(shown, "its tables are not those of a store")
    if connection.execute("PRAGMA integrity_check(1)").get != "ok":
        raise _damaged(shown, "SQLite's integrity check fails")


def _check_ours(connection: apsw.Connection, shown: str) -> None:
    if connection.pragma("application_id") != APPLICATION_ID:
        raise ConfigurationError(f"{shown} is another program's database: name another file")


def _is_blank(connection: apsw.Connection) -> bool:
    """Nothing in it yet: it is new, or whoever made it was interrupted."""
    return (
        connection.pragma("application_id") == 0
        and connection.pragma("user_version") == 0
        and not _schema(connection)
    )


def _schema(connection: apsw.Connection) -> set[str]:
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_autoindex_%'")
    return {str(sql) for (sql,) in rows}


@contextlib.contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction around the block: committed at its end, rolled back when it raises.

    Raises `apsw.BusyError` before the block when another connection writes.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: apsw.Connection) -> None:
    """End the transaction, if SQLite has not done so by itself (as after a failed write)."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _damaged(shown: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{shown} is damaged: {what}; move it and its -wal and -shm aside, and restore a backup or start anew"
    )


@contextlib.contextmanager
def _explained(shown: str) -> Iterator[None]:
    """SQLite's errors as one line that says what to do. Its own texts may quote the file: they end here."""
    try:
        yield
    except apsw.BusyError:
        raise ConfigurationError(
            f"{shown} is in use by another program: end it, or name another file"
        ) from None
    except apsw.NotADBError:
        raise _damaged(shown, "it is not an SQLite database") from None
    except (apsw.CorruptError, UnicodeDecodeError):
        raise _damaged(shown, "SQLite cannot read it") from None
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError):
        raise ConfigurationError(
            f"cannot write {shown} or the folder it is in: check their permissions"
        ) from None
    except apsw.FullError:
        raise ConfigurationError(f"no room for {shown}: free space on its disk") from None
    except apsw.Error as error:
        raise ConfigurationError(
            f"cannot use {shown}: SQLite says {type(error).__name__}; check its disk, or name another file"
        ) from None
