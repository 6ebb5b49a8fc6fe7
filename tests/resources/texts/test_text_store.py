"""The promises of every text store, kept by SQLite, and what its files and processes do."""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resources.errors import SettingsError, StoreError
from resources.records import Chunk, Document
from resources.testing.text_store import TextStoreConformance, chunk, document, fill, hit_ids
from resources.text.words import words
from resources.texts import open_text_store
from resources.texts.base import TextStore
from resources.texts.sqlite import SqliteTextStore, match_expression
from tests.support.spellings import SPELLINGS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TextStore]:
    with open_text_store("sqlite", tmp_path) as opened:
        yield opened


class TestSqlite(TextStoreConformance):
    @pytest.fixture
    def store(self, store: TextStore) -> TextStore:
        return store


def test_a_store_survives_being_closed(tmp_path: Path) -> None:
    with open_text_store("sqlite", tmp_path / "new") as store:
        fill(store, {"a": "kites"})
    with pytest.raises(StoreError, match="closed"):
        store.count()
    with open_text_store("sqlite", tmp_path / "new") as store:
        assert hit_ids(store, "kites") == ["a"]


def test_an_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"'paper' is not one of the known text stores\. Known: sqlite\."):
        open_text_store("paper", Path())


def test_full_text_rows_stay_in_step_when_a_thousand_chunks_are_written_again(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    with SqliteTextStore(path) as store:
        store.put_documents([document("a", "x"), document("b", "x")])
        for word in ("kites", "boats"):
            store.replace_chunks({"a": [chunk(f"c{n}", "a", n, f"{word} {n}") for n in range(1000)]})
        store.replace_chunks({"b": [chunk("b", "b", 0, "boats")]})
        assert (hit_ids(store, "kites"), len(hit_ids(store, "boats", 2000))) == ([], 1001)
        with sqlite3.connect(path) as database:
            assert database.execute("SELECT count(*) FROM chunk_words").fetchone() == (1001,)
            assert database.execute("SELECT count(*) FROM chunk_words WHERE chunk_words MATCH 'kites'").fetchone() == (0,)
        database.close()
        assert store.replace_chunks({"a": []}) == 0
        assert store.count() == (2, 1)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
@example("C++ a_+b _.net ..x #_ 20.04")
def test_plain_text_has_the_same_words_in_any_surroundings(text: str) -> None:
    assert words(text) == words(f"{text} 東")[:-1]


@given(st.text())
def test_words_are_words_again_and_none_can_leave_its_quotes(text: str) -> None:
    assert words(" ".join(words(text))) == words(text) or set(text) & set("+&#.")
    for word in words(text):
        assert not set(word) & set(' "\0')
    assert match_expression(text).count('"') % 2 == 0


# Files, errors, processes


def test_a_database_error_is_never_no_hits(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    with SqliteTextStore(path) as store:
        fill(store, {"a": "kites"})
        other = sqlite3.connect(path)
        other.execute("DROP TABLE chunk_words")
        other.close()
        with pytest.raises(StoreError, match=r"texts\.db can't be used: no such table: chunk_words"):
            store.search("kites", 1)


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    path.write_bytes(b"these are not the rows you are looking for" * 100)
    with pytest.raises(StoreError, match=r"texts\.db is damaged: file is not a database\. Move it away"):
        SqliteTextStore(path)


def test_another_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    SqliteTextStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreError, match=r"schema version 99.*Move the file away and build again"):
        SqliteTextStore(path)


def test_a_database_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    with pytest.raises(StoreError, match="schema version 0"):
        SqliteTextStore(path)


def test_a_writer_waits_for_another_one_and_readers_do_not(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    with SqliteTextStore(path) as store:
        fill(store, {"a": "kites"})
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM documents")
        done: list[float] = []

        def write() -> None:
            with SqliteTextStore(path) as second:
                second.put_documents([document("b", "x")])
            done.append(time.monotonic())

        writer = threading.Thread(target=write)
        writer.start()
        assert hit_ids(store, "kites") == ["a"], "a reader sees what was there before, at once"
        time.sleep(0.5)
        assert not done
        other.execute("ROLLBACK")
        other.close()
        writer.join(20)
        assert done
        assert store.count()[0] == 2


WRITER = """
import sys
from pathlib import Path
from resources.records import Chunk, Document
from resources.texts.sqlite import SqliteTextStore, match_expression
from tests.support.spellings import SPELLINGS
from resources.text.words import words
name, batches = sys.argv[2], int(sys.argv[3])
store = SqliteTextStore(Path(sys.argv[1]))
for batch in range(batches):
    ids = [f"{name}-{batch}-{n}" for n in range(50)]
    store.put_documents([Document(id_, id_, id_, "kites", "") for id_ in ids])
    store.replace_chunks({id_: [Chunk(id_, id_, 0, "kites", 0, 5)] for id_ in ids})
    print(batch, flush=True)
"""


def start_writer(path: Path, name: str, batches: int) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(batches)], stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once_while_a_third_reads(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    writers = [start_writer(path, name, 10) for name in ("one", "two")]
    with SqliteTextStore(path) as store:
        while any(writer.poll() is None for writer in writers):
            documents, chunks = store.count()
            assert chunks <= documents
            assert len(store.search("kites", 5000)) % 50 == 0, "a batch is seen whole or not at all"
        assert [writer.wait() for writer in writers] == [0, 0]
        assert store.count() == (1000, 1000)
        assert len(hit_ids(store, "kites", 5000)) == 1000
    for writer in writers:
        assert writer.stdout
        writer.stdout.close()


def test_a_killed_writer_leaves_a_whole_store_without_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    for name in ("first", "second", "third"):
        with start_writer(path, name, 10_000) as writer:
            assert writer.stdout
            for _ in range(3):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            writer.wait()
    with SqliteTextStore(path) as store:
        documents, chunks = store.count()
        assert documents >= 450
        assert chunks % 50 == 0
        assert len(hit_ids(store, "kites", 100_000)) == chunks
        assert store.put_documents([document("after", "x")]) == 1


def test_a_file_with_words_of_older_rules_is_cut_again_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    store = SqliteTextStore(path)
    store.put_documents([Document("d", "d", "d", "by e-mail", "")])
    store.replace_chunks({"d": [Chunk("c", "d", 0, "by e-mail", 0, 9)]})
    store.close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE chunk_words SET words = 'by e mail'")
        database.execute("PRAGMA user_version = 1")
    assert [found.record.id for found in SqliteTextStore(path).search("email", 3)] == ["c"]


@pytest.mark.parametrize("spellings", SPELLINGS)
def test_each_spelling_of_a_word_finds_the_other_and_its_own_first(store: TextStore, spellings: tuple[str, str]) -> None:
    one, other = spellings
    fill(store, {"one": f"It is about {one} today.", "other": f"It is about {other} today.", "neither": "It is about kites."})
    assert sorted(hit_ids(store, one)) == ["one", "other"]
    assert sorted(hit_ids(store, other)) == ["one", "other"]
    if one == "e-mail":  # the only pair whose words differ
        assert (hit_ids(store, one)[0], hit_ids(store, other)[0]) == ("one", "other")
