"""Structured questions to a text store: what every backend answers to conditions, orders and pages."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resources.errors import StoreError
from resources.records import Chunk, Document
from resources.texts import open_text_store
from resources.texts.base import TextStore
from resources.texts.structured import OPERATORS, Filter, Sort

TWELVE = 12


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TextStore]:
    with open_text_store(request.param, tmp_path) as opened:
        yield opened


def put(store: TextStore, document_id: str, *metadata: dict[str, Any], **document: Any) -> None:
    """A document of as many chunks as there are metadata; chunk n says "piece n" and is called ``<document_id>/n``."""
    changes = {"source": f"{document_id}.txt", "title": document_id.title(), "metadata": {}, **document}
    store.put_documents([replace(Document(document_id, "", "", "text", "hash"), **changes)])
    chunks = [
        Chunk(f"{document_id}/{n}", document_id, n, f"piece {n}", 100 * n, 100 * n + 7, some) for n, some in enumerate(metadata)
    ]
    store.replace_chunks({document_id: chunks})


def ids(store: TextStore, *filters: tuple[str, str, Any], sort: tuple[Sort, ...] = (), **page: int) -> list[str]:
    return [row.chunk.id for row in store.query_chunks([Filter(*one) for one in filters], sort, **page)]


def test_chunks_come_with_source_and_title_of_their_document_in_order_of_document_and_index(store: TextStore) -> None:
    put(store, "b", {"page": 1}, source="b.pdf", title="Bees")
    put(store, "a", {}, {})
    rows = store.query_chunks()
    assert [row.chunk.id for row in rows] == ["a/0", "a/1", "b/0"]
    assert (rows[2].source, rows[2].title) == ("b.pdf", "Bees")
    assert {row.chunk.id: row.chunk for row in rows} == store.get_chunks(["a/0", "a/1", "b/0"])


def test_an_index_is_compared_and_sorted_as_a_number(store: TextStore) -> None:  # reference B37
    put(store, "d", *({} for _ in range(TWELVE)))
    assert ids(store, ("index", "gte", 9)) == ["d/9", "d/10", "d/11"]
    assert ids(store, ("index", "gte", "9")) == ["d/9", "d/10", "d/11"]  # a model writes numbers as text
    assert ids(store, sort=(Sort("index", descending=True),), limit=3) == ["d/11", "d/10", "d/9"]
    assert ids(store, ("start", "lt", 200)) == ["d/0", "d/1"]


def test_numbers_in_metadata_are_compared_and_sorted_as_numbers_even_if_they_were_stored_as_text(store: TextStore) -> None:
    put(store, "d", {"year": 9}, {"year": "10"}, {"year": 100.5}, {"year": "unknown"}, {"other": 1})
    assert ids(store, ("year", "gt", 9)) == ["d/1", "d/2"]
    assert ids(store, ("year", "eq", 10)) == ["d/1"]
    assert ids(store, ("year", "lte", "10.0")) == ["d/0", "d/1"]
    assert ids(store, sort=(Sort("year"),)) == ["d/0", "d/1", "d/2", "d/3", "d/4"]
    assert ids(store, sort=(Sort("year", descending=True),)) == ["d/2", "d/1", "d/0", "d/3", "d/4"]


def test_dates_compare_as_text(store: TextStore) -> None:
    put(store, "d", {"date": "1999-12-31"}, {"date": "2024-05-01"}, {"date": "2024-11-30"})
    assert ids(store, ("date", "gte", "2024-05-01"), ("date", "lt", "2024-06")) == ["d/1"]
    assert ids(store, ("date", "gt", "2024")) == ["d/1", "d/2"]


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
def test_each_operator_on_a_text_and_on_a_list_of_texts(store: TextStore, operator: str, value: str, expected: list[str]) -> None:
    put(store, "d", {"colour": "red"}, {"colour": "green"}, {"colour": ["blue", "red"]}, {"shape": "round"}, {"colour": None})
    assert ids(store, ("colour", operator, value)) == expected


def test_case_does_not_matter_in_a_part_of_a_text_of_any_script(store: TextStore) -> None:
    put(store, "d", {}, title="Straße nach ΑΘΗΝΑ")
    assert ids(store, ("title", "contains", "STRASSE")) == ["d/0"]
    assert ids(store, ("title", "contains", "αθηνα")) == ["d/0"]
    assert ids(store, ("title", "starts_with", "nach")) == []


def test_all_filters_must_hold_and_metadata_of_the_document_counts_too(store: TextStore) -> None:
    put(store, "a", {"page": 1}, {"page": 2}, metadata={"author": "Ana", "draft": True})
    put(store, "b", {"page": 2}, metadata={"author": "Bo", "draft": False})
    assert ids(store, ("author", "eq", "Ana"), ("page", "eq", 2)) == ["a/1"]
    assert ids(store, ("draft", "eq", True)) == ["a/0", "a/1"]
    assert ids(store, ("draft", "eq", False)) == ["b/0"]


def test_a_page_has_a_limit_and_an_offset(store: TextStore) -> None:
    put(store, "d", *({} for _ in range(TWELVE)))
    assert ids(store, limit=2) == ["d/0", "d/1"]
    assert ids(store, limit=5, offset=10) == ["d/10", "d/11"]
    assert ids(store, offset=12) == []


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_unknown_field_is_an_error_that_lists_the_known_ones(store: TextStore, operator: str) -> None:  # reference B14
    put(store, "d", {"page": 1}, metadata={"author": "Ana"})
    with pytest.raises(StoreError, match=r"no field 'nope'; known are: id, .*index.*author, page"):
        ids(store, ("nope", operator, "x"))
    with pytest.raises(StoreError, match="no field 'nope'"):
        ids(store, sort=(Sort("nope"),))


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
def test_a_field_is_never_a_piece_of_a_statement(store: TextStore, field: str) -> None:  # reference B14
    put(store, "d", {"page": 1}, {"page": 2})
    with pytest.raises(StoreError, match="there is no field"):
        ids(store, (field, "eq", "x"))
    with pytest.raises(StoreError, match="there is no field"):
        ids(store, sort=(Sort(field),))
    assert ids(store) == ["d/0", "d/1"]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    "value", ["' OR '1'='1", '" OR 1=1 --', "'; DROP TABLE chunks; --", "%", "_", "*", "\0", "\ud800x", ":text0"]
)
def test_a_value_is_never_a_piece_of_a_statement_nor_a_pattern(store: TextStore, operator: str, value: str) -> None:
    put(store, "d", {"name": value.replace("\0", "").replace("\ud800", "") or "-"}, {"name": "zebra"})
    found = ids(store, ("name", operator, value))
    if operator == "eq" and value != "\0":
        assert found == ["d/0"]
    if operator == "contains" and value != "\0":
        assert found == ["d/0"]
    assert ids(store, ("text", "eq", value)) == []
    assert ids(store) == ["d/0", "d/1"]


def test_a_key_of_metadata_may_look_like_syntax(store: TextStore) -> None:
    put(store, "d", {'a"b': 1, "c.d": 2, "e'; --": 3, "f[0]": "x", "zähl": 5}, {})
    for key, value in (('a"b', 1), ("c.d", 2), ("e'; --", 3), ("f[0]", "x"), ("zähl", 5)):
        assert ids(store, (key, "eq", value)) == ["d/0"]
        assert ids(store, sort=(Sort(key),)) == ["d/0", "d/1"]


def test_metadata_that_is_no_strict_json_does_not_break_a_question(store: TextStore) -> None:
    put(store, "d", {"ratio": float("nan")}, {"ratio": 0.5})
    assert ids(store, ("ratio", "gt", 0)) == ["d/1"]
    assert ids(store, sort=(Sort("ratio"),)) == ["d/1", "d/0"]


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
    store: TextStore, filters: list[tuple[str, str, Any]], page: dict[str, int], message: str
) -> None:
    put(store, "d", {})
    with pytest.raises(StoreError, match=message):
        ids(store, *filters, **page)


def test_numbers_over_64_bits_match_nothing_smaller(store: TextStore) -> None:
    put(store, "d", {"n": 5})
    assert ids(store, ("index", "lt", 2**70)) == ["d/0"]
    assert ids(store, ("n", "gt", 2**70)) == []
    assert ids(store, ("n", "gt", "9" * 30)) == []
