"""Documents and chunks in one SQLite file, with full-text search by FTS5."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from resources.errors import StoreError
from resources.files.sqlite import SqliteFile
from resources.records import Chunk, Document, Scored
from resources.text.characters import is_storable, storable
from resources.text.words import question_phrases, search_words
from resources.texts.base import TextStore, content_hash
from resources.texts.sqlite_records import add_functions, select_chunks
from resources.texts.structured import ChunkRow, Filter, Sort, check_query

SCHEMA_VERSION = 2
_REMEDY = "Move it away with its -wal and -shm files, and build again."

# The words of a chunk are cut by us (texts/words.py) and stored joined by blanks. To the ascii tokenizer every
# character beyond ASCII is part of a word, so that it splits at the blanks and nowhere else.
_SCHEMA = """
CREATE TABLE documents (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, text_hash TEXT NOT NULL,
    metadata TEXT NOT NULL, content_hash TEXT NOT NULL);
CREATE INDEX documents_by_source ON documents (source);
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document_id TEXT NOT NULL REFERENCES documents (id),
    position INTEGER NOT NULL, text TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL, metadata TEXT NOT NULL,
    UNIQUE (document_id, position));
CREATE VIRTUAL TABLE chunk_words USING fts5 (words, tokenize = "ascii tokenchars '+#&.'");
"""
_DOCUMENT = "id, source, title, text, text_hash, metadata"
_CHUNK = 'chunks.id, chunks.document_id, chunks.position, chunks.text, chunks.start, chunks."end", chunks.metadata'
_AMONG = "IN (SELECT value FROM json_each(?))"


class SqliteTextStore(TextStore):
    """A text store in one file: one writer at a time and many readers, from any thread and process.

    A writer waits up to 30 s for another one. Every write is one transaction; a bad row is refused by name before
    anything is written, so that a batch is stored whole or not at all. NUL and lone surrogates, which cleaning should
    have taken out already, are left out of texts. Every failure of the database is a StoreError.
    """

    @classmethod
    def open(cls, options: Any, folder: Path) -> Self:
        """The store in ``texts.db`` of the folder, which is made if needed."""
        return cls(Path(folder) / "texts.db")

    def __init__(self, path: Path) -> None:
        """Open the file, and make it if there is none. Raises StoreError for a file of another kind or schema."""
        self.path = Path(path)
        self._file = SqliteFile(
            self.path,
            schema=_SCHEMA,
            version=SCHEMA_VERSION,
            remedy=_REMEDY,
            upgrades={1: _cut_words_again},  # the same tables, with words cut by older rules
            prepare=_prepare,
        )
        with self._file.reading():  # a file that can't be used is reported now
            pass

    def close(self) -> None:
        self._file.close()

    def document_hashes(self) -> dict[str, str]:
        with self._file.reading() as database:
            return dict(database.execute("SELECT id, content_hash FROM documents ORDER BY id").fetchall())

    def put_documents(self, documents: Sequence[Document]) -> int:
        rows = [_document_row(document) for document in documents]
        with self._file.writing() as database:
            database.executemany(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET source = excluded.source, "
                "title = excluded.title, text = excluded.text, text_hash = excluded.text_hash, "
                "metadata = excluded.metadata, content_hash = excluded.content_hash",
                rows,
            )
        return len(rows)

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        ids = _json_ids(document_ids)
        with self._file.writing() as database:
            _delete_chunks(database, ids)
            return database.execute(f"DELETE FROM documents WHERE id {_AMONG}", (ids,)).rowcount

    def chunk_ids(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        with self._file.reading() as database:
            for document_id, chunk_id in database.execute("SELECT document_id, id FROM chunks ORDER BY document_id, position"):
                found.setdefault(document_id, []).append(chunk_id)
        return found

    def document_titles(self) -> dict[str, str]:
        with self._file.reading() as database:
            return dict(database.execute("SELECT id, title FROM documents ORDER BY id"))

    def replace_chunks(self, chunks_by_document: Mapping[str, Sequence[Chunk]]) -> int:
        """As the base says; raises StoreError for a chunk of a document that is not stored."""
        rows = _chunk_rows(chunks_by_document)
        with self._file.writing() as database:
            _check_documents_are_stored(database, {row[1] for row in rows}, self.path)
            _delete_chunks(database, _json_ids(chunks_by_document))
            _check_ids_are_free(database, rows, self.path)
            first = database.execute("SELECT coalesce(max(number), 0) + 1 FROM chunks").fetchone()[0]
            database.executemany(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ((n, *row) for n, row in enumerate(rows, first))
            )
            database.executemany(
                "INSERT INTO chunk_words (rowid, words) VALUES (?, ?)",
                ((n, " ".join(search_words(row[3]))) for n, row in enumerate(rows, first)),
            )
        return len(rows)

    def get_documents(self, document_ids: Sequence[str]) -> dict[str, Document]:
        with self._file.reading() as database:
            rows = database.execute(f"SELECT {_DOCUMENT} FROM documents WHERE id {_AMONG}", (_json_ids(document_ids),))
            return {row[0]: _document(row) for row in rows}

    def get_chunks(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        with self._file.reading() as database:
            rows = database.execute(f"SELECT {_CHUNK} FROM chunks WHERE id {_AMONG}", (_json_ids(chunk_ids),))
            return {row[0]: _chunk(row) for row in rows}

    def documents(self, page_size: int = 500) -> Iterator[Document]:
        statement = f"SELECT {_DOCUMENT} FROM documents WHERE id > ? ORDER BY id LIMIT ?"
        for row in self._pages(statement, ("",), lambda row: (row[0],), page_size):
            yield _document(row)

    def chunks(self, page_size: int = 5000) -> Iterator[Chunk]:
        statement = f"SELECT {_CHUNK} FROM chunks WHERE (document_id, position) > (?, ?) ORDER BY document_id, position LIMIT ?"
        for row in self._pages(statement, ("", -1), lambda row: (row[1], row[2]), page_size):
            yield _chunk(row)

    def search(self, question: str, k: int, *, source: str | None = None) -> list[Scored[Chunk]]:
        if k < 0:
            raise StoreError(f"k is {k}; ask for a number of chunks of 0 or more")
        expression = match_expression(question)
        if not expression or k == 0:
            return []
        # The texts are fetched for the best k only. SQLite's bm25() is negative: the smaller the better.
        of_source = "" if source is None else "JOIN documents ON documents.id = chunks.document_id AND documents.source = :source"
        statement = f"""
            WITH best AS (
                SELECT chunks.number, chunks.id, -bm25(chunk_words) AS score
                FROM chunk_words JOIN chunks ON chunks.number = chunk_words.rowid
                {of_source}
                WHERE chunk_words MATCH :expression ORDER BY score DESC, chunks.id LIMIT :k)
            SELECT {_CHUNK}, best.score FROM best JOIN chunks ON chunks.number = best.number
            ORDER BY best.score DESC, chunks.id"""
        with self._file.reading() as database:
            rows = database.execute(statement, {"expression": expression, "k": k, "source": source}).fetchall()
        return [Scored(_chunk(row), row[7]) for row in rows]

    def query_chunks(
        self, filters: Sequence[Filter] = (), sort: Sequence[Sort] = (), limit: int = 50, offset: int = 0
    ) -> list[ChunkRow]:
        check_query(filters, sort, limit, offset)
        with self._file.reading() as database:
            rows = select_chunks(database, _CHUNK, filters, sort, limit, offset)
        return [ChunkRow(_chunk(row), row[7], row[8]) for row in rows]

    def count(self) -> tuple[int, int]:
        with self._file.reading() as database:
            row = database.execute("SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)").fetchone()
        return row[0], row[1]

    def _pages(self, statement: str, key: tuple[Any, ...], key_of: Any, page_size: int) -> Iterator[tuple[Any, ...]]:
        """Rows page by page; between pages no lock is held and other writers may come."""
        if page_size < 1:
            raise StoreError(f"page_size is {page_size}; it must be 1 or more")
        while True:
            with self._file.reading() as database:
                rows = database.execute(statement, (*key, page_size)).fetchall()
            yield from rows
            if len(rows) < page_size:
                return
            key = key_of(rows[-1])


def match_expression(question: str) -> str:
    """An FTS5 query for chunks that hold a phrase of the question; empty if there is nothing to look for.

    Every phrase is quoted, so that no word is syntax.
    """
    return " OR ".join(f'"{" ".join(phrase)}"' for phrase in question_phrases(question))


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    add_functions(connection)


def _cut_words_again(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM chunk_words")
    texts = connection.execute("SELECT number, text FROM chunks")
    connection.executemany(
        "INSERT INTO chunk_words (rowid, words) VALUES (?, ?)", ((number, " ".join(search_words(text))) for number, text in texts)
    )


def _delete_chunks(database: sqlite3.Connection, document_ids: str) -> None:
    where = f"WHERE document_id {_AMONG}"
    database.execute(f"DELETE FROM chunk_words WHERE rowid IN (SELECT number FROM chunks {where})", (document_ids,))
    database.execute(f"DELETE FROM chunks {where}", (document_ids,))


def _check_documents_are_stored(database: sqlite3.Connection, document_ids: set[str], path: Path) -> None:
    known = {id_ for (id_,) in database.execute(f"SELECT id FROM documents WHERE id {_AMONG}", (_json_ids(document_ids),))}
    if missing := sorted(document_ids - known):
        raise StoreError(f"chunks of documents that {path} does not hold: {_named(missing)}; put the documents first")


def _check_ids_are_free(database: sqlite3.Connection, rows: list[tuple[Any, ...]], path: Path) -> None:
    ids = _json_ids(row[0] for row in rows)
    taken = database.execute(f"SELECT id, document_id FROM chunks WHERE id {_AMONG} ORDER BY id", (ids,)).fetchall()
    if taken:
        where = ", ".join(f"{chunk_id!r} (document {document_id!r})" for chunk_id, document_id in taken[:10])
        raise StoreError(f"chunk ids that other documents in {path} already use: {where}; chunk ids are unique in a store")


def _document_row(document: Document) -> tuple[Any, ...]:
    where = f"document {document.id!r}"
    _check_id(document.id, where)
    texts = {name: getattr(document, name) for name in ("source", "title", "text", "text_hash")}
    cleaned = [_clean(text, f"{name} of {where}") for name, text in texts.items()]
    return (document.id, *cleaned, _metadata(document.metadata, where), content_hash(document))


def _chunk_rows(chunks_by_document: Mapping[str, Sequence[Chunk]]) -> list[tuple[Any, ...]]:
    rows = []
    ids: set[str] = set()
    for document_id, chunks in chunks_by_document.items():
        _check_id(document_id, f"document {document_id!r}")
        positions: set[int] = set()
        for chunk in chunks:
            where = f"chunk {chunk.id!r} of document {document_id!r}"
            _check_id(chunk.id, where)
            if chunk.document_id != document_id:
                raise StoreError(f"{where} says that its document is {chunk.document_id!r}")
            if chunk.id in ids:
                raise StoreError(f"{where} is there twice; chunk ids are unique in a store")
            numbers = (chunk.index, chunk.start, chunk.end)
            if any(not isinstance(number, int) or not 0 <= number < 2**63 for number in numbers):
                raise StoreError(f"index, start and end of {where} are {numbers!r}; they must be whole numbers from 0")
            if chunk.index in positions:
                raise StoreError(f"{where} has index {chunk.index}, which another chunk of the document has too")
            ids.add(chunk.id)
            positions.add(chunk.index)
            text = _clean(chunk.text, f"text of {where}")
            rows.append((chunk.id, document_id, chunk.index, text, chunk.start, chunk.end, _metadata(chunk.metadata, where)))
    return rows


def _check_id(value: Any, where: str) -> None:
    if not isinstance(value, str) or not value or not is_storable(value):
        raise StoreError(
            f"{where}: {value!r} can't be an id; an id is a text of one character or more without NUL or lone surrogates"
        )


def _clean(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise StoreError(f"{where} is no text but {type(text).__name__}: {text!r:.100}; nothing of the batch was written")
    return storable(text)


def _metadata(metadata: Mapping[str, Any], where: str) -> str:
    try:
        return json.dumps(dict(metadata))
    except (TypeError, ValueError) as error:
        raise StoreError(f"metadata of {where} can't be stored ({error}): {metadata!r:.200}; use what JSON can hold") from error


def _json_ids(ids: Iterable[str]) -> str:
    return json.dumps(list(ids))


def _document(row: tuple[Any, ...]) -> Document:
    id_, source, title, text, text_hash, metadata = row
    return Document(id_, source, title, text, text_hash, json.loads(metadata))


def _chunk(row: tuple[Any, ...]) -> Chunk:
    id_, document_id, position, text, start, end, metadata = row[:7]
    return Chunk(id_, document_id, position, text, start, end, json.loads(metadata))


def _named(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:10])) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
