"""SQLite files that threads and processes share."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from resources.errors import DamagedFileError, StoreError

BUSY_SECONDS = 30.0
Change = Callable[[sqlite3.Connection], None]
NO_UPGRADES: Mapping[int, Change] = MappingProxyType({})


class SqliteFile:
    """A SQLite file with a schema: many readers and one writer at a time, from any thread and process.

    It is opened by the first use. A writer waits up to 30 s for another one. After a fork the child opens its own connection.
    """

    def __init__(
        self,
        path: Path,
        *,
        schema: str,
        version: int,
        remedy: str,
        synchronous: str = "FULL",
        page_size: int = 4096,
        upgrades: Mapping[int, Change] = NO_UPGRADES,
        prepare: Change | None = None,
    ) -> None:
        """Describe the file; see ``open_sqlite`` for the arguments.

        Args:
            prepare: called with each new connection, to register functions and set pragmas.
        """
        self.path = Path(path)
        self._open = lambda: open_sqlite(
            self.path,
            schema=schema,
            version=version,
            remedy=remedy,
            synchronous=synchronous,
            page_size=page_size,
            upgrades=upgrades,
        )
        self._prepare = prepare
        self._remedy = remedy
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give this process's connection, to one thread at a time. Each statement sees what is committed when it runs.

        Raises:
            StoreError: the file is closed, has another schema, or can't be read; also for errors of the block's statements.
            DamagedFileError: the file is damaged or not a SQLite database.
        """
        with self._lock, sqlite_errors(self.path, self._remedy):
            if self._closed:
                raise StoreError(f"{self.path} is closed. Open it again.")
            yield self._connected()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """As ``reading``, and all statements of the block see one state. The block does not write."""
        with self.reading() as connection, _transaction(connection, "BEGIN"):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """As ``reading``, in a transaction: committed at the end of the block, rolled back when the block raises."""
        with self.reading() as connection, _transaction(connection, "BEGIN IMMEDIATE"):  # waits for other writers here
            yield connection

    def disconnect(self) -> None:
        """Close the connection. The next use opens the file again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the file for good."""
        with self._lock:
            self._closed = True
            self.disconnect()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():  # SQLite's connections can't be used after a fork
            connection = self._open()
            if self._prepare is not None:
                self._prepare(connection)
            self._connection, self._process = connection, os.getpid()
        return self._connection


def open_sqlite(
    path: Path,
    *,
    schema: str,
    version: int,
    remedy: str,
    synchronous: str = "FULL",
    page_size: int = 4096,
    upgrades: Mapping[int, Change] = NO_UPGRADES,
) -> sqlite3.Connection:
    """Open a SQLite file in WAL mode, and create it with its folder if there is none. Any thread may use the connection.

    Args:
        path: the file.
        schema: the statements that create the tables, separated by ";".
        version: of the schema; kept in the file as ``user_version``.
        remedy: what to do about a damaged file, as a sentence.
        synchronous: "FULL": a commit survives a power cut; "NORMAL": the last ones may be lost, and the file stays whole.
        page_size: in bytes, of a new file.
        upgrades: by version of an older schema, the function that brings its tables to this one.

    Raises:
        StoreError: the file has another schema, or can't be opened.
        DamagedFileError: the file is damaged or not a SQLite database.
    """
    with sqlite_errors(path, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA page_size = {page_size:d}")
            _use_wal(connection)
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            _ensure_schema(connection, path, schema, version, upgrades)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def sqlite_errors(path: Path, remedy: str) -> Iterator[None]:
    """Raise errors of SQLite and of the file system as StoreError, naming the file and what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        text = str(error)
        if "malformed" in text or "not a database" in text:
            raise DamagedFileError(f"{path} is damaged: {text}. {remedy}") from error
        if "locked" in text or "busy" in text:
            raise StoreError(
                f"{path} can't be used: {text}. Another process has been writing for more than {BUSY_SECONDS:.0f} s: "
                "wait for it to end, or stop it."
            ) from error
        if "disk is full" in text:
            raise StoreError(f"{path} can't be written: {text}. Free some space on the disk of {path.parent}.") from error
        raise StoreError(f"{path} can't be used: {text}.") from error


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_wal(connection: sqlite3.Connection) -> None:
    """Several processes may be the first at once, and changing the journal does not always wait for the busy timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _ensure_schema(connection: sqlite3.Connection, path: Path, schema: str, version: int, upgrades: Mapping[int, Change]) -> None:
    if _version(connection) == version:
        return
    with _transaction(connection, "BEGIN IMMEDIATE"):
        there = _version(connection)  # another process may have been faster
        if there == version:
            return
        if there in upgrades:
            upgrades[there](connection)
        elif there == 0 and not _has_foreign_tables(connection, schema):
            for statement in filter(str.strip, schema.split(";")):
                connection.execute(statement)
        else:
            raise StoreError(
                f"{path} has schema version {there}, and this version of RetriCo uses {version}. "
                "Move the file away and build again, or use the version of RetriCo that wrote it."
            )
        connection.execute(f"PRAGMA user_version = {version:d}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _has_foreign_tables(connection: sqlite3.Connection, schema: str) -> bool:
    """Whether a file without a version has tables that the schema does not create "IF NOT EXISTS"."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return any(f"CREATE TABLE IF NOT EXISTS {name} " not in schema for name in names)
