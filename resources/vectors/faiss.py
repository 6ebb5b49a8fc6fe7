"""Vectors on disk, searched by FAISS in this process: exactly while they are few or new, by inverted lists when they are many.

The files (resources/vectors/files.py) hold vectors and ids; the FAISS index is made from them in memory by the first search
and then kept in step. Inverted lists (IVF, Jégou et al. 2011, "Product quantization for nearest neighbor search", without the
quantisation: scores are exact) are built in seconds where a graph (HNSW) takes minutes, and let rows come and go cheaply.
Vectors that came after the clusters were made are searched exactly, until the next clustering: old clusters may know nothing
of a new subject, and would hide it.
"""

import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from resources.errors import StoreError
from resources.records import Scored
from resources.vectors.base import IndexInfo, VectorStore
from resources.vectors.checks import check_index, known_index, ranked, unit_queries, unit_rows
from resources.vectors.files import IndexFiles, Manifest

Result = TypeVar("Result")

LOCK_SECONDS = 120.0
_NEW_SHARE = 0.15  # of all rows may be outside of the clusters, if that is more than the store's limit
_POINTS_A_CENTROID = 40
_SEARCHED_LISTS = 1 / 16
_LEAST_LISTS = 32
_SAME_SCORE = 2e-6
_SPARE = 16  # candidates beyond k, to see whether the last ones tie


