"""The promises of every vector store, kept by each backend, and what the files and processes of FAISS do."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from resources.errors import DamagedFileError, SettingsError, StoreError
from resources.testing.vector_store import VectorStoreConformance, fill, hits, random_vectors
from resources.vectors import open_vector_store
from resources.vectors.base import VectorStore
from resources.vectors.faiss import FaissVectorStore
from resources.vectors.memory import MemoryVectorStore


class TestMemory(VectorStoreConformance):
    @pytest.fixture
    def store(self) -> VectorStore:
        return MemoryVectorStore()


class TestFaiss(VectorStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[VectorStore]:
        with open_vector_store("faiss", tmp_path) as opened:
            yield opened


class TestFaissClusters(VectorStoreConformance):
    """The limit for exact search is so low that every index has clusters."""

    exact = False

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[VectorStore]:
        with FaissVectorStore(tmp_path, flat_up_to=2) as opened:
            yield opened


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


def test_an_unknown_backend_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'paper' is not one of the known vector stores\. Known: faiss, memory\."):
        open_vector_store("paper", tmp_path)


def test_a_store_in_memory_is_shared_by_all_that_name_its_folder(tmp_path: Path) -> None:
    with open_vector_store("memory", tmp_path / "x") as store:
        fill(store, {"a": [1, 0]})
    assert hits(open_vector_store("memory", tmp_path / "x"), [1, 0]) == [("a", 1.0)]
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
    assert hits(reader, vectors[7].tolist(), 1) == [("c7", 1.0)]
    built.upsert("things", ["c7", "new"], np.stack([-vectors[7], vectors[7]]), ["1", "2"])
    assert hits(reader, vectors[7].tolist(), 1) == [("new", 1.0)]
    built.delete("things", ["new"])
    assert hits(reader, vectors[7].tolist(), 1)[0][0] not in ("new", "c7")
    built.drop_index("things")
    assert reader.describe("things") is None
    fill(built, {"a": [1, 0]})
    assert hits(reader, [1, 0]) == [("a", 1.0)]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "header":
        content = b"not a database" + content[14:]
    elif how == "cut":
        content = content[: len(content) // 2]
    else:
        content = content[:4096] + bytes(len(content) - 4096)
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["header", "cut", "zeros"])
def test_a_damaged_file_is_named_with_what_to_do_and_nothing_is_answered_from_it(
    built: FaissVectorStore, tmp_path: Path, how: str
) -> None:
    built.close()  # moves the write-ahead log into the file
    damage(tmp_path / "vectors.db", how)
    for use in (
        lambda s: s.search("things", np.ones((1, 8)), 1),
        lambda s: s.upsert("things", ["v4"], np.ones((1, 8)), ["h"]),
    ):
        with pytest.raises(DamagedFileError, match=r"vectors\.db is damaged.*Delete it.*build again"):
            use(FaissVectorStore(tmp_path))
    for path in tmp_path.glob("vectors.db*"):
        path.unlink()
    store = FaissVectorStore(tmp_path)
    fill(store, {"c1": [1, 0, 0], "c2": [0, 1, 0]})
    assert hits(store, [1, 0, 0], 1) == [("c1", 1.0)]


def test_lost_vectors_are_noticed(built: FaissVectorStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as database:
        database.execute("DELETE FROM vectors_1 WHERE id = 'c7'")
        database.commit()
    with pytest.raises(DamagedFileError, match=r"it has 199 of 200 vectors.*Delete it"):
        FaissVectorStore(tmp_path).search("things", np.ones((1, 8)), 1)


def test_a_file_of_a_later_version_is_refused(built: FaissVectorStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match=r"schema version 99.*Move the file away"):
        FaissVectorStore(tmp_path).describe("things")


def test_an_index_of_the_earlier_format_does_not_exist_and_the_new_one_takes_its_place(tmp_path: Path) -> None:
    old = tmp_path / "things"
    old.mkdir()
    for name in ("manifest.json", "vectors-0f.f32", "items-0f.jsonl"):
        (old / name).write_text("{}")
    store = FaissVectorStore(tmp_path)
    assert store.describe("things") is None
    with pytest.raises(StoreError, match="vector index 'things'"):
        store.search("things", np.ones((1, 2)), 1)
    assert old.exists()
    fill(store, {"a": [1, 0]})
    assert hits(store, [1, 0]) == [("a", 1.0)]
    assert not old.exists()


def test_replacing_everything_again_and_again_does_not_fill_the_disk(built: FaissVectorStore, tmp_path: Path) -> None:
    reader = FaissVectorStore(tmp_path)
    for seed in range(1, 31):
        vectors = random_vectors(200, seed=seed)
        built.upsert("things", [f"c{n}" for n in range(200)], vectors, [str(seed)] * 200)
        assert hits(reader, vectors[11].tolist(), 1) == hits(built, vectors[11].tolist(), 1) == [("c11", 1.0)]
    assert reader.describe("things").count == 200  # type: ignore[union-attr]
    for store in (reader, built):
        store.close()
    assert (tmp_path / "vectors.db").stat().st_size < 500_000
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as database:
        assert database.execute("SELECT count(*) FROM deletions").fetchone()[0] <= 1200


def test_a_reader_that_missed_forgotten_deletions_loads_the_index_again(built: FaissVectorStore, tmp_path: Path) -> None:
    reader = FaissVectorStore(tmp_path)
    assert hits(reader, random_vectors(200)[3].tolist(), 1) == [("c3", 1.0)]
    for seed in range(1, 8):  # 1,400 deletions, more than are kept
        built.upsert("things", [f"c{n}" for n in range(200)], random_vectors(200, seed=seed), ["h"] * 200)
    built.delete("things", [f"c{n}" for n in range(100)])
    vectors = random_vectors(200, seed=7)
    assert hits(reader, vectors[150].tolist(), 1) == [("c150", 1.0)]
    assert {item for item, _ in hits(reader, vectors[3].tolist(), 300)} == {f"c{n}" for n in range(100, 200)}


def test_a_child_after_a_fork_reads_and_writes(built: FaissVectorStore, tmp_path: Path) -> None:
    vectors = random_vectors(200)
    assert hits(built, vectors[3].tolist(), 1) == [("c3", 1.0)]
    child = os.fork()
    if child == 0:
        built.upsert("things", ["new"], -vectors[3:4], ["h"])
        os._exit(0 if hits(built, (-vectors[3]).tolist(), 1) == [("new", 1.0)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert hits(built, (-vectors[3]).tolist(), 1) == [("new", 1.0)]


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
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as database:
        assert database.execute("SELECT training FROM indexes").fetchone()[0] > 1


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
            assert hits(store, vector.tolist(), 1) == [(item, 1.0)]
    assert store.upsert("things", ["after"], np.ones((1, 8)), ["h"]) == 1


def test_a_folder_can_be_copied(built: FaissVectorStore, tmp_path: Path) -> None:
    built.close()
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "vectors.db", tmp_path / "copy")
    assert FaissVectorStore(tmp_path / "copy").hashes("things") == built.hashes("things")
