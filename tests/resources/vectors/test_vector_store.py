"""What a vector store promises, on every backend, and what FAISS on disk promises besides."""

import json
import math
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from resources.errors import IndexMismatchError, SettingsError, StoreError
from resources.vectors import open_vector_store
from resources.vectors.base import VectorStore
from resources.vectors.faiss import FaissVectorStore
from resources.vectors.memory import MemoryVectorStore

# "faiss clusters" is the same store with its limit for exact search so low that every index of these tests has clusters.
BACKENDS = ["memory", "faiss", "faiss clusters"]


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    if request.param == "faiss clusters":
        opened: VectorStore = FaissVectorStore(tmp_path, flat_up_to=2)
    else:
        opened = open_vector_store(request.param, tmp_path)
    with opened:
        yield opened


def fill(store: VectorStore, vectors: dict[str, list[float]], name: str = "things", model: str = "m") -> None:
    rows = np.array(list(vectors.values()), np.float32)
    store.open_index(name, model=model, dimension=rows.shape[1])
    store.upsert(name, list(vectors), rows, [f"hash of {item}" for item in vectors])


def found(store: VectorStore, query: list[float], k: int = 10, name: str = "things") -> list[tuple[str, float]]:
    return [(hit.record, hit.score) for hit in store.search(name, np.array([query]), k)[0]]


def random_vectors(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


# What is written is found


def test_the_nearest_come_first_with_their_cosine(store: VectorStore) -> None:
    fill(store, {"far": [-3, 0], "near": [5, 0], "between": [1, 1]})
    assert found(store, [2, 0]) == [("near", 1.0), ("between", pytest.approx(math.sqrt(0.5), abs=1e-6)), ("far", -1.0)]
    assert [item for item, _ in found(store, [2, 0], k=2)] == ["near", "between"]
    assert found(store, [2, 0], k=0) == []


def test_equal_vectors_come_in_order_of_their_ids_wherever_the_cut_is(store: VectorStore) -> None:
    ids = [f"i{number:03}" for number in range(100)]
    fill(store, {item: [0.3, 0.1, 0.7] for item in reversed(ids)} | {"other": [0.1, 0.9, 0.0]})
    assert [item for item, _ in found(store, [0.3, 0.1, 0.7], k=5)] == ids[:5]


def test_many_queries_are_answered_at_once_like_one_by_one(store: VectorStore) -> None:
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
    assert agree >= 18  # clusters may miss one of unstructured vectors; the exact ones must not
    if not isinstance(store, FaissVectorStore) or store._flat_up_to > 300:
        assert agree == 20
    assert store.search("things", np.empty((0, 8)), 3) == []


def test_all_items_are_found_when_so_many_are_asked_for(store: VectorStore) -> None:
    vectors = random_vectors(300)
    store.open_index("things", model="m", dimension=8)
    store.upsert("things", [f"i{n}" for n in range(300)], vectors, ["h"] * 300)
    hits = found(store, vectors[0].tolist(), k=1000)
    assert {item for item, _ in hits} == {f"i{n}" for n in range(300)}
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)


def test_vectors_come_back_at_unit_length_with_their_hashes(store: VectorStore) -> None:
    fill(store, {"a": [3, 4], "b": [0, 1e-30], "c": [1e30, 1e30]})
    vectors = store.get("things", ["c", "nobody", "a", "b", "a"])
    assert {item: vector.round(6).tolist() for item, vector in vectors.items()} == {
        "c": [pytest.approx(math.sqrt(0.5), abs=1e-6)] * 2,
        "a": [pytest.approx(0.6), pytest.approx(0.8)],
        "b": [0, 1],
    }
    assert all(vector.dtype == np.float32 for vector in vectors.values())
    assert store.hashes("things") == {item: f"hash of {item}" for item in "abc"}


