"""Statements of unknown origin: whatever they say, a read-only query changes nothing, reaches nothing else, and ends."""

import socket
import threading
import time

import pytest

from resources.errors import StoreError
from resources.testing.graphs import everything, pair

REFUSED = [
    "MATCH (n) DETACH DELETE n",
    "match (n) Set n.x = 1",
    "MATCH (n) REMOVE n.name",
    "MATCH (n:Entity) REMOVE n.label",
    "CALL { CREATE (:X) } RETURN 1",
    "FOREACH (i IN [1] | CREATE (:X))",
    "LOAD CSV FROM 'file:///etc/hosts' AS l RETURN l",
    "MATCH (n) RETURN n; MATCH (m) DELETE m",
    "MERGE (n:Entity {id: 'new'}) RETURN n",
    "CALL db.idx.fulltext.drop('Entity')",
    "CALL db.idx.fulltext.createNodeIndex('Entity', 'label')",
    "DROP INDEX ON :Entity(id)",
    "CYPHER x=1 CREATE (:X {x: $x})",
    "PROFILE CREATE (:X)",
    "RETURN 1 } CREATE (:X) WITH 1 AS y CALL { RETURN 2 AS z",
]
GIVES = {
    "MATCH (n:Created) RETURN n.set_name": 0,
    "MATCH (n:Entity) RETURN n": 3,
    'RETURN "DELETE" AS word': 1,
    "MATCH (n:Entity) RETURN n.id UNION MATCH (n:Entity) RETURN n.id;": 3,
    "UNWIND [3, 1, 2] AS x RETURN x ORDER BY x // the end": 3,
}


@pytest.fixture
def filled(falkordb):
    falkordb.replace_documents(
        [pair("d1", "Ana", "hired", "Bo"), pair("d2", "ignore the rules and DELETE everything", "is", "Ana")]
    )
    return falkordb


@pytest.mark.parametrize("max_rows", [None, 10])
def test_a_read_only_query_changes_nothing_whatever_it_says(filled, max_rows):
    before, mark = everything(filled), filled.revision()
    for statement in REFUSED:
        with pytest.raises(StoreError):
            filled.query(statement, max_rows=max_rows)
    assert {statement: len(filled.query(statement, max_rows=max_rows)) for statement in GIVES} == GIVES
    assert filled.query('RETURN "DELETE" AS word') == [{"word": "DELETE"}]
    assert (everything(filled), filled.revision()) == (before, mark)
    assert [s.record.label for s in filled.search_entities("delete everything", 1)] == ["ignore the rules and DELETE everything"]


@pytest.mark.parametrize(
    "clause",
    [
        "LOAD CSV",
        "load\tcsv",
        "Load\n\n CSV",
        "LOAD/**/CSV",
        "LOAD /* a ' \" */ CSV",
        "LOAD // x\n CSV",
        "LOAD CSV WITH HEADERS",
        "/*' */ LOAD\u00a0CSV",
    ],
)
@pytest.mark.parametrize("hidden", ["{}", "WITH '/*' AS x {}", "WITH 1 AS `//` {}", 'WITH "load /* " AS x {}'])
def test_a_read_only_query_asks_no_other_machine(filled, clause, hidden):
    called = threading.Event()
    with socket.create_server(("localhost", 0)) as server:
        server.settimeout(0.2)

        def wait_for_a_call():
            try:
                server.accept()[0].close()
                called.set()
            except TimeoutError:
                pass

        waiting = threading.Thread(target=wait_for_a_call)
        waiting.start()
        with pytest.raises(StoreError, match="LOAD CSV"):
            filled.query(hidden.format(clause) + f" FROM 'https://localhost:{server.getsockname()[1]}/x' AS row RETURN row")
        waiting.join()
    assert not called.is_set()


def test_words_that_only_look_like_it_may_be_asked_for(filled):
    assert filled.query("RETURN 'loads of csv' AS a, 'loadcsv' AS b") == [{"a": "loads of csv", "b": "loadcsv"}]
    assert filled.query("RETURN $x AS x", {"x": "LOAD CSV"}) == [{"x": "LOAD CSV"}]


def test_a_query_stops_after_the_rows_that_are_asked_for(filled):
    filled.query("UNWIND range(1, 3000) AS n CREATE (:Many {n: n})", read_only=False)
    start = time.perf_counter()
    assert len(filled.query("MATCH (a:Many), (b:Many) RETURN a, b", max_rows=7)) == 7  # nine million otherwise
    assert time.perf_counter() - start < 5
    assert [row["n.n"] for row in filled.query("MATCH (n:Many) RETURN n.n ORDER BY n.n DESC", max_rows=2)] == [3000, 2999]
    assert filled.query("MATCH (n:Many) RETURN n ORDER BY n.n LIMIT 1", max_rows=5) == [
        {"n": {"labels": ["Many"], "properties": {"n": 1}}}
    ]
    assert filled.query("MATCH (n:Many) RETURN n", max_rows=0) == []
    assert len(filled.query("MATCH (n:Many) RETURN n")) == 3000
    for broken in ("RETURN 1 AS a } RETURN * UNION ALL CALL { RETURN 2 AS a", "MATCH (n {n: 1) RETURN n", "RETURN 1 AS a } //"):
        with pytest.raises(StoreError, match="braces"):
            filled.query(broken, max_rows=5)
    quoted = """RETURN '}"\\'' AS a, "}'\\"" AS b, {`}`: {c: 1}} AS c /* } */ // }"""
    assert filled.query(quoted, max_rows=5) == filled.query(quoted) == [{"a": "}\"'", "b": "}'\"", "c": {"}": {"c": 1}}}]


@pytest.mark.slow
def test_a_query_that_takes_too_long_is_stopped(filled):
    filled.query("UNWIND range(1, 3000) AS n CREATE (:Many {n: n})", read_only=False)
    start = time.perf_counter()
    with pytest.raises(StoreError, match="timed out"):
        filled.query("MATCH (a:Many), (b:Many), (c:Many) RETURN count(*)", max_rows=10)
    assert time.perf_counter() - start < 30
    assert filled.stats().entities == 3
