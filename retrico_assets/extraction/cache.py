"""What extractors already said, so that no text is read twice and a killed build resumes where it stopped."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from resources.errors import StoreError

CacheKey = tuple[str, str]
"""SHA-256 of a text, and what identifies extractor, settings and input besides the text."""

_BATCH = 400


class ExtractionCache:
    """A SQLite file (WAL) that many processes read and write. Values are JSON.

    Raises StoreError when the file is damaged, foreign or can't be written. A row whose value is no JSON counts as absent.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=60, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS extractions "
                "(text_hash TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (text_hash, key)) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as problem:
            raise self._error(problem) from problem

    def close(self) -> None:
        self._connection.close()

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
        with self._lock:
            try:
                rows = self._connection.execute(statement, [part for key in keys for part in key]).fetchall()
            except sqlite3.Error as problem:
                raise self._error(problem) from problem
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
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    self._connection.executemany("INSERT OR REPLACE INTO extractions VALUES (?, ?, ?)", rows)
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as problem:
                raise self._error(problem) from problem

    def _error(self, problem: Exception) -> StoreError:
        return StoreError(
            f"The extraction cache {self.path} can't be used ({problem}). If it is damaged, delete it together with its "
            "-wal and -shm files: it only saves work, and the next build makes it anew."
        )
