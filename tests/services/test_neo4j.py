"""Neo4j, asked for real: the promises of every graph store, read-only statements, and the retrieval provider."""

import socket
import threading
from collections.abc import Iterator

import pytest

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.memory import MemoryGraphStore
from resources.graph.neo4j.options import Neo4jOptions
from resources.graph.neo4j.store import Neo4jGraphStore
from resources.records import Subgraph
from resources.testing.graph_store import GraphStoreConformance
from resources.testing.graphs import Says, document, everything, pair
from retrico_assets.query.providers.neo4j import Neo4jProvider, rank_named
from retrico_assets.query.question.question import Question
from tests.support.query_world import documents

pytestmark = [pytest.mark.slow, pytest.mark.services]


@pytest.fixture(scope="session")
def database(neo4j_uri: str) -> Iterator[Neo4jGraphStore]:
    with Neo4jGraphStore(Neo4jOptions(uri=neo4j_uri)) as store:
        yield store


@pytest.fixture
def neo4j(database: Neo4jGraphStore) -> Neo4jGraphStore:
    database.query("MATCH (n) DETACH DELETE n", read_only=False)
    return database


class TestNeo4j(GraphStoreConformance):
    @pytest.fixture
    def store(self, neo4j: Neo4jGraphStore) -> GraphStore:
        return neo4j


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (n) DETACH DELETE n",
        "CREATE (:X)",
        "CALL { CREATE (:X) } RETURN 1",
        "MERGE (n:Entity {id: 'new'}) RETURN n",
        "MATCH (n) RETURN n; MATCH (m) DELETE m",
        "CREATE INDEX FOR (n:X) ON (n.y)",
        "PROFILE CREATE (:X)",
        "LOAD CSV FROM 'file:///etc/hosts' AS l RETURN l",
        "LOAD/**/CSV FROM 'file:///etc/hosts' AS l RETURN l",
        "CALL { LOAD CSV FROM 'file:///etc/hosts' AS l RETURN l } RETURN l",
        "CALL dbms.listConfig() YIELD name RETURN name",
        "CALL db.createLabel('X')",
        "SHOW TRANSACTIONS",
        "TERMINATE TRANSACTIONS 'neo4j-transaction-1'",
        "SHOW USERS",
        "RETURN (",
    ],
)
@pytest.mark.parametrize("max_rows", [None, 10])
def test_a_read_only_statement_changes_nothing_and_reads_nothing_else(
    neo4j: Neo4jGraphStore, statement: str, max_rows: int | None
) -> None:
    neo4j.replace_documents([pair("d1", "Ana", "hired", "Bo")])
    before, mark = everything(neo4j), neo4j.revision()
    with pytest.raises(StoreError):
        neo4j.query(statement, max_rows=max_rows)
    assert (everything(neo4j), neo4j.revision()) == (before, mark)


def test_rows_of_a_query(neo4j: Neo4jGraphStore) -> None:
    neo4j.replace_documents([pair("d1", "Ana", "hired", "Bo")])
    statement = "MATCH (h:Entity {key: $key})-[r]->(t:Entity) RETURN h, r, t.label AS tail, 'LOAD CSV' AS words"
    (row,) = neo4j.query(statement, {"key": "ana"})
    assert (row["h"]["labels"], row["r"]["type"], row["tail"], row["words"]) == (["Entity"], "HIRED", "Bo", "LOAD CSV")
    assert neo4j.query("RETURN date('2020-01-02') AS day") == [{"day": "2020-01-02"}]
    assert neo4j.query("UNWIND range(1, 100000000) AS n RETURN n", max_rows=2) == [{"n": 1}, {"n": 2}]
    with pytest.raises(StoreError, match="64 bits"):
        neo4j.query("RETURN $x", {"x": 2**63})


def test_a_query_that_takes_too_long_is_stopped(neo4j: Neo4jGraphStore) -> None:
    with pytest.raises(StoreError, match=r"(?i)timed? ?out|terminated"):
        neo4j.query("UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(*) AS n")


def test_a_write_that_fails_in_the_middle_leaves_everything_as_it_was(neo4j: Neo4jGraphStore) -> None:
    neo4j.replace_documents([pair("d1", "Ana", "hired", "Bo")])
    before = everything(neo4j)
    fails = [("MATCH (e:Entity) SET e.label = 'changed'", {}), ("MATCH (e:Entity) SET e.map = $map", {"map": {"no": "map"}})]
    with pytest.raises(StoreError, match="refused a statement"):
        neo4j._atomically(lambda read: fails)
    assert everything(neo4j) == before


def test_two_writers_at_once_lose_nothing(neo4j: Neo4jGraphStore, neo4j_uri: str) -> None:
    facts = [pair(f"d{n:03}", f"a{n % 7}", "knows", f"b{n % 11}", 0.5, year=n) for n in range(40)]
    memory = MemoryGraphStore()
    memory.replace_documents(facts)
    problems: list[Exception] = []

    def write(some: list) -> None:
        try:
            with Neo4jGraphStore(Neo4jOptions(uri=neo4j_uri)) as store:
                for graph in some:
                    store.replace_documents([graph])
        except Exception as error:
            problems.append(error)

    writers = [threading.Thread(target=write, args=(facts[n::2],)) for n in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert problems == []
    assert everything(neo4j) == everything(memory)


def test_the_provider_ranks_as_on_any_other_store_and_writes_nothing(neo4j: Neo4jGraphStore, neo4j_uri: str) -> None:
    memory = MemoryGraphStore()
    for store in (memory, neo4j):
        store.replace_documents(documents())
    mark = neo4j.revision()
    provider = Neo4jProvider(Neo4jOptions(uri=neo4j_uri))
    for text in ("Where was Albert Einstein born?", "東京はどこですか", "Nobody that is known"):
        assert provider.rank(Question(text), 3) == rank_named(memory, Question(text), 3)
    assert provider.rank(Question("Nobody that is known"), 3) == Subgraph()
    assert neo4j.revision() == mark
    with (
        Neo4jGraphStore(Neo4jOptions(uri=neo4j_uri), read_only=True) as reading,
        pytest.raises(StoreError, match="read-only"),
    ):
        reading.replace_documents([document("d", Says("x"))])


def test_a_server_that_never_answers_is_an_error_in_a_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"bolt://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreError, match="can't be reached"):
            Neo4jProvider(Neo4jOptions(uri=uri)).rank(Question("Ulm"), 3)