def test_an_upsert_replaces_and_the_last_of_a_repeated_id_holds(store: VectorStore) -> None:
    fill(store, {"a": [1, 0], "b": [0, 1]})
    found(store, [1, 0])
    assert store.upsert("things", ["a", "c", "a"], np.array([[5, 5], [1, 0], [0, -1]]), ["1", "2", "3"]) == 2
    assert store.describe("things").count == 3  # type: ignore[union-attr]
    assert found(store, [1, 0], k=1) == [("c", 1.0)]
    assert found(store, [0, -1], k=1) == [("a", 1.0)]
    assert store.hashes("things") == {"a": "3", "b": "hash of b", "c": "2"}


def test_deleted_items_are_not_found_and_others_are(store: VectorStore) -> None:
    fill(store, {"a": [1, 0], "b": [0, 1], "c": [1, 1]})
    found(store, [1, 0])
    assert store.delete("things", ["a", "nobody", "a"]) == 1
    assert [item for item, _ in found(store, [1, 0])] == ["c", "b"]
    assert (list(store.hashes("things")), store.get("things", ["a"])) == (["b", "c"], {})
    assert store.delete("things", ["b", "c"]) == 2
    assert found(store, [1, 0]) == []
    fill(store, {"a": [0, 1]})
    assert found(store, [0, 1]) == [("a", 1.0)]


def test_indexes_are_apart_and_one_can_be_dropped(store: VectorStore) -> None:
    fill(store, {"a": [1, 0]}, "one")
    fill(store, {"a": [0, 1, 0]}, "two", "other model")
    store.drop_index("one")
    store.drop_index("nothing")
    assert store.describe("one") is None
    assert found(store, [0, 1, 0], name="two") == [("a", 1.0)]
    fill(store, {"b": [1, 0, 0, 0]}, "one", "third model")
    assert found(store, [1, 0, 0, 0], name="one") == [("b", 1.0)]


def test_random_writes_give_the_same_answers_on_every_backend(tmp_path: Path) -> None:
    """A thousand rows put, replaced and deleted at random; exact search must agree, and the image of a fresh reader too."""
    random = np.random.default_rng(3)
    memory, disk = MemoryVectorStore(), FaissVectorStore(tmp_path, flat_up_to=100_000)
    for store in (memory, disk):
        store.open_index("things", model="m", dimension=4)
    for step in range(40):
        ids = [f"i{n}" for n in random.integers(300, size=25)]
        rows = random.standard_normal((25, 4)).round(1) + 0.01
        for store in (memory, disk):
            if step % 4 == 3:
                store.delete("things", ids)
            else:
                store.upsert("things", ids, rows, ids)
        query = random.standard_normal((2, 4))
        assert disk.search("things", query, 7) == memory.search("things", query, 7)
    fresh = FaissVectorStore(tmp_path)
    assert fresh.search("things", query, 400) == memory.search("things", query, 400)
    assert fresh.hashes("things") == memory.hashes("things")


# What is refused


def test_another_model_or_size_is_refused_also_by_an_empty_index(store: VectorStore) -> None:
    """OPEN-33"""
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


def test_zero_and_nan_vectors_are_refused_by_name_and_a_zero_query_finds_nothing(store: VectorStore) -> None:
    """OPEN-34"""
    fill(store, {"a": [1.0, 0.0], "b": [0.5, 0.5]})
    for bad, what in (([0.0, 0.0], "zero"), ([float("nan"), 1.0], "NaN"), ([1.0, float("inf")], "infinite")):
        with pytest.raises(StoreError, match=f"{what}.* 'things': 'z'; nothing was written"):
            store.upsert("things", ["ok", "z"], np.array([[1.0, 0.0], bad]), ["h", "h"])
    assert found(store, [1.0, 0.0], k=2) == [("a", 1.0), ("b", pytest.approx(0.7071, abs=1e-4))]
    assert store.search("things", np.array([[0.0, 0.0], [1.0, 0.0]]), 1)[0] == []
    assert store.describe("things").count == 2  # type: ignore[union-attr]
    with pytest.raises(StoreError, match="NaN"):
        store.search("things", np.array([[float("nan"), 1.0]]), 1)
    with pytest.raises(StoreError, match="k is -1"):
        store.search("things", np.ones((1, 2)), -1)


