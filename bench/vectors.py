"""Vector search over 100,000 x 384 vectors with the cluster structure of real embeddings: one thread, medians."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and FAISS read it

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from resources.vectors.faiss import FaissVectorStore

ROWS, DIMENSION, CLUSTERS, BATCH, K = 100_000, 384, 1000, 500, 10
NAME = "bench"


def made_vectors(rows: int, seed: int = 0, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(rows, 384) unit vectors in 1,000 Gaussian clusters, and 200 queries that lie among them.

    ``noise`` is the length of the noise relative to the centre: at 1.0 two vectors of a cluster have a cosine of 0.5.
    """
    generator = np.random.default_rng(seed)
    centres = _unit(generator.standard_normal((CLUSTERS, DIMENSION), np.float32))
    scale = np.float32(noise / DIMENSION**0.5)
    vectors = _unit(
        centres[generator.integers(CLUSTERS, size=rows)] + scale * generator.standard_normal((rows, DIMENSION), np.float32)
    )
    near = vectors[generator.integers(rows, size=200)]
    return vectors, _unit(near + scale * generator.standard_normal(near.shape, np.float32))


def run() -> list[tuple[str, float, str]]:
    """(name, figure, budget) of each measurement."""
    import faiss

    faiss.omp_set_num_threads(1)
    vectors, queries = made_vectors(ROWS)
    ids = [f"item{number:06}" for number in range(ROWS)]
    with tempfile.TemporaryDirectory() as folder:
        store = FaissVectorStore(Path(folder))
        store.open_index(NAME, model="made", dimension=DIMENSION)
        writes = [_seconds(lambda s=start: _write(store, ids, vectors, s)) for start in range(0, ROWS, BATCH)]
        replacing = statistics.median(
            _seconds(lambda n=number: store.upsert(NAME, ids[n : n + 1], vectors[n : n + 1], ["new"])) for number in range(5)
        )
        store = FaissVectorStore(Path(folder))
        opening = _seconds(lambda: store.search(NAME, queries[:1], K))
        times = [_seconds(lambda q=query: store.search(NAME, q[None], K)) for query in queries]
        hits = [{hit.record for hit in line} for line in store.search(NAME, queries, K)]
        replaced_after_search = _seconds(lambda: _replace_and_search(store, ids, vectors, queries))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    exact = np.argsort(-(queries @ vectors.T), axis=1)[:, :K]
    recall = statistics.mean(len(found & {ids[row] for row in rows}) / K for found, rows in zip(hits, exact, strict=True))
    return [
        ("vector search p50, ms", statistics.median(times) * 1000, "<= 2"),
        ("vector search recall@10", recall, ">= 0.98"),
        (f"vector build of 100,000 in {len(writes)} upserts, s", sum(writes), ""),
        ("vector upsert of 500, median ms", statistics.median(writes) * 1000, ""),
        ("vector upsert of 500, slowest s (clusters)", max(writes), ""),
        ("vector replacing 1 of 100,000, ms", replacing * 1000, ""),
        ("vector replacing 1 of 100,000 and searching again, ms", replaced_after_search * 1000, ""),
        ("vector file, MB", size / 1e6, ""),
        ("vector opening and first search, s", opening, ""),
    ]


def _write(store: FaissVectorStore, ids: list[str], vectors: np.ndarray, start: int) -> None:
    part = slice(start, start + BATCH)
    store.upsert(NAME, ids[part], vectors[part], ids[part])


def _replace_and_search(store: FaissVectorStore, ids: list[str], vectors: np.ndarray, queries: np.ndarray) -> None:
    store.upsert(NAME, ids[:1], vectors[:1], ["newer"])
    store.search(NAME, queries[:1], K)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    for name, figure, budget in run():
        print(f"{name:60} {figure:10.3f}  {budget}")
