"""Vectors in a SQLite file, searched by FAISS in this process: few or new ones exactly, many by inverted lists.

The file (``resources.vectors.log``) holds vectors and ids; the first search makes the FAISS index from them in memory, and later
ones bring it up to date. Inverted lists (IVF, Jégou et al. 2011, "Product quantization for nearest neighbor search", without the
quantisation: scores are exact) are built in seconds where a graph (HNSW) takes minutes, and let rows come and go cheaply.
Vectors that came after the clusters were made are searched exactly, until the next clustering: old clusters may know nothing
of a new subject, and would hide it.
"""

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from resources.errors import DamagedFileError, StoreError
from resources.records import Scored
from resources.vectors import log
from resources.vectors.base import IndexInfo, VectorStore
from resources.vectors.checks import check_index, known_index, ranked, unit_queries, unit_rows
from resources.vectors.log import Clusters, IndexState

_FILE = "vectors.db"
_NEW_SHARE = 0.15  # of all rows may be outside of the clusters, if that is more than the store's limit
_POINTS_A_CENTROID = 40
_SEARCHED_LISTS = 1 / 16
_LEAST_LISTS = 32
_SAME_SCORE = 2e-6
_SPARE = 16  # candidates beyond k, to see whether the last ones tie


class FaissVectorStore(VectorStore):
    """Named indexes in ``vectors.db`` of a folder, for many reading processes and one writer at a time (the others wait).

    A write costs about as much as its rows, and every process sees it at its next call. When more than ``flat_up_to`` vectors
    are new, the write that brings them clusters the index again (some seconds at 100,000). Safe to use from several threads.
    """

    requires: ClassVar[tuple[str, ...]] = ("faiss",)

    @classmethod
    def open(cls, options: Any, folder: Path) -> Self:
        return cls(folder)

    def __init__(self, folder: Path, *, flat_up_to: int = 15_000) -> None:
        self.folder = Path(folder)
        self._file = log.vector_file(self.folder / _FILE)
        self._flat_up_to = flat_up_to
        self._searches: dict[str, _SearchIndex] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        with self._lock:
            self._file.disconnect()
            self._searches.clear()

    def open_index(self, name: str, *, model: str, dimension: int) -> IndexInfo:
        check_index(name, model, dimension, None)
        known = self.describe(name)
        if known is None:
            with self._file.writing() as database:
                if log.index_state(database, name) is None:
                    log.create_index(database, name, model, dimension)
            self._remove_earlier_format(name)
            known = self.describe(name)
        check_index(name, model, dimension, known)
        return known_index(name, known)

    def describe(self, name: str) -> IndexInfo | None:
        check_index(name, "any", 1, None)
        if not self._file.path.exists():
            return None
        with self._file.reading() as database:
            state = log.index_state(database, name)
        return state.info if state else None

    def hashes(self, name: str) -> dict[str, str]:
        with self._reading(name) as (database, state):
            return log.read_hashes(database, state)

    def upsert(self, name: str, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]) -> int:
        rows = unit_rows(known_index(name, self.describe(name)), ids, vectors, hashes)
        last = {item: place for place, item in enumerate(ids)}  # the last of a repeated id holds
        if not last:
            return 0
        places = list(last.values())
        with self._file.writing() as database:
            state = _known(database, name)
            if state.dimension != rows.shape[1]:
                raise StoreError(
                    f"Vector index {name!r} was replaced by one with {state.dimension} dimensions meanwhile. Build again."
                )
            log.add_vectors(database, state, list(last), rows[places], [hashes[place] for place in places])
        self._cluster_if_needed(name)
        return len(last)

    def delete(self, name: str, ids: Sequence[str]) -> int:
        known_index(name, self.describe(name))
        with self._file.writing() as database:
            return log.remove_vectors(database, _known(database, name), ids)

    def get(self, name: str, ids: Sequence[str]) -> dict[str, np.ndarray]:
        with self._reading(name) as (database, state):
            return log.read_vectors(database, state, ids)

    def search(self, name: str, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        with self._lock, self._reading(name) as (database, state):
            rows, usable = unit_queries(state.info, queries, k)
            results: list[list[Scored[str]]] = [[] for _ in rows]
            places = np.flatnonzero(usable)
            if k and state.count and len(places):
                index = self._search_index(database, state)
                for place, hits in zip(places, index.search(database, state, rows[places], k), strict=True):
                    results[place] = hits
            return results

    def drop_index(self, name: str) -> None:
        if self.describe(name) is not None:
            with self._file.writing() as database:
                if (state := log.index_state(database, name)) is not None:
                    log.remove_index(database, state)
        self._remove_earlier_format(name)
        with self._lock:
            self._searches.pop(name, None)

    @contextmanager
    def _reading(self, name: str) -> Iterator[tuple[sqlite3.Connection, IndexState]]:
        """The file and the state of an index, as they are now for the whole block. StoreError for an unknown index."""
        if not self._file.path.exists():
            known_index(name, None)
        with self._file.snapshot() as database:
            yield database, _known(database, name)

    def _search_index(self, database: sqlite3.Connection, state: IndexState) -> "_SearchIndex":
        index = self._searches.pop(state.name, None)  # put back when it is complete
        if index is None or not index.follows(state):
            index = _SearchIndex(database, state)
        index.refresh(database, state)
        self._searches[state.name] = index
        return index

    def _cluster_if_needed(self, name: str) -> None:
        """Cluster the index when too many rows are new. Other processes may read and write meanwhile."""
        with self._reading(name) as (database, state):
            new = log.last_row(database, state) - state.clustered_row
            if not state.count or new <= max(self._flat_up_to, _NEW_SHARE * state.count):
                return
            clusters = _cluster(database, state)
        with self._file.writing() as database:
            now = log.index_state(database, name)
            if now is not None and (now.number, now.training) == (state.number, state.training):
                log.set_clusters(database, now, clusters)

    def _remove_earlier_format(self, name: str) -> None:
        """Remove the folder in which earlier versions kept an index."""
        if (self.folder / name / "manifest.json").is_file():
            shutil.rmtree(self.folder / name)


class _SearchIndex:
    """The FAISS indexes over the rows of an index: those in clusters, and the new ones."""

    def __init__(self, database: sqlite3.Connection, state: IndexState) -> None:
        import faiss

        self._number, self._training = state.number, state.training
        self._clusters = log.read_clusters(database, state) if state.training else None
        self._clustered: Any = None
        if self._clusters is not None:
            quantizer = faiss.IndexFlatIP(state.dimension)
            quantizer.add(self._clusters.centroids)
            count = len(self._clusters.centroids)
            self._clustered = faiss.IndexIVFFlat(quantizer, state.dimension, count, faiss.METRIC_INNER_PRODUCT)
            self._clustered.is_trained = True
        self._new = faiss.IndexIDMap2(faiss.IndexFlatIP(state.dimension))
        self._last_row = 0
        self._last_deletion = log.last_deletion(database, state)

    def follows(self, state: IndexState) -> bool:
        """Whether what was written since can be read from the log."""
        same = (self._number, self._training) == (state.number, state.training)
        return same and self._last_deletion >= state.forgotten_deletion

    def refresh(self, database: sqlite3.Connection, state: IndexState) -> None:
        """Take in the deletions and rows that were written since the last call."""
        deletions = log.read_deletions(database, state, self._last_deletion)
        if deletions:
            rows = np.array([row for _, row in deletions if row <= self._last_row], np.int64)
            for index in self._indexes() if len(rows) else ():
                index.remove_ids(rows)
            self._last_deletion = deletions[-1][0]
        for rows, vectors in log.read_blocks(database, state, self._last_row):
            self._add(rows, vectors)
            self._last_row = int(rows[-1])
        if (count := sum(index.ntotal for index in self._indexes())) != state.count:
            raise DamagedFileError(
                f"The file of the vector index {state.name!r} is damaged: it has {count} of {state.count} vectors. {log.REMEDY}"
            )

    def search(self, database: sqlite3.Connection, state: IndexState, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        """The best ``k`` of each query (q, dimension)."""
        nearest = [_nearest_rows(index, queries, k) for index in self._indexes() if index.ntotal]
        results = []
        for query, *parts in zip(queries, *nearest, strict=True):
            candidates = _best(np.concatenate(parts, axis=1), k)
            ids, vectors = log.read_rows(database, state, candidates)
            # FAISS sums in an order that depends on the neighbours of a row. Summed again, equal vectors get equal scores.
            scores = vectors.astype(np.float64) @ query.astype(np.float64)
            results.append(ranked(zip(ids, scores.tolist(), strict=True), k))
        return results

    def _indexes(self) -> list[Any]:
        return [index for index in (self._clustered, self._new) if index is not None]

    def _add(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        import faiss

        split = 0
        if self._clusters is not None:
            split = int(np.searchsorted(rows, self._clusters.rows[-1], side="right"))
            lists = self._clusters.lists[np.searchsorted(self._clusters.rows, rows[:split])].astype(np.int64)
            # The clusters are known: no search for the nearest centroid.
            values = (np.ascontiguousarray(vectors[:split]), np.ascontiguousarray(rows[:split]), lists)
            if split:
                self._clustered.add_core(split, *map(faiss.swig_ptr, values))
        if split < len(rows):
            self._new.add_with_ids(vectors[split:], rows[split:])


def _known(database: sqlite3.Connection, name: str) -> IndexState:
    state = log.index_state(database, name)
    known_index(name, state.info if state else None)
    assert state is not None  # known_index has raised otherwise
    return state


def _best(candidates: np.ndarray, k: int) -> np.ndarray:
    """Of candidates (2, n), rows and rough scores: the rows that may be among the best ``k``, ascending."""
    rows, scores = candidates
    if len(rows) > k:
        rows = rows[scores > np.partition(scores, -k)[-k] - _SAME_SCORE]
    return np.sort(rows).astype(np.int64)


def _cluster(database: sqlite3.Connection, state: IndexState) -> Clusters:
    """Clusters of all rows: centroids by k-means of a sample, about 4 times the square root of the number of vectors."""
    import faiss

    rows = log.row_numbers(database, state)
    count = max(1, min(len(rows), round(4 * len(rows) ** 0.5)))
    size = min(len(rows), count * _POINTS_A_CENTROID)
    chosen = np.sort(np.random.default_rng(0).choice(rows, size, replace=False))
    _, sample = log.read_rows(database, state, chosen)
    kmeans = faiss.Kmeans(state.dimension, count, niter=8, spherical=True, seed=1, min_points_per_centroid=1)
    kmeans.train(sample)
    centroids = np.asarray(kmeans.centroids, np.float32).reshape(count, state.dimension)
    lists = np.concatenate([(vectors @ centroids.T).argmax(axis=1) for _, vectors in log.read_blocks(database, state)])
    return Clusters(centroids, rows, lists.astype(np.int32))


def _nearest_rows(index: Any, queries: np.ndarray, k: int) -> list[np.ndarray]:
    """For each query (2, n): rows and scores of the k nearest and of all that tie with the last of them, and perhaps more.

    Asks for some more than k; where the last of those ties with the k-th, or the lists ran short, asks again for more.
    """
    found = [np.empty((2, 0))] * len(queries)
    todo = np.arange(len(queries))
    total = index.ntotal
    ask, share = min(total, k + _SPARE), _SEARCHED_LISTS
    while len(todo):
        if hasattr(index, "nlist"):
            index.nprobe = min(index.nlist, max(_LEAST_LISTS, round(index.nlist * share)))
        again = []
        for place, scores, rows in zip(todo, *index.search(queries[todo], ask), strict=True):
            found[place] = np.stack([rows, scores])[:, rows >= 0]  # as float64, which holds a row number
            count = found[place].shape[1]
            tied = k < count < total and scores[count - 1] > scores[k - 1] - _SAME_SCORE
            if (tied and count == ask) or count < min(k, total):
                again.append(place)
        todo = np.array(again, np.int64)
        ask, share = min(total, ask * 4), share * 4
    return found