def test_a_call_that_does_not_fit_together_is_refused(store: VectorStore) -> None:
    store.open_index("things", model="m", dimension=2)
    with pytest.raises(StoreError, match="2 ids, 1 vectors and 1 hashes"):
        store.upsert("things", ["a", "b"], np.ones((1, 2)), ["h"])
    with pytest.raises(StoreError, match="must be texts, not empty: ''"):
        store.upsert("things", ["a", ""], np.ones((2, 2)), ["h", "h"])
    assert store.upsert("things", [], np.empty((0, 2)), []) == 0


def test_an_unknown_index_and_a_name_that_is_a_path_are_refused(store: VectorStore) -> None:
    for call in (lambda: store.hashes("no"), lambda: store.search("no", np.ones((1, 2)), 1), lambda: store.delete("no", ["a"])):
        with pytest.raises(StoreError, match="no vector index 'no'"):
            call()
    for name in ("../outside", "", "a/b", ".hidden"):
        with pytest.raises(StoreError, match="can't name a vector index"):
            store.open_index(name, model="m", dimension=2)


def test_an_unknown_backend_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'paper' is not one of the known vector stores\. Known: faiss, memory\."):
        open_vector_store("paper", tmp_path)


def test_a_store_in_memory_is_shared_by_all_that_name_its_folder(tmp_path: Path) -> None:
    with open_vector_store("memory", tmp_path / "x") as store:
        fill(store, {"a": [1, 0]})
    assert found(open_vector_store("memory", tmp_path / "x"), [1, 0]) == [("a", 1.0)]
    assert open_vector_store("memory", tmp_path / "y").describe("things") is None


# Files


