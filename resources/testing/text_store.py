"""What every text store promises, as tests to run on a backend of your own.

In a test file of your package, with pytest installed::

    from resources.testing.text_store import TextStoreConformance

    class TestMyStore(TextStoreConformance):
        @pytest.fixture
        def store(self, tmp_path):
            with MyStore.open(MyStore.options(), tmp_path) as store:
                yield store

``store`` gives an empty store to each test.
"""

import threading
from dataclasses import replace
from typing import Any

import pytest

from resources.errors import StoreError
from resources.records import Chunk, Document
from resources.texts.base import TextStore, content_hash
from resources.texts.structured import OPERATORS, Filter, Sort

PUNCTUATED = {
    "d1": "We write C++ and C# at AT&T.",
    "d2": "what's new in multi-agent planning, release 20.04",
    "d3": "mail ops@nasa.example about file a:b",
}
TWELVE = 12


def document(id_: str, text: str, **changes: Any) -> Document:
    return replace(Document(id_, f"{id_}.txt", id_.title(), text, "hash of " + id_, {"page": 1}), **changes)


def chunk(id_: str, document_id: str, index: int, text: str, **changes: Any) -> Chunk:
    return replace(Chunk(id_, document_id, index, text, 0, len(text), {"page": 1}), **changes)


def fill(store: TextStore, texts: dict[str, str]) -> None:
    """A document a text, each of one chunk with the same id."""
    store.put_documents([document(id_, text) for id_, text in texts.items()])
    store.replace_chunks({id_: [chunk(id_, id_, 0, text)] for id_, text in texts.items()})


def hit_ids(store: TextStore, question: str, k: int = 10, **options: Any) -> list[str]:
    return [hit.record.id for hit in store.search(question, k, **options)]


def put(store: TextStore, document_id: str, *metadata: dict[str, Any], **document: Any) -> None:
    """A document of as many chunks as there are metadata; chunk n says "piece n" and is called ``<document_id>/n``."""
    changes: dict[str, Any] = {"source": f"{document_id}.txt", "title": document_id.title(), "metadata": {}, **document}
    store.put_documents([replace(Document(document_id, "", "", "text", "hash"), **changes)])
    chunks = [
        Chunk(f"{document_id}/{n}", document_id, n, f"piece {n}", 100 * n, 100 * n + 7, some) for n, some in enumerate(metadata)
    ]
    store.replace_chunks({document_id: chunks})


def matching_ids(store: TextStore, *filters: tuple[str, str, Any], sort: tuple[Sort, ...] = (), **page: Any) -> list[str]:
    return [row.chunk.id for row in store.query_chunks([Filter(*one) for one in filters], sort, **page)]


