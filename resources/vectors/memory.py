"""Vectors in this process, searched one by one: exact, for tests and small corpora."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from resources.records import Scored
from resources.vectors.base import IndexInfo, VectorStore
from resources.vectors.checks import check_index, known_index, ranked, unit_queries, unit_rows


@dataclass
class _Index:
    model: str
    dimension: int
    vectors: dict[str, np.ndarray] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    matrix: np.ndarray | None = None  # the vectors as float64 rows, in order of the dictionary; made by a search


class MemoryVectorStore(VectorStore):
    """A vector store that lives as long as the object; closing it changes nothing. Safe to use from several threads."""

    _shared: ClassVar[dict[Path, Any]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def open(cls, options: Any, folder: Path) -> Self:
        """The store of a folder: all that open it in this process share one."""
        with cls._opening:
            store: Self = cls._shared.setdefault(folder.resolve(), cls())
            return store

    def __init__(self) -> None:
        self._indexes: dict[str, _Index] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        pass

    def open_index(self, name: str, *, model: str, dimension: int) -> IndexInfo:
        with self._lock:
            check_index(name, model, dimension, self.describe(name))
            self._indexes.setdefault(name, _Index(model, dimension))
            return known_index(name, self.describe(name))

    def describe(self, name: str) -> IndexInfo | None:
        with self._lock:
            index = self._indexes.get(name)
            return IndexInfo(name, index.model, index.dimension, len(index.vectors)) if index else None

    def hashes(self, name: str) -> dict[str, str]:
        with self._lock:
            known_index(name, self.describe(name))
            return dict(self._indexes[name].hashes)

    def upsert(self, name: str, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]) -> int:
        with self._lock:
            rows = unit_rows(known_index(name, self.describe(name)), ids, vectors, hashes)
            index = self._indexes[name]
            index.vectors.update(zip(ids, rows, strict=True))
            index.hashes.update(zip(ids, hashes, strict=True))
            index.matrix = None
            return len(set(ids))

    def delete(self, name: str, ids: Sequence[str]) -> int:
        with self._lock:
            known_index(name, self.describe(name))
            index = self._indexes[name]
            gone = [item for item in dict.fromkeys(ids) if index.vectors.pop(item, None) is not None]
            for item in gone:
                del index.hashes[item]
            index.matrix = None
            return len(gone)

    def get(self, name: str, ids: Sequence[str]) -> dict[str, np.ndarray]:
        with self._lock:
            known_index(name, self.describe(name))
            vectors = self._indexes[name].vectors
            return {item: vectors[item].copy() for item in ids if item in vectors}

    def search(self, name: str, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        with self._lock:
            rows, usable = unit_queries(known_index(name, self.describe(name)), queries, k)
            index = self._indexes[name]
            if not index.vectors:
                return [[] for _ in rows]
            if index.matrix is None:
                index.matrix = np.stack(list(index.vectors.values())).astype(np.float64)
            ids, scores = list(index.vectors), rows.astype(np.float64) @ index.matrix.T
        return [ranked(zip(ids, line.tolist(), strict=True), k) if ok else [] for line, ok in zip(scores, usable, strict=True)]

    def drop_index(self, name: str) -> None:
        with self._lock:
            self._indexes.pop(name, None)
