"""SQLite files that threads and processes share."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from resources.errors import DamagedFileError, StoreError
from resources.files.sqlite import SqliteFile

REMEDY = "Delete it and build again."


def opened(path: Path, **options: Any) -> SqliteFile:
    return SqliteFile(path, **{"schema": "CREATE TABLE t (x); CREATE TABLE u (y)", "version": 3, "remedy": REMEDY} | options)


def rows(file: SqliteFile) -> list[int]:
    with file.reading() as database:
        return [x for (x,) in database.execute("SELECT x FROM t ORDER BY x")]


def write(file: SqliteFile, *values: int, fail: bool = False) -> None:
    with file.writing() as database:
        database.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        if fail:
            raise ValueError("stop")


def test_a_transaction_is_committed_or_rolled_back_as_a_whole(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "new" / "a.db")) as file:
        write(file, 1, 2)
        with pytest.raises(ValueError, match="stop"):
            write(file, 3, fail=True)
        assert rows(file) == [1, 2]
    with pytest.raises(StoreError, match="closed"):
        rows(file)


def test_a_snapshot_does_not_see_later_commits(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "a.db")) as file, closing(opened(tmp_path / "a.db")) as other:
        write(file, 1)
        with other.snapshot() as database:
            assert database.execute("SELECT count(*) FROM t").fetchone() == (1,)
            write(file, 2)
            assert database.execute("SELECT count(*) FROM t").fetchone() == (1,)
        assert rows(other) == [1, 2]


def test_a_child_after_a_fork_uses_a_connection_of_its_own(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "a.db")) as file:
        write(file, 1)
        child = os.fork()
        if child == 0:
            write(file, 2)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert rows(file) == [1, 2]


def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(DamagedFileError, match=r"a\.db is damaged: file is not a database\. Delete it and build again"):
        rows(opened(path))


def test_files_of_another_schema_or_of_another_program_are_refused(tmp_path: Path) -> None:
    opened(tmp_path / "a.db")
    for version, table in ((4, "t"), (0, "theirs")):
        path = tmp_path / f"{version}.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"CREATE TABLE {table} (x)")
            database.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(
            StoreError, match=rf"schema version {version}, and this version of RetriCo uses 3. Move the file away"
        ):
            rows(opened(path))


def test_a_file_from_before_versions_is_accepted_when_the_schema_creates_what_is_missing(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (7)")
        database.commit()
    with closing(opened(tmp_path / "a.db", schema="CREATE TABLE IF NOT EXISTS t (x)")) as file:
        assert rows(file) == [7]


def test_a_missing_right_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(StoreError, match=r"folder/a\.db can't be used"):
        rows(opened(tmp_path / "folder" / "a.db"))