class DocumentsConformance:
    """Documents, chunks and full-text search."""

    @pytest.fixture
    def store(self) -> Any:
        raise NotImplementedError("Override the fixture store: it gives an empty text store to each test.")

    def test_documents_and_chunks_come_back_as_they_were(self, store: TextStore) -> None:
        first = document("a", "one\ntwo", metadata={"tags": ["x", {"y": None}], "n": 2**40, "é": 1.5})
        assert store.put_documents([first, document("b", "")]) == 2
        pieces = [chunk("a1", "a", 0, "[1]"), chunk("a2", "a", 1, "two", start=4, end=7)]
        assert store.replace_chunks({"a": pieces}) == 2
        assert store.get_documents(["a", "nobody"]) == {"a": first}
        assert store.get_chunks(["a2", "a1", "nobody"]) == {"a1": pieces[0], "a2": pieces[1]}
        assert store.count() == (2, 2)
        assert store.chunk_ids() == {"a": ["a1", "a2"]}

    def test_a_document_put_again_is_replaced_and_keeps_its_chunks(self, store: TextStore) -> None:
        fill(store, {"a": "old words"})
        store.put_documents([document("a", "new words")])
        assert store.get_documents(["a"])["a"].text == "new words"
        assert store.count() == (1, 1)

    def test_the_hash_of_a_document_covers_text_source_title_and_metadata(self, store: TextStore) -> None:
        first = document("a", "text", metadata={"x": 1, "y": 2})
        store.put_documents([first])
        assert store.document_hashes() == {"a": content_hash(first)}
        assert content_hash(replace(first, metadata={"y": 2, "x": 1}, id="b", text_hash="")) == content_hash(first)
        changed = [replace(first, text="other"), replace(first, source="other"), replace(first, title="other")]
        changed += [replace(first, metadata={"x": 1}), replace(first, source="a.txtA", title="")]
        assert len({content_hash(other) for other in [first, *changed]}) == 6

    def test_every_document_and_chunk_is_paged_in_order(self, store: TextStore) -> None:
        ids = [f"d{n:02}" for n in range(23)]
        store.put_documents([document(id_, id_) for id_ in reversed(ids)])
        store.replace_chunks({id_: [chunk(f"{id_}-{n}", id_, n, id_) for n in (2, 1, 0)] for id_ in ids})
        assert [item.id for item in store.documents(page_size=5)] == ids
        for page_size in (1, 4, 69, 70, 1000):
            assert [item.id for item in store.chunks(page_size=page_size)] == [f"{id_}-{n}" for id_ in ids for n in range(3)]
        with pytest.raises(StoreError, match="page_size is 0"):
            list(store.chunks(page_size=0))

    def test_a_store_can_be_written_between_two_pages(self, store: TextStore) -> None:
        fill(store, {f"d{n}": "x" for n in range(6)})
        pages = store.documents(page_size=2)
        next(pages)
        store.delete_documents(["d3"])
        assert [item.id for item in pages] == ["d1", "d2", "d4", "d5"]

    def test_more_ids_than_a_statement_has_parameters_can_be_asked_for(self, store: TextStore) -> None:
        fill(store, {"a": "x"})
        assert list(store.get_chunks([f"no{n}" for n in range(40_000)] + ["a"])) == ["a"]

    def test_identical_texts_of_two_sources_stay_two_and_one_can_go(self, store: TextStore) -> None:
        fill(store, {"a": "Alpha Corp sells kites.", "b": "Alpha Corp sells kites."})
        assert store.count() == (2, 2)
        assert hit_ids(store, "kites", source="b.txt") == ["b"]
        assert store.delete_documents(["a", "nobody"]) == 1
        assert hit_ids(store, "kites") == ["b"]

    def test_a_deleted_document_leaves_nothing_behind(self, store: TextStore) -> None:
        fill(store, {"d1": "Ana hired Bo.", "d2": "Bo trained Cy."})
        store.delete_documents(["d1"])
        assert (store.count(), hit_ids(store, "Ana"), hit_ids(store, "Bo")) == ((1, 1), [], ["d2"])
        assert (store.chunk_ids(), list(store.document_hashes())) == ({"d2": ["d2"]}, ["d2"])
        store.put_documents([document("d3", "Ana left.")])
        store.replace_chunks({"d3": [chunk("d3", "d3", 0, "Ana left.")]})
        assert hit_ids(store, "Ana") == ["d3"]

    def test_nul_and_lone_surrogates_are_left_out_and_break_no_batch(self, store: TextStore) -> None:
        texts = ["a\0b", "line1\nline2\r\nline3", "tab\there", 'quote " and back\\slash', "ends with backslash \\", "a\ud83db"]
        stored = ["ab", *texts[1:5], "ab"]
        given = [document(f"d{n}", text, title=text, metadata={"note": text}) for n, text in enumerate(texts)]
        store.put_documents(given)
        store.replace_chunks({f"d{n}": [chunk(f"d{n}", f"d{n}", 0, text)] for n, text in enumerate(texts)})
        assert [item.text for item in store.documents()] == stored
        assert [item.title for item in store.documents()] == stored
        assert [item.text for item in store.chunks()] == stored
        assert store.document_hashes() == {item.id: content_hash(item) for item in given}, "a rebuild must see no change"
        assert hit_ids(store, "a\0b") == hit_ids(store, "a\ud83db") == ["d0", "d5"]

    @pytest.mark.parametrize(
        ("bad", "said"),
        [
            (document("d7", {"an": "object"}), "text of document 'd7'.*dict"),  # type: ignore[arg-type]
            (document("", "x"), "'' can't be an id"),
            (document("d\0", "x"), r"'d\\x00' can't be an id"),
            (document("d7", "x", metadata={"when": object()}), "metadata of document 'd7'"),
        ],
    )
    def test_a_bad_document_among_a_thousand_is_named_and_nothing_is_written(
        self, store: TextStore, bad: Document, said: str
    ) -> None:
        """A batch is stored whole or refused whole."""
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
    def test_a_bad_chunk_is_named_and_the_old_chunks_stay(self, store: TextStore, bad: Chunk, said: str) -> None:
        fill(store, {"d": "before", "e": "elsewhere"})
        with pytest.raises(StoreError, match=said):
            store.replace_chunks({"d": [*(chunk(f"c{n:03}", "d", n, "after") for n in range(600)), bad]})
        assert (hit_ids(store, "before"), hit_ids(store, "after")) == (["d"], [])

    def test_chunks_of_an_unknown_document_are_refused(self, store: TextStore) -> None:
        with pytest.raises(StoreError, match="'ghost'; put the documents first"):
            store.replace_chunks({"ghost": [chunk("c", "ghost", 0, "x")]})
        assert store.replace_chunks({"ghost": []}) == 0

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
    def test_a_question_is_taken_as_written(self, store: TextStore, question: str, expected: list[str]) -> None:
        fill(store, PUNCTUATED)
        assert hit_ids(store, question) == expected

    @pytest.mark.parametrize(
        "question", ["(a OR", "a AND AND b", "foo^2", "NEAR(", "NEAR(a b, 3)", "a\0b", '""', "'; DROP TABLE chunks; --", "\ud83d"]
    )
    def test_nothing_in_a_question_is_syntax(self, store: TextStore, question: str) -> None:
        fill(store, PUNCTUATED)
        store.search(question, 5)
        assert store.count() == (3, 3)

    def test_symbols_that_belong_to_a_word_tell_names_apart(self, store: TextStore) -> None:
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
        assert (hit_ids(store, "C++"), hit_ids(store, "c#"), hit_ids(store, ".NET")) == (["cpp"], ["cs"], ["net"])
        assert sorted(hit_ids(store, "net")) == ["catch", "net"]
        assert hit_ids(store, "AT&T") == []

    def test_a_word_inside_a_chinese_or_japanese_sentence_is_found(self, store: TextStore) -> None:
        fill(store, {"d1": "東京都庁で会議を開いた", "d2": "重跑1gen-itgc后修复已验证", "d3": "京東の会と議"})
        for question, expected in {"東京": "d1", "会議": "d1", "東京都庁": "d1", "修复": "d2", "itgc": "d2", "開": "d1"}.items():
            assert hit_ids(store, question) == [expected], question

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
    def test_a_question_in_any_script_finds_its_text(self, store: TextStore, question: str, text: str) -> None:
        fill(store, {"right": text, "wrong": "something else, 何か他のもの, 다른 것, कुछ और, что-то иное"})
        assert hit_ids(store, question)[:1] == ["right"]

    def test_accents_of_other_scripts_are_letters(self, store: TextStore) -> None:
        fill(store, {"nu": "कल", "na": "काल", "i": "мои", "j": "мой"})
        assert (hit_ids(store, "कल"), hit_ids(store, "काल"), hit_ids(store, "мой")) == (["nu"], ["na"], ["j"])

    def test_better_answers_come_first_and_equal_ones_by_id(self, store: TextStore) -> None:
        texts = {"z": "kites", "b": "kites", "both": "kites over Ulm", **{f"other{n}": "boats on the sea" for n in range(5)}}
        fill(store, texts)
        hits = store.search("Where is Ulm, and who sells kites?", 10)
        assert [hit.record.id for hit in hits] == ["both", "b", "z"]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(0 < hit.score < float("inf") for hit in hits)
        assert hit_ids(store, "kites", 2) == ["b", "z"]
        assert (hit_ids(store, "kites", 0), hit_ids(store, "kites", source="nowhere")) == ([], [])
        with pytest.raises(StoreError, match="k is -1"):
            store.search("kites", -1)

    def test_a_word_that_every_chunk_has_still_gives_finite_positive_scores(self, store: TextStore) -> None:
        fill(store, {f"d{n}": "kites" for n in range(4)})
        assert all(0 < hit.score < float("inf") for hit in store.search("kites", 4))

    def test_a_whole_book_can_be_asked(self, store: TextStore) -> None:
        fill(store, {"a": "kites"})
        assert hit_ids(store, " ".join(f"word{n}" for n in range(20_000)) + " kites") == ["a"]

    def test_a_chunk_text_is_data_and_nothing_else(self, store: TextStore) -> None:
        fill(store, {"a": "[1]", "b": '{"text": "x"}'})
        assert [item.text for item in store.chunks()] == ["[1]", '{"text": "x"}']

    def test_one_store_serves_many_threads(self, store: TextStore) -> None:
        fill(store, {"a": "kites"})
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for n in range(10):
                    fill(store, {f"t{number}-{n}": "boats"})
                    assert hit_ids(store, "kites") == ["a"]
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert store.count() == (41, 41)


