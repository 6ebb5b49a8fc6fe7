"""The vectors of a store in one SQLite file, kept so that a search index in memory can follow what is written.

Each index has a table of rows. A row is never changed: replacing an item deletes its row and adds one with a higher number, so
that a reader that knows the last row and the last deletion it has seen reads only what came later.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resources.errors import DamagedFileError
from resources.files.sqlite import SqliteFile
from resources.vectors.base import IndexInfo

REMEDY = "Delete it with its -wal and -shm files, and build again: the vectors are made again from the texts."
_SCHEMA = """
CREATE TABLE indexes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, model TEXT NOT NULL, dimension INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 0, training INTEGER NOT NULL DEFAULT 0, clustered_row INTEGER NOT NULL DEFAULT 0,
    forgotten_deletion INTEGER NOT NULL DEFAULT 0);
CREATE TABLE deletions (number INTEGER PRIMARY KEY AUTOINCREMENT, index_number INTEGER NOT NULL, row INTEGER NOT NULL);
CREATE INDEX deletions_by_index ON deletions (index_number);
CREATE TABLE clusters (index_number INTEGER PRIMARY KEY, centroids BLOB NOT NULL, rows BLOB NOT NULL, lists BLOB NOT NULL);
"""
_BLOCK = 8192
_KEPT_DELETIONS = 1000
_PAGE_SIZE = 8192  # four vectors of 384 dimensions with their ids


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index in its current state.

    ``training`` counts the clusterings, 0 before the first; ``clustered_row`` is the last row that the current one covers.
    Deletions up to ``forgotten_deletion`` are no longer in the log.
    """

    number: int
    name: str
    model: str
    dimension: int
    count: int
    training: int
    clustered_row: int
    forgotten_deletion: int

    @property
    def info(self) -> IndexInfo:
        return IndexInfo(self.name, self.model, self.dimension, self.count)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Centroids (c, dimension), and the cluster of each row: ``rows`` (n,) ascending, ``lists`` (n,)."""

    centroids: np.ndarray
    rows: np.ndarray
    lists: np.ndarray


def vector_file(path: Path) -> SqliteFile:
    """The file of a store, which is made by its first use."""
    return SqliteFile(path, schema=_SCHEMA, version=1, remedy=REMEDY, page_size=_PAGE_SIZE)


def index_state(database: sqlite3.Connection, name: str) -> IndexState | None:
    """The state of an index. None if there is no index of this name."""
    row = database.execute(
        "SELECT number, name, model, dimension, count, training, clustered_row, forgotten_deletion FROM indexes WHERE name = ?",
        (name,),
    ).fetchone()
    return IndexState(*row) if row else None


def create_index(database: sqlite3.Connection, name: str, model: str, dimension: int) -> None:
    """Make an empty index."""
    values = (name, model, dimension)
    number = database.execute("INSERT INTO indexes (name, model, dimension) VALUES (?, ?, ?)", values).lastrowid
    database.execute(
        f"CREATE TABLE vectors_{number:d} "
        "(row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, vector BLOB NOT NULL)"
    )


def remove_index(database: sqlite3.Connection, state: IndexState) -> None:
    """Remove an index with its vectors. The file keeps its size, and the space is used again."""
    database.execute(f"DROP TABLE vectors_{state.number:d}")
    database.execute("DELETE FROM indexes WHERE number = ?", (state.number,))
    database.execute("DELETE FROM clusters WHERE index_number = ?", (state.number,))
    database.execute("DELETE FROM deletions WHERE index_number = ?", (state.number,))


def add_vectors(
    database: sqlite3.Connection, state: IndexState, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]
) -> None:
    """Put vectors (n, dimension) of unit length under ids, each given once. Vectors that the ids had before are removed."""
    remove_vectors(database, state, ids)
    data = np.ascontiguousarray(vectors, "<f4")
    database.executemany(
        f"INSERT INTO vectors_{state.number:d} (id, hash, vector) VALUES (?, ?, ?)",
        ((id_, digest, vector.data) for id_, digest, vector in zip(ids, hashes, data, strict=True)),
    )
    database.execute("UPDATE indexes SET count = count + ? WHERE number = ?", (len(ids), state.number))


def remove_vectors(database: sqlite3.Connection, state: IndexState, ids: Iterable[str]) -> int:
    """Remove the known ones among ids. Returns how many there were."""
    table, among = f"vectors_{state.number:d}", (json.dumps(list(ids)),)
    database.execute(
        f"INSERT INTO deletions (index_number, row) SELECT {state.number:d}, row FROM {table} "
        "WHERE id IN (SELECT value FROM json_each(?))",
        among,
    )
    count = database.execute(f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))", among).rowcount
    if count:
        database.execute("UPDATE indexes SET count = count - ? WHERE number = ?", (count, state.number))
        _forget_deletions(database, state)
    return count


def set_clusters(database: sqlite3.Connection, state: IndexState, clusters: Clusters) -> None:
    """Make these the clusters of the index. Rows that were added since they were computed stay outside of them."""
    blobs = (
        np.ascontiguousarray(clusters.centroids, "<f4").tobytes(),
        np.ascontiguousarray(clusters.rows, "<i8").tobytes(),
        np.ascontiguousarray(clusters.lists, "<i4").tobytes(),
    )
    database.execute("INSERT OR REPLACE INTO clusters VALUES (?, ?, ?, ?)", (state.number, *blobs))
    database.execute(
        "UPDATE indexes SET training = training + 1, clustered_row = ? WHERE number = ?", (int(clusters.rows[-1]), state.number)
    )


def read_clusters(database: sqlite3.Connection, state: IndexState) -> Clusters:
    """The clusters of an index that has some."""
    centroids, rows, lists = database.execute(
        "SELECT centroids, rows, lists FROM clusters WHERE index_number = ?", (state.number,)
    ).fetchone()
    return Clusters(
        np.frombuffer(centroids, "<f4").reshape(-1, state.dimension), np.frombuffer(rows, "<i8"), np.frombuffer(lists, "<i4")
    )


def read_hashes(database: sqlite3.Connection, state: IndexState) -> dict[str, str]:
    """The hash of each item, by id."""
    return dict(database.execute(f"SELECT id, hash FROM vectors_{state.number:d} ORDER BY row"))


def read_vectors(database: sqlite3.Connection, state: IndexState, ids: Sequence[str]) -> dict[str, np.ndarray]:
    """The vectors (dimension,) of the known ones among ids."""
    statement = f"SELECT id, vector FROM vectors_{state.number:d} WHERE id IN (SELECT value FROM json_each(?))"
    found = {id_: np.frombuffer(vector, "<f4").copy() for id_, vector in database.execute(statement, (json.dumps(list(ids)),))}
    return {id_: found[id_] for id_ in dict.fromkeys(ids) if id_ in found}


def read_rows(database: sqlite3.Connection, state: IndexState, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Ids, and vectors (n, dimension), of rows that exist."""
    statement = f"SELECT id, vector FROM vectors_{state.number:d} WHERE row IN (SELECT value FROM json_each(?))"
    found = database.execute(statement, (json.dumps(rows.tolist()),)).fetchall()
    return [id_ for id_, _ in found], _matrix(state, [vector for _, vector in found])