class FaissVectorStore(VectorStore):
    """Named indexes in one folder, for any number of reading processes and one writer at a time (the others wait).

    A write appends its rows and costs no more than they do; it is seen by every process at its next call. When more than
    ``flat_up_to`` vectors are new, the write that brings them clusters all anew (a few seconds at 100,000). Safe to use
    from several threads.
    """

    requires: ClassVar[tuple[str, ...]] = ("faiss",)

    @classmethod
    def open(cls, options: Any, folder: Path) -> Self:
        return cls(folder)

    def __init__(self, folder: Path, *, flat_up_to: int = 15_000) -> None:
        self.folder = Path(folder)
        self._flat_up_to = flat_up_to
        self._indexes: dict[str, _Index] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        with self._lock:
            self._indexes.clear()

    def open_index(self, name: str, *, model: str, dimension: int) -> IndexInfo:
        check_index(name, model, dimension, None)
        with self._lock:
            if (known := self.describe(name)) is None:
                with self._writing():
                    if (known := self.describe(name)) is None:
                        self._index(name).files.create(model, dimension)
                        known = self.describe(name)
            check_index(name, model, dimension, known)
            return known_index(name, known)

    def describe(self, name: str) -> IndexInfo | None:
        with self._lock, self._naming_failures():
            return self._index(name).refresh()

    def hashes(self, name: str) -> dict[str, str]:
        with self._lock:
            known_index(name, self.describe(name))
            return dict(self._index(name).files.hashes)

    def upsert(self, name: str, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]) -> int:
        with self._lock:
            rows = unit_rows(known_index(name, self.describe(name)), ids, vectors, hashes)
            last = {item: place for place, item in enumerate(ids)}  # the last of a repeated id holds
            if not last:
                return 0
            places = list(last.values())
            with self._writing():
                info = known_index(name, self.describe(name))
                if info.dimension != rows.shape[1]:
                    raise StoreError(
                        f"vector index {name!r} was made anew with {info.dimension} dimensions meanwhile; build again"
                    )
                index = self._index(name)
                index.files.append(list(last), rows[places], [hashes[place] for place in places])
                index.refresh()
                index.tidy(self._flat_up_to)
            return len(last)

    def delete(self, name: str, ids: Sequence[str]) -> int:
        with self._lock:
            known_index(name, self.describe(name))
            with self._writing():
                known_index(name, self.describe(name))
                index = self._index(name)
                gone = [item for item in dict.fromkeys(ids) if item in index.files.row_of]
                if gone:
                    index.files.delete(gone)
                    index.refresh()
                    index.tidy(self._flat_up_to)
            return len(gone)

    def get(self, name: str, ids: Sequence[str]) -> dict[str, np.ndarray]:
        def read(_: IndexInfo, index: _Index) -> dict[str, np.ndarray]:
            row_of = index.files.row_of
            rows = sorted({row_of[item] for item in ids if item in row_of})
            vectors = dict(zip(rows, index.files.vectors(np.array(rows, np.int64)), strict=True))
            return {item: vectors[row_of[item]] for item in dict.fromkeys(ids) if item in row_of}

        return self._reading(name, read)

    def search(self, name: str, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        def read(info: IndexInfo, index: _Index) -> list[list[Scored[str]]]:
            rows, usable = unit_queries(info, queries, k)
            found: list[list[Scored[str]]] = [[] for _ in rows]
            asked = np.flatnonzero(usable)
            if k and info.count and len(asked):
                for place, hits in zip(asked, index.search(rows[asked], k), strict=True):
                    found[place] = hits
            return found

        return self._reading(name, read)

    def drop_index(self, name: str) -> None:
        with self._lock, self._writing():
            folder = self._index(name).files.folder
            self._indexes.pop(name, None)
            if folder.is_dir():
                folder.rename(self.folder / f".dropped-{uuid.uuid4().hex}")
            for dropped in self.folder.glob(".dropped-*"):
                shutil.rmtree(dropped)

    def _index(self, name: str) -> "_Index":
        if name not in self._indexes:
            check_index(name, "any", 1, None)
            self._indexes[name] = _Index(name, IndexFiles(self.folder / name))
        return self._indexes[name]

    def _reading(self, name: str, read: Callable[[IndexInfo, "_Index"], Result]) -> Result:
        """Read files of the index, again if another process compacts them meanwhile: then the old ones are gone."""
        with self._lock, self._naming_failures():
            while True:
                info = known_index(name, self.describe(name))
                try:
                    return read(info, self._index(name))
                except FileNotFoundError:
                    self._index(name).forget()  # if a file is really missing, describe says so

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the folder's lock, which ends with the process whatever ends it."""
        import fcntl

        with self._naming_failures():
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / ".lock"
            deadline = time.monotonic() + LOCK_SECONDS
            with path.open("a") as file:
                while True:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        if time.monotonic() > deadline:
                            raise StoreError(
                                f"another process has been writing to {self.folder} for more than {LOCK_SECONDS:.0f} s "
                                f"(it holds {path}); wait for it to end or stop it"
                            ) from None
                        time.sleep(0.01)
                yield

    @contextmanager
    def _naming_failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"the vector store {self.folder} failed: {error}") from error