@pytest.fixture(params=[20_000, 50], ids=["flat", "clusters"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> FaissVectorStore:
    """A store on disk with 200 items, once searched exactly and once by clusters."""
    store = FaissVectorStore(tmp_path, flat_up_to=request.param)
    store.open_index("things", model="m", dimension=8)
    store.upsert("things", [f"c{n}" for n in range(200)], random_vectors(200), ["h"] * 200)
    return store


def test_an_index_survives_the_process_and_other_processes_see_each_write(built: FaissVectorStore, tmp_path: Path) -> None:
    reader = FaissVectorStore(tmp_path)
    vectors = random_vectors(200)
    assert found(reader, vectors[7].tolist(), 1) == [("c7", 1.0)]
    built.upsert("things", ["c7", "new"], np.stack([-vectors[7], vectors[7]]), ["1", "2"])
    assert found(reader, vectors[7].tolist(), 1) == [("new", 1.0)]
    built.delete("things", ["new"])
    assert found(reader, vectors[7].tolist(), 1)[0][0] not in ("new", "c7")
    built.drop_index("things")
    assert reader.describe("things") is None
    fill(built, {"a": [1, 0]})
    assert found(reader, [1, 0]) == [("a", 1.0)]


def files_of(folder: Path) -> list[Path]:
    return sorted((folder / "things").iterdir())


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_file_is_named_and_nothing_is_answered_from_half_an_index(
    built: FaissVectorStore, tmp_path: Path, damage: str
) -> None:
    """OPEN-35, for the vectors, the id map, the clusters and the manifest in turn."""
    paths = files_of(tmp_path)
    assert len(paths) == (3 if built._flat_up_to > 200 else 5)
    for path in paths:
        intact = path.read_bytes()
        if damage == "remove":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(intact[: len(intact) // 2])
        else:
            path.write_bytes(intact[:100] + bytes([intact[100] ^ 1]) + intact[101:])
        for use in (
            lambda s: s.open_index("things", model="m", dimension=8),
            lambda s: s.search("things", np.ones((1, 8)), 1),
            lambda s: s.upsert("things", ["v4"], np.ones((1, 8)), ["h"]),
        ):
            with pytest.raises(StoreError, match=rf"{path.name} is damaged.*drop it.*build it again"):
                use(FaissVectorStore(tmp_path))
        path.write_bytes(intact)
    assert FaissVectorStore(tmp_path).open_index("things", model="m", dimension=8).count == 200


def test_after_a_rebuild_each_vector_finds_its_own_item(built: FaissVectorStore, tmp_path: Path) -> None:
    """OPEN-35"""
    items = next(path for path in files_of(tmp_path) if path.name.startswith("items"))
    items.write_bytes(items.read_bytes()[: items.stat().st_size // 2])
    store = FaissVectorStore(tmp_path)
    store.drop_index("things")
    fill(store, {"c1": [1, 0, 0], "c2": [0, 1, 0], "c3": [0, 0, 1]})
    fill(store, {"c4": [-1, 0, 0]})
    assert found(store, [1, 0, 0], 1) == [("c1", 1.0)]
    assert found(store, [-1, 0, 0], 1) == [("c4", 1.0)]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".dropped")] == []


def test_a_manifest_of_another_version_is_not_guessed_at(built: FaissVectorStore, tmp_path: Path) -> None:
    from resources.vectors.files import _checksum

    path = tmp_path / "things" / "manifest.json"
    body = json.loads(path.read_text()) | {"format": 99}
    del body["checksum"]
    path.write_text(json.dumps({**body, "checksum": _checksum(body)}))
    with pytest.raises(StoreError, match="not of format 1; another version"):
        FaissVectorStore(tmp_path).describe("things")


def test_what_a_killed_write_left_behind_is_overwritten(built: FaissVectorStore, tmp_path: Path) -> None:
    """The state between appending to the files and replacing the manifest."""
    for path in files_of(tmp_path):
        if path.suffix in (".f32", ".jsonl", ".i32") and not path.name.startswith("centroids"):
            with path.open("ab") as file:
                file.write(b"half a write")
    (tmp_path / "things" / "manifest.json.1234.new").write_text("{")
    (tmp_path / "things" / "vectors-orphan.f32").write_bytes(b"a generation that was never named")
    vectors = random_vectors(200)
    for store in (FaissVectorStore(tmp_path, flat_up_to=built._flat_up_to), built):
        assert found(store, vectors[3].tolist(), 1) == [("c3", 1.0)]
        store.upsert("things", ["new"], -vectors[3:4], ["h"])
        assert found(FaissVectorStore(tmp_path), (-vectors[3]).tolist(), 1) == [("new", 1.0)]
    assert not [path.name for path in files_of(tmp_path) if "orphan" in path.name or path.name.endswith(".new")]


def test_replacing_everything_again_and_again_does_not_fill_the_disk(built: FaissVectorStore, tmp_path: Path) -> None:
    reader = FaissVectorStore(tmp_path)
    for seed in range(1, 31):
        vectors = random_vectors(200, seed=seed)
        built.upsert("things", [f"c{n}" for n in range(200)], vectors, [str(seed)] * 200)
        assert found(reader, vectors[11].tolist(), 1) == found(built, vectors[11].tolist(), 1) == [("c11", 1.0)]
    assert sum(path.stat().st_size for path in files_of(tmp_path) if path.name.startswith("vectors")) <= 200 * 8 * 4 * 8
    assert reader.describe("things").count == 200  # type: ignore[union-attr]


def test_an_append_writes_no_more_than_it_adds(built: FaissVectorStore, tmp_path: Path) -> None:
    vectors = next(path for path in files_of(tmp_path) if path.name.startswith("vectors"))
    before = (vectors.stat().st_ino, vectors.stat().st_size)
    built.upsert("things", ["one"], np.ones((1, 8)), ["h"])
    assert (vectors.stat().st_ino, vectors.stat().st_size) == (before[0], before[1] + 32)


def test_clusters_find_what_exact_search_finds_while_the_index_grows(tmp_path: Path) -> None:
    """Groups arrive one after the other, so that early trainings have not seen the later ones."""
    random = np.random.default_rng(5)
    centres = random.standard_normal((60, 32))
    vectors = np.repeat(centres, 50, axis=0) + 0.5 * random.standard_normal((3000, 32))
    ids = [f"i{n:04}" for n in range(3000)]
    memory, disk = MemoryVectorStore(), FaissVectorStore(tmp_path, flat_up_to=200)
    for store in (memory, disk):
        store.open_index("things", model="m", dimension=32)
        for start in range(0, 3000, 100):
            store.upsert("things", ids[start : start + 100], vectors[start : start + 100], ids[start : start + 100])
    queries = vectors[::30] + 0.3 * random.standard_normal((100, 32))
    pairs = zip(disk.search("things", queries, 10), memory.search("things", queries, 10), strict=True)
    recall = np.mean([len({hit.record for hit in ours} & {hit.record for hit in exact}) / 10 for ours, exact in pairs])
    assert recall >= 0.98
    assert any(path.name.startswith("centroids") for path in files_of(tmp_path))


# Processes and threads


WRITER = """
import sys
from pathlib import Path
import numpy as np
from resources.vectors.faiss import FaissVectorStore
name, batches = sys.argv[2], int(sys.argv[3])
store = FaissVectorStore(Path(sys.argv[1]), flat_up_to=400)
store.open_index("things", model="m", dimension=8)
random = np.random.default_rng(sum(map(ord, name)))
for batch in range(batches):
    ids = [f"{name}-{batch}-{n}" for n in range(50)]
    store.upsert("things", ids, random.standard_normal((50, 8)), ids)
    print(batch, flush=True)
"""


def start_writer(folder: Path, name: str, batches: int) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name, str(batches)], stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once_while_a_third_reads(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, name, 12) for name in ("one", "two")]
    reader = FaissVectorStore(tmp_path)
    while any(writer.poll() is None for writer in writers):
        if info := reader.describe("things"):
            assert info.count % 50 == 0, "a write is seen whole or not at all"
            assert len(reader.search("things", np.ones((1, 8)), 5)[0]) == 5 or not info.count
    for writer in writers:
        assert writer.stdout
        writer.stdout.close()
        assert writer.returncode == 0
    assert reader.describe("things").count == 1200  # type: ignore[union-attr]
    assert len(reader.hashes("things")) == 1200


def test_a_writer_killed_at_any_moment_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    """OPEN-35"""
    for round_ in range(6):
        with start_writer(tmp_path, f"w{round_}", 10_000) as writer:
            assert writer.stdout
            for _ in range(3 + 4 * round_):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        store = FaissVectorStore(tmp_path, flat_up_to=400)
        info = store.open_index("things", model="m", dimension=8)
        assert info.count % 50 == 0
        for item, vector in store.get("things", [f"w{round_}-0-0", f"w{round_}-2-49"]).items():
            assert found(store, vector.tolist(), 1) == [(item, 1.0)]
    assert store.upsert("things", ["after"], np.ones((1, 8)), ["h"]) == 1


def test_one_store_serves_many_threads(store: VectorStore) -> None:
    fill(store, {"a": [1, 0]})
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(10):
                fill(store, {f"t{number}-{n}": [-1, n]})
                assert found(store, [1, 0], 1) == [("a", 1.0)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert store.describe("things").count == 41  # type: ignore[union-attr]


def test_a_folder_can_be_copied(built: FaissVectorStore, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "things", tmp_path / "copy" / "things")
    assert FaissVectorStore(tmp_path / "copy").hashes("things") == built.hashes("things")