def read_blocks(database: sqlite3.Connection, state: IndexState, after: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows (n,) after a row, ascending, with their vectors (n, dimension), some thousand at a time."""
    cursor = database.execute(f"SELECT row, vector FROM vectors_{state.number:d} WHERE row > ? ORDER BY row", (after,))
    while block := cursor.fetchmany(_BLOCK):
        rows, vectors = zip(*block, strict=True)
        yield np.array(rows, np.int64), _matrix(state, vectors)


def row_numbers(database: sqlite3.Connection, state: IndexState) -> np.ndarray:
    """The numbers (n,) of all rows, ascending."""
    rows = database.execute(f"SELECT row FROM vectors_{state.number:d} ORDER BY row").fetchall()
    return np.array(rows, np.int64).reshape(-1)


def last_row(database: sqlite3.Connection, state: IndexState) -> int:
    """The number of the last row; 0 if there is none."""
    return int(database.execute(f"SELECT coalesce(max(row), 0) FROM vectors_{state.number:d}").fetchone()[0])


def read_deletions(database: sqlite3.Connection, state: IndexState, after: int) -> list[tuple[int, int]]:
    """(number, row) of the deletions after a number, ascending."""
    statement = "SELECT number, row FROM deletions WHERE index_number = ? AND number > ? ORDER BY number"
    return database.execute(statement, (state.number, after)).fetchall()


def last_deletion(database: sqlite3.Connection, state: IndexState) -> int:
    """The number of the last deletion, forgotten ones included."""
    row = database.execute("SELECT max(number) FROM deletions WHERE index_number = ?", (state.number,)).fetchone()
    return max(row[0] or 0, state.forgotten_deletion)


def _forget_deletions(database: sqlite3.Connection, state: IndexState) -> None:
    """Empty the log of deletions when it is longer than the index. Readers that have not seen all of it load the index again."""
    limit = max(_KEPT_DELETIONS, state.count)
    of_index = "FROM deletions WHERE index_number = ?"
    first, last = database.execute(f"SELECT min(number), max(number) {of_index}", (state.number,)).fetchone()
    if last - first < limit:  # saves counting; numbers are shared with the other indexes
        return
    if database.execute(f"SELECT count(*) {of_index}", (state.number,)).fetchone()[0] > limit:
        database.execute("DELETE FROM deletions WHERE index_number = ?", (state.number,))
        database.execute("UPDATE indexes SET forgotten_deletion = ? WHERE number = ?", (last, state.number))


def _matrix(state: IndexState, vectors: Sequence[bytes]) -> np.ndarray:
    data = b"".join(vectors)
    if len(data) != len(vectors) * state.dimension * 4:
        raise DamagedFileError(f"A vector of index {state.name!r} does not have {state.dimension} dimensions. {REMEDY}")
    return np.frombuffer(data, "<f4").reshape(len(vectors), state.dimension)
