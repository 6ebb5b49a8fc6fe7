"""What a text store promises, on every backend, and what SQLite promises besides."""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resources.errors import SettingsError, StoreError
from resources.records import Chunk, Document
from resources.text.words import words
from resources.texts import open_text_store
from resources.texts.base import TextStore, content_hash
from resources.texts.sqlite import SqliteTextStore, match_expression
from tests.support.spellings import SPELLINGS


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TextStore]:
    with open_text_store(request.param, tmp_path) as opened:
        yield opened


def document(id_: str, text: str, **changes: Any) -> Document:
    return replace(Document(id_, f"{id_}.txt", id_.title(), text, "hash of " + id_, {"page": 1}), **changes)


def chunk(id_: str, document_id: str, index: int, text: str, **changes: Any) -> Chunk:
    return replace(Chunk(id_, document_id, index, text, 0, len(text), {"page": 1}), **changes)


def fill(store: TextStore, texts: dict[str, str]) -> None:
    """A document a text, each of one chunk with the same id."""
    store.put_documents([document(id_, text) for id_, text in texts.items()])
    store.replace_chunks({id_: [chunk(id_, id_, 0, text)] for id_, text in texts.items()})


def found(store: TextStore, question: str, k: int = 10, **options: Any) -> list[str]:
    return [hit.record.id for hit in store.search(question, k, **options)]


# Documents and chunks


def test_documents_and_chunks_come_back_as_they_were(store: TextStore) -> None:
    first = document("a", "one\ntwo", metadata={"tags": ["x", {"y": None}], "n": 2**40, "é": 1.5})
    assert store.put_documents([first, document("b", "")]) == 2
    pieces = [chunk("a1", "a", 0, "[1]"), chunk("a2", "a", 1, "two", start=4, end=7)]
    assert store.replace_chunks({"a": pieces}) == 2
    assert store.get_documents(["a", "nobody"]) == {"a": first}
    assert store.get_chunks(["a2", "a1", "nobody"]) == {"a1": pieces[0], "a2": pieces[1]}
    assert store.count() == (2, 2)
    assert store.chunk_ids() == {"a": ["a1", "a2"]}


def test_a_document_put_again_is_replaced_and_keeps_its_chunks(store: TextStore) -> None:
    fill(store, {"a": "old words"})
    store.put_documents([document("a", "new words")])
    assert store.get_documents(["a"])["a"].text == "new words"
    assert store.count() == (1, 1)


def test_the_hash_of_a_document_covers_text_source_title_and_metadata(store: TextStore) -> None:
    first = document("a", "text", metadata={"x": 1, "y": 2})
    store.put_documents([first])
    assert store.document_hashes() == {"a": content_hash(first)}
    assert content_hash(replace(first, metadata={"y": 2, "x": 1}, id="b", text_hash="")) == content_hash(first)
    changed = [replace(first, **{name: "other"}) for name in ("text", "source", "title")]
    changed += [replace(first, metadata={"x": 1}), replace(first, source="a.txtA", title="")]
    assert len({content_hash(other) for other in [first, *changed]}) == 6


def test_every_document_and_chunk_is_paged_in_order(store: TextStore) -> None:
    ids = [f"d{n:02}" for n in range(23)]
    store.put_documents([document(id_, id_) for id_ in reversed(ids)])
    store.replace_chunks({id_: [chunk(f"{id_}-{n}", id_, n, id_) for n in (2, 1, 0)] for id_ in ids})
    assert [item.id for item in store.documents(page_size=5)] == ids
    for page_size in (1, 4, 69, 70, 1000):
        assert [item.id for item in store.chunks(page_size=page_size)] == [f"{id_}-{n}" for id_ in ids for n in range(3)]
    with pytest.raises(StoreError, match="page_size is 0"):
        list(store.chunks(page_size=0))


def test_a_store_can_be_written_between_two_pages(store: TextStore) -> None:
    fill(store, {f"d{n}": "x" for n in range(6)})
    pages = store.documents(page_size=2)
    next(pages)
    store.delete_documents(["d3"])
    assert [item.id for item in pages] == ["d1", "d2", "d4", "d5"]


def test_more_ids_than_a_statement_has_parameters_can_be_asked_for(store: TextStore) -> None:
    fill(store, {"a": "x"})
    assert list(store.get_chunks([f"no{n}" for n in range(40_000)] + ["a"])) == ["a"]