class _Index:
    """The files of an index and the FAISS indexes over its live rows: those in clusters, and the new ones."""

    def __init__(self, name: str, files: IndexFiles) -> None:
        self.name = name
        self.files = files
        self._clustered: Any = None
        self._new: Any = None
        self._training: str | None = None  # that the FAISS indexes were made for
        self._rows = 0  # that they have seen

    def refresh(self) -> IndexInfo | None:
        """Take in what was written. FAISS indexes that were made already are kept in step, or dropped to be made anew."""
        while True:
            try:
                self._refresh()
                manifest = self.files.manifest
                return IndexInfo(self.name, manifest.model, manifest.dimension, manifest.live) if manifest else None
            except FileNotFoundError:  # another process compacted meanwhile; a file that is really gone is found out now
                self.forget()
            except BaseException:
                self.forget()
                raise

    def forget(self) -> None:
        self.files.forget()
        self._clustered = self._new = None

    def tidy(self, flat_up_to: int) -> None:
        """After a write: leave dead rows behind when they are the most, and cluster when too many rows are new."""
        manifest = self._manifest()
        if manifest.rows - manifest.live > max(1000, manifest.live):
            self.files.compact()
            self.refresh()
            manifest = self._manifest()
        if manifest.rows - len(self.files.lists) > max(flat_up_to, _NEW_SHARE * manifest.rows) and manifest.live:
            self.files.set_clusters(self._centroids())
            self.refresh()
        self.files.sweep()

    def search(self, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        if self._new is None:
            self._make()
        indexes = [index for index in (self._clustered, self._new) if index is not None and index.ntotal]
        found = zip(queries, *(_nearest_rows(index, queries, k) for index in indexes), strict=True)
        return [self._ranked(query, np.concatenate(parts, axis=1), k) for query, *parts in found]

    def _manifest(self) -> Manifest:
        assert self.files.manifest is not None  # refresh has found one
        return self.files.manifest

    def _ranked(self, query: np.ndarray, candidates: np.ndarray, k: int) -> list[Scored[str]]:
        """The best k of candidates (2, n): rows and scores. FAISS sums in an order that depends on the neighbours of a row;
        the best and those that tie with the last of them are summed anew, so that equal vectors get equal scores."""
        rows, rough = candidates
        if len(rows) > k:
            rows = rows[rough > np.partition(rough, -k)[-k] - _SAME_SCORE]
        rows = np.sort(rows).astype(np.int64)
        scores = self.files.vectors(rows).astype(np.float64) @ query.astype(np.float64)
        return ranked(zip((str(self.files.ids[row]) for row in rows.tolist()), scores.tolist(), strict=True), k)

    def _refresh(self) -> None:
        died = self.files.refresh()
        manifest = self.files.manifest
        if manifest is None or died is None or self._training != _training(manifest):
            self._clustered = self._new = None
        elif self._new is not None:
            if died:
                for index in filter(None, (self._clustered, self._new)):
                    index.remove_ids(np.array(died, np.int64))
            self._add(np.array([row for row in range(self._rows, manifest.rows) if self.files.ids[row] is not None], np.int64))
            self._rows = manifest.rows

    def _make(self) -> None:
        import faiss

        manifest = self._manifest()
        if manifest.clusters:
            quantizer = faiss.IndexFlatIP(manifest.dimension)
            quantizer.add(self.files.centroids)
            count = manifest.clusters.count
            self._clustered = faiss.IndexIVFFlat(quantizer, manifest.dimension, count, faiss.METRIC_INNER_PRODUCT)
            self._clustered.is_trained = True
        self._new = faiss.IndexIDMap2(faiss.IndexFlatIP(manifest.dimension))
        self._training = _training(manifest)
        self._add(self.files.live_rows())
        self._rows = manifest.rows

    def _add(self, rows: np.ndarray) -> None:
        import faiss

        lists = self.files.lists
        for part, vectors in self.files.blocks(rows[rows < len(lists)]):
            # Their clusters are known: no search for the nearest centroid.
            values = (vectors, np.ascontiguousarray(part), lists[part].astype(np.int64))
            self._clustered.add_core(len(part), *map(faiss.swig_ptr, values))
        for part, vectors in self.files.blocks(rows[rows >= len(lists)]):
            self._new.add_with_ids(vectors, part)

    def _centroids(self) -> np.ndarray:
        """Centroids by k-means of a sample, about 4 times the square root of the number of vectors."""
        import faiss

        rows = self.files.live_rows()
        count = max(1, min(len(rows), round(4 * len(rows) ** 0.5)))
        size = min(len(rows), count * _POINTS_A_CENTROID)
        sample = self.files.vectors(np.sort(np.random.default_rng(0).choice(rows, size, replace=False)))
        kmeans = faiss.Kmeans(sample.shape[1], count, niter=8, spherical=True, seed=1, min_points_per_centroid=1)
        kmeans.train(sample)
        return np.asarray(kmeans.centroids, np.float32).reshape(count, sample.shape[1])


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


def _training(manifest: Manifest) -> str | None:
    return manifest.clusters.training if manifest.clusters else None
