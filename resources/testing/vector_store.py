"""What every vector store promises, as tests to run on a backend of your own.

In a test file of your package, with pytest installed::

    from resources.testing.vector_store import VectorStoreConformance

    class TestMyStore(VectorStoreConformance):
        @pytest.fixture
        def store(self, tmp_path):
            with MyStore.open(MyStore.options(), tmp_path) as store:
                yield store

``store`` gives an empty store to each test.
"""

import math
import threading
from typing import Any, ClassVar

import numpy as np
import pytest

from resources.errors import IndexMismatchError, StoreError
from resources.vectors.base import VectorStore


def fill(store: VectorStore, vectors: dict[str, list[float]], name: str = "things", model: str = "m") -> None:
    """Upsert vectors by id, each with the hash "hash of <id>", into an index that is made if needed."""
    rows = np.array(list(vectors.values()), np.float32)
    store.open_index(name, model=model, dimension=rows.shape[1])
    store.upsert(name, list(vectors), rows, [f"hash of {item}" for item in vectors])


def hits(store: VectorStore, query: list[float], k: int = 10, name: str = "things") -> list[tuple[str, float]]:
    """Ids and scores that one query finds."""
    return [(hit.record, hit.score) for hit in store.search(name, np.array([query]), k)[0]]


def random_vectors(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    """(count, dimension) normally distributed numbers, float32; the same for the same seed."""
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


class VectorStoreConformance:
    """All promises of ``resources.vectors.base.VectorStore``. Override the fixture ``store``."""

    exact: ClassVar[bool] = True
    """Whether a search finds the nearest of a few hundred vectors always, and not just nearly always."""

    @pytest.fixture
    def store(self) -> Any:
        raise NotImplementedError("Override the fixture store: it gives an empty vector store to each test.")

    def test_the_nearest_come_first_with_their_cosine(self, store: VectorStore) -> None:
        fill(store, {"far": [-3, 0], "near": [5, 0], "between": [1, 1]})
        assert hits(store, [2, 0]) == [("near", 1.0), ("between", pytest.approx(math.sqrt(0.5), abs=1e-6)), ("far", -1.0)]
        assert [item for item, _ in hits(store, [2, 0], k=2)] == ["near", "between"]
        assert hits(store, [2, 0], k=0) == []

    def test_equal_vectors_come_in_order_of_their_ids_wherever_the_cut_is(self, store: VectorStore) -> None:
        ids = [f"i{number:03}" for number in range(100)]
        fill(store, {item: [0.3, 0.1, 0.7] for item in reversed(ids)} | {"other": [0.1, 0.9, 0.0]})
        assert [item for item, _ in hits(store, [0.3, 0.1, 0.7], k=5)] == ids[:5]

    def test_many_queries_are_answered_at_once_like_one_by_one(self, store: VectorStore) -> None:
        vectors, queries = random_vectors(300), random_vectors(20, seed=1)
        store.open_index("things", model="m", dimension=8)
        store.upsert("things", [f"i{n:03}" for n in range(300)], vectors, ["h"] * 300)
        exact = np.argsort(
            -(queries / np.linalg.norm(queries, axis=1, keepdims=True))
            @ (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T,
            axis=1,
        )
        answers = store.search("things", queries, 1)
        assert answers == [store.search("things", query[None], 1)[0] for query in queries]
        agree = sum(answer[0].record == f"i{row[0]:03}" for answer, row in zip(answers, exact, strict=True))
        assert agree >= (20 if self.exact else 18)
        assert store.search("things", np.empty((0, 8)), 3) == []

    def test_all_items_are_found_when_so_many_are_asked_for(self, store: VectorStore) -> None:
        vectors = random_vectors(300)
        store.open_index("things", model="m", dimension=8)
        store.upsert("things", [f"i{n}" for n in range(300)], vectors, ["h"] * 300)
        ranking = hits(store, vectors[0].tolist(), k=1000)
        assert {item for item, _ in ranking} == {f"i{n}" for n in range(300)}
        assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)

    def test_vectors_come_back_at_unit_length_with_their_hashes(self, store: VectorStore) -> None:
        fill(store, {"a": [3, 4], "b": [0, 1e-30], "c": [1e30, 1e30]})
        vectors = store.get("things", ["c", "nobody", "a", "b", "a"])
        assert {item: vector.round(6).tolist() for item, vector in vectors.items()} == {
            "c": [pytest.approx(math.sqrt(0.5), abs=1e-6)] * 2,
            "a": [pytest.approx(0.6), pytest.approx(0.8)],
            "b": [0, 1],
        }
        assert all(vector.dtype == np.float32 for vector in vectors.values())
        assert store.hashes("things") == {item: f"hash of {item}" for item in "abc"}

    def test_an_upsert_replaces_and_the_last_of_a_repeated_id_holds(self, store: VectorStore) -> None:
        fill(store, {"a": [1, 0], "b": [0, 1]})
        hits(store, [1, 0])
        assert store.upsert("things", ["a", "c", "a"], np.array([[5, 5], [1, 0], [0, -1]]), ["1", "2", "3"]) == 2
        assert store.describe("things").count == 3  # type: ignore[union-attr]
        assert hits(store, [1, 0], k=1) == [("c", 1.0)]
        assert hits(store, [0, -1], k=1) == [("a", 1.0)]
        assert store.hashes("things") == {"a": "3", "b": "hash of b", "c": "2"}

    def test_deleted_items_are_not_found_and_others_are(self, store: VectorStore) -> None:
        fill(store, {"a": [1, 0], "b": [0, 1], "c": [1, 1]})
        hits(store, [1, 0])
        assert store.delete("things", ["a", "nobody", "a"]) == 1
        assert [item for item, _ in hits(store, [1, 0])] == ["c", "b"]
        assert (list(store.hashes("things")), store.get("things", ["a"])) == (["b", "c"], {})
        assert store.delete("things", ["b", "c"]) == 2
        assert hits(store, [1, 0]) == []
        fill(store, {"a": [0, 1]})
        assert hits(store, [0, 1]) == [("a", 1.0)]

    def test_indexes_are_apart_and_one_can_be_dropped(self, store: VectorStore) -> None:
        fill(store, {"a": [1, 0]}, "one")
        fill(store, {"a": [0, 1, 0]}, "two", "other model")
        store.drop_index("one")
        store.drop_index("nothing")
        assert store.describe("one") is None
        assert hits(store, [0, 1, 0], name="two") == [("a", 1.0)]
        fill(store, {"b": [1, 0, 0, 0]}, "one", "third model")
        assert hits(store, [1, 0, 0, 0], name="one") == [("b", 1.0)]

    def test_another_model_or_size_is_refused_also_by_an_empty_index(self, store: VectorStore) -> None:
        store.open_index("things", model="m8", dimension=8)
        for model, dimension in (("m6", 6), ("m8b", 8), ("m8", 6)):
            with pytest.raises(
                IndexMismatchError, match=rf"'m8' with 8 dimensions.*'{model}' with {dimension} dimensions; .*drop the index"
            ):
                store.open_index("things", model=model, dimension=dimension)
        store.upsert("things", ["a"], np.ones((1, 8)), ["h"])
        with pytest.raises(IndexMismatchError):
            store.open_index("things", model="m8b", dimension=8)
        assert store.open_index("things", model="m8", dimension=8).count == 1, "no store is emptied without being asked"
        with pytest.raises(StoreError, match=r"queries to index 'things' must be numbers of shape \(n, 8\)"):
            store.search("things", np.ones((1, 6)), 1)
        with pytest.raises(StoreError, match=r"vectors for index 'things' must be numbers of shape \(n, 8\)"):
            store.upsert("things", ["b"], np.ones((1, 6)), ["h"])

    def test_zero_and_nan_vectors_are_refused_by_name_and_a_zero_query_finds_nothing(self, store: VectorStore) -> None:
        fill(store, {"a": [1.0, 0.0], "b": [0.5, 0.5]})
        for bad, what in (([0.0, 0.0], "zero"), ([float("nan"), 1.0], "NaN"), ([1.0, float("inf")], "infinite")):
            with pytest.raises(StoreError, match=f"{what}.* 'things': 'z'; nothing was written"):
                store.upsert("things", ["ok", "z"], np.array([[1.0, 0.0], bad]), ["h", "h"])
        assert hits(store, [1.0, 0.0], k=2) == [("a", 1.0), ("b", pytest.approx(0.7071, abs=1e-4))]
        assert store.search("things", np.array([[0.0, 0.0], [1.0, 0.0]]), 1)[0] == []
        assert store.describe("things").count == 2  # type: ignore[union-attr]
        with pytest.raises(StoreError, match="NaN"):
            store.search("things", np.array([[float("nan"), 1.0]]), 1)
        with pytest.raises(StoreError, match="k is -1"):
            store.search("things", np.ones((1, 2)), -1)

    def test_a_call_that_does_not_fit_together_is_refused(self, store: VectorStore) -> None:
        store.open_index("things", model="m", dimension=2)
        with pytest.raises(StoreError, match="2 ids, 1 vectors and 1 hashes"):
            store.upsert("things", ["a", "b"], np.ones((1, 2)), ["h"])
        with pytest.raises(StoreError, match="must be texts, not empty: ''"):
            store.upsert("things", ["a", ""], np.ones((2, 2)), ["h", "h"])
        assert store.upsert("things", [], np.empty((0, 2)), []) == 0

    def test_ids_that_no_database_can_store_are_refused(self, store: VectorStore) -> None:
        store.open_index("things", model="m", dimension=2)
        for bad in ("a\0b", "a\ud800"):
            with pytest.raises(StoreError, match="NUL"):
                store.upsert("things", ["ok", bad], np.ones((2, 2)), ["h", "h"])
            assert store.get("things", [bad]) == {}
            assert store.delete("things", [bad]) == 0
        assert store.hashes("things") == {}

    def test_an_unknown_index_and_a_name_that_is_a_path_are_refused(self, store: VectorStore) -> None:
        for call in (
            lambda: store.hashes("no"),
            lambda: store.search("no", np.ones((1, 2)), 1),
            lambda: store.delete("no", ["a"]),
        ):
            with pytest.raises(StoreError, match="no vector index 'no'"):
                call()
        for name in ("../outside", "", "a/b", ".hidden"):
            with pytest.raises(StoreError, match="can't name a vector index"):
                store.open_index(name, model="m", dimension=2)

    def test_one_store_serves_many_threads(self, store: VectorStore) -> None:
        fill(store, {"a": [1, 0]})
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for n in range(10):
                    fill(store, {f"t{number}-{n}": [-1, n]})
                    assert hits(store, [1, 0], 1) == [("a", 1.0)]
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert store.describe("things").count == 41  # type: ignore[union-attr]
