"""A graph in Neo4j.

A write is one transaction. Its first statement takes the lock of one node, so that writers come one after the other and what
they read stays true until they have written.
"""

import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path as FilePath
from typing import Any, ClassVar, Self

from resources.errors import StoreError
from resources.graph.cypher.dialect import INDEXED, SEARCHED, Dialect, Rows
from resources.graph.cypher.store import CypherGraphStore, Plan
from resources.graph.neo4j.dialect import Neo4jDialect
from resources.graph.neo4j.options import Neo4jOptions
from resources.graph.neo4j.transport import Neo4jTransport, plain, rows, run

_INDEXING_SECONDS = 120
_LOCK = "MERGE (s:GraphState {id: 'graph'}) SET s.writing = true"
_MARK = "MERGE (s:GraphState {id: 'graph'}) SET s.revision = $revision"
_REVISION = "MATCH (s:GraphState {id: 'graph'}) RETURN s.revision"


class Neo4jGraphStore(CypherGraphStore):
    """A graph in a database of a Neo4j server.

    Args:
        options: which database.
        read_only: never write, not even indexes: the database belongs to somebody else.

    Raises:
        StoreError: the server can't be reached, or refuses the login or a statement; from every method too.
    """

    dialect: ClassVar[Dialect] = Neo4jDialect()
    options: ClassVar[type[Neo4jOptions]] = Neo4jOptions
    requires: ClassVar[tuple[str, ...]] = ("neo4j",)

    def __init__(self, options: Neo4jOptions, *, read_only: bool = False) -> None:
        self._transport = Neo4jTransport(options)
        self._read_only = read_only
        if not read_only:
            self._create_indexes()

    @classmethod
    def open(cls, options: Neo4jOptions, folder: FilePath) -> Self:
        return cls(options)

    def close(self) -> None:
        self._transport.close()

    def revision(self) -> str:
        if not _has_revision(self._run(_REVISION, {})):
            self._atomically(lambda read: [] if _has_revision(read(_REVISION)) else [_new_revision()], new_revision=False)
        return str(self._run(_REVISION, {})[0][0])

    def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        read_only: bool = True,
        max_rows: int | None = None,
    ) -> list[dict[str, Any]]:
        def work(transaction: Any) -> list[dict[str, Any]]:
            result = run(transaction, statement, parameters or {})
            records = list(result) if max_rows is None else result.fetch(max(0, max_rows))
            result.consume()
            return [{name: plain(record[name]) for name in record.keys()} for record in records]  # noqa: SIM118

        if read_only:
            self._transport.read(lambda transaction: _refuse_reaching_out(transaction, statement, parameters or {}))
            return self._transport.read(work)
        self._refuse_writing()

        def writing(transaction: Any) -> list[dict[str, Any]]:
            run(transaction, _LOCK, {}).consume()
            result = work(transaction)
            run(transaction, *_new_revision()).consume()
            return result

        return self._transport.write_once(writing)

    def _run(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        return self._transport.read(lambda transaction: rows(transaction, statement, parameters))

    def _atomically(self, plan: Plan, *, new_revision: bool = True) -> None:
        self._refuse_writing()

        def work(transaction: Any) -> None:
            run(transaction, _LOCK, {}).consume()
            statements = plan(self._reader(lambda statement, parameters: rows(transaction, statement, parameters)))
            if statements and new_revision:
                statements = [*statements, _new_revision()]
            for statement, parameters in statements:
                run(transaction, statement, parameters).consume()

        self._transport.write(work)

    def _refuse_writing(self) -> None:
        if self._read_only:
            raise StoreError(
                f"The Neo4j database at {self._transport.address} is read-only here. Choose another graph store to write."
            )

    def _create_indexes(self) -> None:
        statements = [self.dialect.property_index(label, key) for label, key in (*INDEXED, ("GraphState", "id"))]
        statements += [self.dialect.full_text_index(label) for label, _ in SEARCHED]
        for statement in statements:
            self._transport.write(partial(_consume, statement))
        self._run("CALL db.awaitIndexes($seconds)", {"seconds": _INDEXING_SECONDS})


def _consume(statement: str, transaction: Any) -> None:
    run(transaction, statement, {}).consume()


def _new_revision() -> tuple[str, dict[str, Any]]:
    return _MARK, {"revision": uuid.uuid4().hex}


def _has_revision(found: Rows) -> bool:
    return bool(found) and found[0][0] is not None


def _refuse_reaching_out(transaction: Any, statement: str, parameters: Mapping[str, Any]) -> None:
    """Raise StoreError for a statement that changes something, or reads outside of the graph, by the server's own plan of it.

    The server itself refuses to write in a read transaction, but counts LOAD CSV, and procedures that read files, as reading.
    """
    summary = run(transaction, f"EXPLAIN {statement}", parameters).consume()
    if summary.query_type != "r":
        raise StoreError("A read-only statement can't change the graph or manage the server. Use MATCH and RETURN.")
    for operator, details in _operators(summary.plan or {}):
        if operator.startswith("LoadCSV"):
            raise StoreError(
                "LOAD CSV reads from outside of the graph; a read-only statement can't hold it. Pass text as a parameter."
            )
        if operator.startswith("ProcedureCall") and not details.startswith("db."):
            raise StoreError(f"A read-only statement can't call {details.split('(')[0]}: only procedures of db.* are allowed.")
        if operator.startswith(("Show", "Terminate")):
            raise StoreError("A read-only statement can't show or end what the server does. Use MATCH and RETURN.")


def _operators(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and details of every operator of a plan."""
    yield plan.get("operatorType", ""), str(plan.get("args", {}).get("Details", ""))
    for child in plan.get("children", ()):
        yield from _operators(child)
