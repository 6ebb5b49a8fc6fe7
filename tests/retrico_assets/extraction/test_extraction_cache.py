"""The extraction cache."""

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from resources.errors import StoreError
from retrico_assets.extraction.cache import ExtractionCache


def test_stored_values_are_read_by_another_connection(tmp_path: Path) -> None:
    values = {(f"h{n}", "k"): {"n": n, "text": "Łódź"} for n in range(1000)}
    with ExtractionCache(tmp_path / "deep" / "cache.db") as cache:
        cache.put_many(values)
        cache.put_many({("h1", "k"): "new"})
    with ExtractionCache(tmp_path / "deep" / "cache.db") as cache:
        found = cache.get_many([*values, ("h1", "other"), ("nothing", "k")])
    assert found == {**values, ("h1", "k"): "new"}


def test_a_damaged_row_counts_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with ExtractionCache(path) as cache:
        cache.put_many({("h", "k"): 1, ("i", "k"): 2})
        with sqlite3.connect(path) as other:
            other.execute("UPDATE extractions SET value = '{\"half' WHERE text_hash = 'h'")
        assert cache.get_many([("h", "k"), ("i", "k")]) == {("i", "k"): 2}


def test_a_damaged_file_is_named_and_may_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(StoreError, match=r"cache\.db is damaged: .*[Dd]elete"):
        ExtractionCache(path)


def _write(path: Path, worker: int) -> None:
    with ExtractionCache(path) as cache:
        for batch in range(20):
            cache.put_many({(f"{worker}-{batch}-{n}", "k"): n for n in range(20)})


def test_many_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(path, worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    with ExtractionCache(path) as cache:
        assert len(cache.get_many([(f"{w}-{b}-{n}", "k") for w in range(3) for b in range(20) for n in range(20)])) == 1200