class QueriesConformance:
    """Structured questions: conditions, orders and pages."""

    def test_chunks_come_with_source_and_title_of_their_document_in_order_of_document_and_index(self, store: TextStore) -> None:
        put(store, "b", {"page": 1}, source="b.pdf", title="Bees")
        put(store, "a", {}, {})
        rows = store.query_chunks()
        assert [row.chunk.id for row in rows] == ["a/0", "a/1", "b/0"]
        assert (rows[2].source, rows[2].title) == ("b.pdf", "Bees")
        assert {row.chunk.id: row.chunk for row in rows} == store.get_chunks(["a/0", "a/1", "b/0"])

    def test_an_index_is_compared_and_sorted_as_a_number(self, store: TextStore) -> None:
        put(store, "d", *({} for _ in range(TWELVE)))
        assert matching_ids(store, ("index", "gte", 9)) == ["d/9", "d/10", "d/11"]
        assert matching_ids(store, ("index", "gte", "9")) == ["d/9", "d/10", "d/11"]  # a model writes numbers as text
        assert matching_ids(store, sort=(Sort("index", descending=True),), limit=3) == ["d/11", "d/10", "d/9"]
        assert matching_ids(store, ("start", "lt", 200)) == ["d/0", "d/1"]

    def test_numbers_in_metadata_are_numbers_even_if_they_were_stored_as_text(self, store: TextStore) -> None:
        put(store, "d", {"year": 9}, {"year": "10"}, {"year": 100.5}, {"year": "unknown"}, {"other": 1})
        assert matching_ids(store, ("year", "gt", 9)) == ["d/1", "d/2"]
        assert matching_ids(store, ("year", "eq", 10)) == ["d/1"]
        assert matching_ids(store, ("year", "lte", "10.0")) == ["d/0", "d/1"]
        assert matching_ids(store, sort=(Sort("year"),)) == ["d/0", "d/1", "d/2", "d/3", "d/4"]
        assert matching_ids(store, sort=(Sort("year", descending=True),)) == ["d/2", "d/1", "d/0", "d/3", "d/4"]

    def test_dates_compare_as_text(self, store: TextStore) -> None:
        put(store, "d", {"date": "1999-12-31"}, {"date": "2024-05-01"}, {"date": "2024-11-30"})
        assert matching_ids(store, ("date", "gte", "2024-05-01"), ("date", "lt", "2024-06")) == ["d/1"]
        assert matching_ids(store, ("date", "gt", "2024")) == ["d/1", "d/2"]

    @pytest.mark.parametrize(
        ("operator", "value", "expected"),
        [
            ("eq", "red", ["d/0", "d/2"]),
            ("neq", "red", ["d/1"]),
            ("contains", "RE", ["d/0", "d/1", "d/2"]),
            ("starts_with", "re", ["d/0", "d/2"]),
            ("gt", "green", ["d/0", "d/2"]),
            ("lte", "green", ["d/1", "d/2"]),
        ],
    )
    def test_each_operator_on_a_text_and_on_a_list_of_texts(
        self, store: TextStore, operator: str, value: str, expected: list[str]
    ) -> None:
        put(store, "d", {"colour": "red"}, {"colour": "green"}, {"colour": ["blue", "red"]}, {"shape": "round"}, {"colour": None})
        assert matching_ids(store, ("colour", operator, value)) == expected

    def test_case_does_not_matter_in_a_part_of_a_text_of_any_script(self, store: TextStore) -> None:
        put(store, "d", {}, title="Straße nach ΑΘΗΝΑ")
        assert matching_ids(store, ("title", "contains", "STRASSE")) == ["d/0"]
        assert matching_ids(store, ("title", "contains", "αθηνα")) == ["d/0"]
        assert matching_ids(store, ("title", "starts_with", "nach")) == []

    def test_all_filters_must_hold_and_metadata_of_the_document_counts_too(self, store: TextStore) -> None:
        put(store, "a", {"page": 1}, {"page": 2}, metadata={"author": "Ana", "draft": True})
        put(store, "b", {"page": 2}, metadata={"author": "Bo", "draft": False})
        assert matching_ids(store, ("author", "eq", "Ana"), ("page", "eq", 2)) == ["a/1"]
        assert matching_ids(store, ("draft", "eq", True)) == ["a/0", "a/1"]
        assert matching_ids(store, ("draft", "eq", False)) == ["b/0"]

    def test_a_page_has_a_limit_and_an_offset(self, store: TextStore) -> None:
        put(store, "d", *({} for _ in range(TWELVE)))
        assert matching_ids(store, limit=2) == ["d/0", "d/1"]
        assert matching_ids(store, limit=5, offset=10) == ["d/10", "d/11"]
        assert matching_ids(store, offset=12) == []

    def test_an_unknown_field_is_an_error_that_lists_the_known_ones(self, store: TextStore) -> None:
        put(store, "d", {"page": 1}, metadata={"author": "Ana"})
        for operator in OPERATORS:
            with pytest.raises(StoreError, match=r"no field 'nope'; known are: id, .*index.*author, page"):
                matching_ids(store, ("nope", operator, "x"))
        with pytest.raises(StoreError, match="no field 'nope'"):
            matching_ids(store, sort=(Sort("nope"),))

    @pytest.mark.parametrize(
        "field",
        [
            'id" = "id" OR "id',
            'id" = "id" --',
            "chunks.id",
            "rowid",
            "metadata",
            "1=1; DROP TABLE chunks",
            'x")) UNION SELECT * FROM documents --',
            "$.page",
            '"page"',
            "",
            "\0",
            "\ud800",
        ],
    )
    def test_a_field_is_never_a_piece_of_a_statement(self, store: TextStore, field: str) -> None:
        put(store, "d", {"page": 1}, {"page": 2})
        with pytest.raises(StoreError, match="there is no field"):
            matching_ids(store, (field, "eq", "x"))
        with pytest.raises(StoreError, match="there is no field"):
            matching_ids(store, sort=(Sort(field),))
        assert matching_ids(store) == ["d/0", "d/1"]

    @pytest.mark.parametrize(
        "value", ["' OR '1'='1", '" OR 1=1 --', "'; DROP TABLE chunks; --", "%", "_", "*", "\0", "\ud800x", ":text0"]
    )
    def test_a_value_is_never_a_piece_of_a_statement_nor_a_pattern(self, store: TextStore, value: str) -> None:
        put(store, "d", {"name": value.replace("\0", "").replace("\ud800", "") or "-"}, {"name": "zebra"})
        for operator in OPERATORS:
            matches = matching_ids(store, ("name", operator, value))
            assert matches == ["d/0"] or operator not in ("eq", "contains") or value == "\0", operator
        assert matching_ids(store, ("text", "eq", value)) == []
        assert matching_ids(store) == ["d/0", "d/1"]

    def test_a_key_of_metadata_may_look_like_syntax(self, store: TextStore) -> None:
        put(store, "d", {'a"b': 1, "c.d": 2, "e'; --": 3, "f[0]": "x", "zähl": 5}, {})
        for key, value in (('a"b', 1), ("c.d", 2), ("e'; --", 3), ("f[0]", "x"), ("zähl", 5)):
            assert matching_ids(store, (key, "eq", value)) == ["d/0"]
            assert matching_ids(store, sort=(Sort(key),)) == ["d/0", "d/1"]

    def test_metadata_that_is_no_strict_json_does_not_break_a_question(self, store: TextStore) -> None:
        put(store, "d", {"ratio": float("nan")}, {"ratio": 0.5})
        assert matching_ids(store, ("ratio", "gt", 0)) == ["d/1"]
        assert matching_ids(store, sort=(Sort("ratio"),)) == ["d/1", "d/0"]

    @pytest.mark.parametrize(
        ("filters", "page", "message"),
        [
            ([("index", "like", 1)], {}, "unknown operator 'like' on 'index'; known are: eq, neq"),
            ([("index", "eq = 1 OR 1", 1)], {}, "unknown operator"),
            ([("index", "gt", "many")], {}, "index is a number and can't be compared with 'many'"),
            ([("text", "eq", None)], {}, "text can't be compared with None"),
            ([("text", "eq", ["a"])], {}, "text can't be compared with"),
            ([("index", "eq", float("nan"))], {}, "can't be compared with nan"),
            ([("index", "eq", float("inf"))], {}, "can't be compared with inf"),
            ([("index", "eq", 10**400)], {}, "can't be compared with 1000"),
            ([], {"limit": 0}, "limit is 0; it must be from 1 to 1000"),
            ([], {"limit": 1001}, "limit is 1001"),
            ([], {"offset": -1}, "offset is -1"),
            ([], {"offset": 2**63}, "offset is 9223372036854775808"),
        ],
    )
    def test_what_can_not_be_asked_is_an_error_that_says_why(
        self, store: TextStore, filters: list[tuple[str, str, Any]], page: dict[str, Any], message: str
    ) -> None:
        put(store, "d", {})
        with pytest.raises(StoreError, match=message):
            matching_ids(store, *filters, **page)

    def test_numbers_over_64_bits_match_nothing_smaller(self, store: TextStore) -> None:
        put(store, "d", {"n": 5})
        assert matching_ids(store, ("index", "lt", 2**70)) == ["d/0"]
        assert matching_ids(store, ("n", "gt", 2**70)) == []
        assert matching_ids(store, ("n", "gt", "9" * 30)) == []


class TextStoreConformance(DocumentsConformance, QueriesConformance):
    """All promises of ``resources.texts.base.TextStore``. Override the fixture ``store``."""