def test_a_store_survives_being_closed(tmp_path: Path) -> None:
    with open_text_store("sqlite", tmp_path / "new") as store:
        fill(store, {"a": "kites"})
    with pytest.raises(StoreError, match="closed"):
        store.count()
    with open_text_store("sqlite", tmp_path / "new") as store:
        assert found(store, "kites") == ["a"]


def test_an_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"'paper' is not one of the known text stores\. Known: sqlite\."):
        open_text_store("paper", Path())


# Deleting and replacing


def test_identical_texts_of_two_sources_stay_two_and_one_can_go(store: TextStore) -> None:
    """OPEN-10"""
    fill(store, {"a": "Alpha Corp sells kites.", "b": "Alpha Corp sells kites."})
    assert store.count() == (2, 2)
    assert found(store, "kites", source="b.txt") == ["b"]
    assert store.delete_documents(["a", "nobody"]) == 1
    assert found(store, "kites") == ["b"]


def test_a_deleted_document_leaves_nothing_behind(store: TextStore) -> None:
    """OPEN-13"""
    fill(store, {"d1": "Ana hired Bo.", "d2": "Bo trained Cy."})
    store.delete_documents(["d1"])
    assert (store.count(), found(store, "Ana"), found(store, "Bo")) == ((1, 1), [], ["d2"])
    assert (store.chunk_ids(), list(store.document_hashes())) == ({"d2": ["d2"]}, ["d2"])
    store.put_documents([document("d3", "Ana left.")])
    store.replace_chunks({"d3": [chunk("d3", "d3", 0, "Ana left.")]})
    assert found(store, "Ana") == ["d3"]


def test_full_text_rows_stay_in_step_when_a_thousand_chunks_are_written_again(tmp_path: Path) -> None:
    path = tmp_path / "texts.db"
    with SqliteTextStore(path) as store:
        store.put_documents([document("a", "x"), document("b", "x")])
        for word in ("kites", "boats"):
            store.replace_chunks({"a": [chunk(f"c{n}", "a", n, f"{word} {n}") for n in range(1000)]})
        store.replace_chunks({"b": [chunk("b", "b", 0, "boats")]})
        assert (found(store, "kites"), len(found(store, "boats", 2000))) == ([], 1001)
        with sqlite3.connect(path) as database:
            assert database.execute("SELECT count(*) FROM chunk_words").fetchone() == (1001,)
            assert database.execute("SELECT count(*) FROM chunk_words WHERE chunk_words MATCH 'kites'").fetchone() == (0,)
        database.close()
        assert store.replace_chunks({"a": []}) == 0
        assert store.count() == (2, 1)


# Bad rows


def test_nul_and_lone_surrogates_are_left_out_and_break_no_batch(store: TextStore) -> None:
    """OPEN-20"""
    texts = ["a\0b", "line1\nline2\r\nline3", "tab\there", 'quote " and back\\slash', "ends with backslash \\", "a\ud83db"]
    stored = ["ab", *texts[1:5], "ab"]
    given = [document(f"d{n}", text, title=text, metadata={"note": text}) for n, text in enumerate(texts)]
    store.put_documents(given)
    store.replace_chunks({f"d{n}": [chunk(f"d{n}", f"d{n}", 0, text)] for n, text in enumerate(texts)})
    assert [item.text for item in store.documents()] == stored
    assert [item.title for item in store.documents()] == stored
    assert [item.text for item in store.chunks()] == stored
    assert store.document_hashes() == {item.id: content_hash(item) for item in given}, "a rebuild must see no change"
    assert found(store, "a\0b") == found(store, "a\ud83db") == ["d0", "d5"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (document("d7", {"an": "object"}), "text of document 'd7'.*dict"),  # type: ignore[arg-type]
        (document("", "x"), "'' can't be an id"),
        (document("d\0", "x"), r"'d\\x00' can't be an id"),
        (document("d7", "x", metadata={"when": object()}), "metadata of document 'd7'"),
    ],
)
def test_a_bad_document_among_a_thousand_is_named_and_nothing_is_written(store: TextStore, bad: Document, said: str) -> None:
    """OPEN-23: a batch is stored whole or refused whole."""
    good = [document(f"g{n:03}", "x") for n in range(999)]
    with pytest.raises(StoreError, match=said):
        store.put_documents([*good[:500], bad, *good[500:]])
    assert store.count() == (0, 0)
    assert store.put_documents(good) == 999


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (chunk("c7", "d", 700, 5 * ["x"]), "text of chunk 'c7' of document 'd' is no text but list"),  # type: ignore[arg-type]
        (chunk("c7", "other", 700, "x"), "says that its document is 'other'"),
        (chunk("c003", "d", 700, "x"), "'c003' of document 'd' is there twice"),
        (chunk("c7", "d", 3, "x"), "has index 3, which another chunk"),
        (chunk("c7", "d", 700, "x", start=-1), r"\(700, -1, 1\)"),
        (chunk("e", "d", 700, "x"), "'e' .document 'e'."),
    ],
)
def test_a_bad_chunk_is_named_and_the_old_chunks_stay(store: TextStore, bad: Chunk, said: str) -> None:
    fill(store, {"d": "before", "e": "elsewhere"})
    with pytest.raises(StoreError, match=said):
        store.replace_chunks({"d": [*(chunk(f"c{n:03}", "d", n, "after") for n in range(600)), bad]})
    assert (found(store, "before"), found(store, "after")) == (["d"], [])


