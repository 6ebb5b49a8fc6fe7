"""Keeps the results of extractors, so that no text is read twice and a killed build resumes where it stopped."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from resources.files.sqlite import SqliteFile

CacheKey = tuple[str, str]
"""SHA-256 of a text, and the hash of everything else that changes the result: extractor, settings, known entities."""

CACHE_FILE = "extraction.db"
"""Its name in the data folder of a project."""

_BATCH = 400
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS extractions "
    "(text_hash TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (text_hash, key)) WITHOUT ROWID"
)
_REMEDY = "Delete it together with its -wal and -shm files: it only saves work, and the next build creates it again."


class ExtractionCache:
    """A SQLite file (WAL) that many processes read and write. Values are JSON.

    A row whose value is not JSON counts as absent.

    Raises:
        StoreError: the file is damaged, belongs to another program, or can't be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._file = SqliteFile(self.path, schema=_SCHEMA, version=1, remedy=_REMEDY, synchronous="NORMAL")
        with self._file.reading():  # a file that can't be used is reported now
            pass

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_many(self, keys: Iterable[CacheKey]) -> dict[CacheKey, Any]:
        """The known ones among these."""
        wanted = list(dict.fromkeys(keys))
        found: dict[CacheKey, Any] = {}
        for start in range(0, len(wanted), _BATCH):
            found.update(self._get(wanted[start : start + _BATCH]))
        return found

    def _get(self, keys: Sequence[CacheKey]) -> dict[CacheKey, Any]:
        places = ",".join(["(?,?)"] * len(keys))
        statement = f"SELECT text_hash, key, value FROM extractions WHERE (text_hash, key) IN (VALUES {places})"
        with self._file.reading() as database:
            rows = database.execute(statement, [part for key in keys for part in key]).fetchall()
        found = {}
        for text_hash, key, value in rows:
            try:
                found[text_hash, key] = json.loads(value)
            except (ValueError, TypeError):
                continue
        return found

    def put_many(self, values: Mapping[CacheKey, Any]) -> None:
        """Insert or replace, in one transaction."""
        rows = [(*key, json.dumps(value, ensure_ascii=False)) for key, value in values.items()]
        if not rows:
            return
        with self._file.writing() as database:
            database.executemany("INSERT OR REPLACE INTO extractions VALUES (?, ?, ?)", rows)