def test_chunks_of_an_unknown_document_are_refused(store: TextStore) -> None:
    with pytest.raises(StoreError, match="'ghost'; put the documents first"):
        store.replace_chunks({"ghost": [chunk("c", "ghost", 0, "x")]})
    assert store.replace_chunks({"ghost": []}) == 0


# Search


PUNCTUATED = {
    "d1": "We write C++ and C# at AT&T.",
    "d2": "what's new in multi-agent planning, release 20.04",
    "d3": "mail ops@nasa.example about file a:b",
}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("C++", ["d1"]),
        ("AT&T", ["d1"]),
        ("what's", ["d2"]),
        ("multi-agent", ["d2"]),
        ("20.04", ["d2"]),
        ("@nasa", ["d3"]),
        ("a:b", ["d3"]),
        ('"unbalanced', []),
        ("*", []),
        (":", []),
        ("-", []),
        ("\U0001f600", []),
        ("", []),
        ("   ", []),
        ("NOT", []),
        ("what is the", []),
        ("{text}: x", []),
    ],
)
def test_a_question_is_taken_as_written(store: TextStore, question: str, expected: list[str]) -> None:
    """OPEN-21"""
    fill(store, PUNCTUATED)
    assert found(store, question) == expected


@pytest.mark.parametrize(
    "question", ["(a OR", "a AND AND b", "foo^2", "NEAR(", "NEAR(a b, 3)", "a\0b", '""', "'; DROP TABLE chunks; --", "\ud83d"]
)
def test_nothing_in_a_question_is_syntax(store: TextStore, question: str) -> None:
    """OPEN-21"""
    fill(store, PUNCTUATED)
    store.search(question, 5)
    assert store.count() == (3, 3)


def test_symbols_that_belong_to_a_word_tell_names_apart(store: TextStore) -> None:
    fill(
        store,
        {
            "cpp": "We use C++.",
            "cs": "We use C#.",
            "c": "We use C.",
            "net": "A .NET shop",
            "catch": "a net of rope",
            "at": "at t",
        },
    )
    assert (found(store, "C++"), found(store, "c#"), found(store, ".NET")) == (["cpp"], ["cs"], ["net"])
    assert sorted(found(store, "net")) == ["catch", "net"]
    assert found(store, "AT&T") == []


def test_a_word_inside_a_chinese_or_japanese_sentence_is_found(store: TextStore) -> None:
    """OPEN-22"""
    fill(store, {"d1": "東京都庁で会議を開いた", "d2": "重跑1gen-itgc后修复已验证", "d3": "京東の会と議"})
    for question, expected in {"東京": "d1", "会議": "d1", "東京都庁": "d1", "修复": "d2", "itgc": "d2", "開": "d1"}.items():
        assert found(store, question) == [expected], question


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("爱因斯坦出生在哪里?", "阿尔伯特·爱因斯坦是一位物理学家"),
        ("アインシュタインはどこで生まれましたか", "物理学者アインシュタインの生涯"),
        ("ｱｲﾝｼｭﾀｲﾝ", "物理学者アインシュタインの生涯"),
        ("서울은 어디에 있습니까", "그는 서울에서 태어났다"),
        ("กรุงเทพ", "เขาเกิดที่กรุงเทพมหานคร"),
        ("दिल्ली कहाँ है", "वह दिल्ली में पैदा हुआ था"),
        ("Где родился Эйнштейн?", "ЭЙНШТЕЙН родился в Ульме"),
        ("istanbul", "İSTANBUL"),
        ("STRASSE", "Hauptstraße"[5:] + " Straße"),
        ("Zurich", "in Zu\u0308rich"),
        ("Erdős", "paul erdos"),
        ("①", "1"),
    ],
)
def test_a_question_in_any_script_finds_its_text(store: TextStore, question: str, text: str) -> None:
    fill(store, {"right": text, "wrong": "something else, 何か他のもの, 다른 것, कुछ और, что-то иное"})
    assert found(store, question)[:1] == ["right"]


def test_accents_of_other_scripts_are_letters(store: TextStore) -> None:
    fill(store, {"nu": "कल", "na": "काल", "i": "мои", "j": "мой"})
    assert (found(store, "कल"), found(store, "काल"), found(store, "мой")) == (["nu"], ["na"], ["j"])


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


def test_better_answers_come_first_and_equal_ones_by_id(store: TextStore) -> None:
    texts = {"z": "kites", "b": "kites", "both": "kites over Ulm", **{f"other{n}": "boats on the sea" for n in range(5)}}
    fill(store, texts)
    hits = store.search("Where is Ulm, and who sells kites?", 10)
    assert [hit.record.id for hit in hits] == ["both", "b", "z"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 < hit.score < float("inf") for hit in hits)
    assert found(store, "kites", 2) == ["b", "z"]
    assert (found(store, "kites", 0), found(store, "kites", source="nowhere")) == ([], [])
    with pytest.raises(StoreError, match="k is -1"):
        store.search("kites", -1)


def test_a_word_that_every_chunk_has_still_gives_finite_positive_scores(store: TextStore) -> None:
    fill(store, {f"d{n}": "kites" for n in range(4)})
    assert all(0 < hit.score < float("inf") for hit in store.search("kites", 4))


def test_a_whole_book_can_be_asked(store: TextStore) -> None:
    fill(store, {"a": "kites"})
    assert found(store, " ".join(f"word{n}" for n in range(20_000)) + " kites") == ["a"]


def test_a_chunk_text_is_data_and_nothing_else(store: TextStore) -> None:
    fill(store, {"a": "[1]", "b": '{"text": "x"}'})
    assert [item.text for item in store.chunks()] == ["[1]", '{"text": "x"}']


# Files, errors, processes


def test_a_database_error_is_never_no_hits(tmp_path: Path) -> None:
    """OPEN-21"""
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
    """OPEN-36"""
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
        assert found(store, "kites") == ["a"], "a reader sees what was there before, at once"
        time.sleep(0.5)
        assert not done
        other.execute("ROLLBACK")
        other.close()
        writer.join(20)
        assert done
        assert store.count()[0] == 2


def test_one_store_serves_many_threads(store: TextStore) -> None:
    fill(store, {"a": "kites"})
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(10):
                fill(store, {f"t{number}-{n}": "boats"})
                assert found(store, "kites") == ["a"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert store.count() == (41, 41)


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
    """OPEN-36"""
    path = tmp_path / "texts.db"
    writers = [start_writer(path, name, 10) for name in ("one", "two")]
    with SqliteTextStore(path) as store:
        while any(writer.poll() is None for writer in writers):
            documents, chunks = store.count()
            assert chunks <= documents
            assert len(store.search("kites", 5000)) % 50 == 0, "a batch is seen whole or not at all"
        assert [writer.wait() for writer in writers] == [0, 0]
        assert store.count() == (1000, 1000)
        assert len(found(store, "kites", 5000)) == 1000
    for writer in writers:
        assert writer.stdout
        writer.stdout.close()


def test_a_killed_writer_leaves_a_whole_store_without_a_lock(tmp_path: Path) -> None:
    """OPEN-36"""
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
        assert len(found(store, "kites", 100_000)) == chunks
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
    assert sorted(found(store, one)) == ["one", "other"]
    assert sorted(found(store, other)) == ["one", "other"]
    if one == "e-mail":  # the only pair whose words differ
        assert (found(store, one)[0], found(store, other)[0]) == ("one", "other")
