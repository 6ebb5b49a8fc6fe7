"""A graph in FalkorDB, over Redis' protocol.

A write is one statement: nobody reads half of it, and the append-only file holds it whole or not at all. (MULTI/EXEC alone is not
enough: readers come in between its statements.) What was read for it is guarded by WATCH on a counter that every write raises, so
that two writers never lose each other's changes.
"""

import random
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from resources.errors import StoreError
from resources.graph.cypher.store import INDEXED, SEARCHED, CypherGraphStore
from resources.graph.cypher.writes import Read, Rows, Statements
from resources.graph.encoding import identifier, literal
from resources.graph.fulltext import search_text
from resources.graph.reading import check_reading, limited

if TYPE_CHECKING:
    from redis import Redis

_ATTEMPTS_OF_A_WRITE = 200
_QUERY_MILLISECONDS = 10_000
_INDEXING_SECONDS = 120
# Words are stored as they are to be found: nothing to stem, no word to pass over.
_CREATE_SEARCH = (
    "CALL db.idx.fulltext.createNodeIndex({{label: '{label}', stopwords: []}}, {{field: 'search_text', nostem: true}})"
)
_Result = TypeVar("_Result")


class FalkorDBGraphStore(CypherGraphStore):
    """One graph of a FalkorDB server.

    ``connect`` gives a connected client; it is called again, once a call, when the server went away. ``undo`` takes the server
    back to its last complete write, after a statement that failed in the middle: FalkorDB 4.16's own undoing forgets edges that
    went along with their nodes, and attributes. Raises StoreError when the server can't be reached or refuses a statement.
    """

    def __init__(self, connect: Callable[[], "Redis"], undo: Callable[["Redis"], None], graph: str = "retrico") -> None:
        self._connect = connect
        self._undo = undo
        self._name = identifier(graph)
        self._counter = f"{graph}:writes"
        self._revision = f"{graph}:revision"
        self._client: Redis | None = connect()
        self._closed = False
        try:
            self._call(self._create_indexes)
            self._call(self._create_search)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        self._drop_client()

    def revision(self) -> str:
        while (mark := self._call(lambda client: client.get(self._revision))) is None:
            self._call(lambda client: client.set(self._revision, _mark(), nx=True))
        return str(mark)

    def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        read_only: bool = True,
        max_rows: int | None = None,
    ) -> list[dict[str, Any]]:
        if read_only:
            check_reading(statement)
            statement = statement if max_rows is None else limited(statement, max_rows)
            result = self._call(lambda client: self._run(client, "GRAPH.RO_QUERY", statement, parameters or {}, max_rows))
        else:
            client = self._call(_alive)  # a write that is cut off is not run twice
            result = self._translated(lambda: self._changed(client, statement, parameters or {}, max_rows))
        names = [column[1] for column in result.header]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in result.result_set]

    def _read(self, text: str, parameters: Mapping[str, Any]) -> Rows:
        return self._call(lambda client: self._run(client, "GRAPH.RO_QUERY", text, parameters)).result_set

    def _atomically(self, plan: Callable[[Read], Statements], *, new_revision: bool = True) -> None:
        from redis.exceptions import WatchError

        for attempt in range(_ATTEMPTS_OF_A_WRITE):
            try:
                return self._call(lambda client: self._transaction(client, plan, new_revision))
            except WatchError:
                time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 25)))
        raise StoreError(
            f"Other writers changed the graph {self._name!r} all the time; gave up after {_ATTEMPTS_OF_A_WRITE} attempts."
        )

    def _transaction(self, client: "Redis", plan: Callable[[Read], Statements], new_revision: bool) -> None:
        with client.pipeline(transaction=True) as pipe:
            pipe.watch(self._counter)
            statements = plan(lambda text, values: self._run(pipe, "GRAPH.RO_QUERY", text, values).result_set)
            if not statements:
                return
            pipe.multi()
            self._mark_change(pipe, new_revision)
            text, parameters = _as_one(statements)
            pipe.execute_command("GRAPH.QUERY", self._name, _statement(text, parameters), "--compact")
            *_, reply = pipe.execute(raise_on_error=False)
        try:
            _refuse_error(text, reply)
        except StoreError:
            self._undo(client)
            raise

    def _mark_change(self, pipe: Any, new_revision: bool = True) -> None:
        pipe.incr(self._counter)
        if new_revision:
            pipe.set(self._revision, _mark())

    def _changed(self, client: "Redis", text: str, parameters: Mapping[str, Any], max_rows: int | None) -> Any:
        with client.pipeline(transaction=True) as pipe:
            self._mark_change(pipe)
            pipe.execute_command(
                "GRAPH.QUERY", self._name, _statement(text, parameters), "--compact", "timeout", _QUERY_MILLISECONDS
            )
            *_, reply = pipe.execute(raise_on_error=False)
        _refuse_error(text, reply)
        return self._result(client, reply, max_rows)

    def _run(self, client: Any, command: str, text: str, parameters: Mapping[str, Any], max_rows: int | None = None) -> Any:
        from redis.exceptions import ResponseError

        statement = _statement(text, parameters)
        try:
            reply = client.execute_command(command, self._name, statement, "--compact", "timeout", _QUERY_MILLISECONDS)
            return self._result(client, reply, max_rows)
        except ResponseError as error:
            raise StoreError(f"The graph database refused {_shortened(text)!r}: {error}") from error

    def _result(self, client: Any, reply: Any, max_rows: int | None) -> Any:
        """The reply read; rows beyond the limit are not even looked at."""
        from falkordb import Graph
        from falkordb.query_result import QueryResult

        if max_rows is not None and len(reply) == 3:
            reply = [reply[0], reply[1][: max(0, max_rows)], reply[2]]
        return QueryResult(Graph(client, self._name), reply)

    def _create_indexes(self, client: "Redis") -> None:
        statements = [f"CREATE INDEX FOR (n:{label}) ON (n.{key})" for label, key in INDEXED]
        with client.pipeline(transaction=False) as pipe:
            for text in statements:
                pipe.execute_command("GRAPH.QUERY", self._name, text)
            for text, reply in zip(statements, pipe.execute(raise_on_error=False), strict=True):
                if "already indexed" not in str(reply):
                    _refuse_error(text, reply)

    def _create_search(self, client: "Redis") -> None:
        """Full-text indexes, whole before they are used. A graph without them was made before there were any: it is completed."""
        for label, source in SEARCHED:
            if self._is_searchable(client, label):
                continue
            self._fill_search_texts(client, label, source)
            try:
                self._run(client, "GRAPH.QUERY", _CREATE_SEARCH.format(label=label), {})
            except StoreError:
                if not self._is_searchable(client, label):  # no other process made it in the meantime
                    raise
        self._wait_for_indexes(client)

    def _wait_for_indexes(self, client: "Redis") -> None:
        """Until they are whole: a full-text index that is being made, after a restart too, finds only a part."""
        deadline = time.monotonic() + _INDEXING_SECONDS
        while any(status != "OPERATIONAL" for _, status, _ in self._indexes(client)):
            if time.monotonic() > deadline:
                raise StoreError(
                    f"The indexes of graph {self._name!r} were not ready after {_INDEXING_SECONDS} s. Open it again."
                )
            time.sleep(0.01)

    def _is_searchable(self, client: "Redis", label: str) -> bool:
        return any(there == label and "FULLTEXT" in types.get("search_text", ()) for there, _, types in self._indexes(client))

    def _indexes(self, client: "Redis") -> Rows:
        return self._run(
            client, "GRAPH.RO_QUERY", "CALL db.indexes() YIELD label, status, types RETURN label, status, types", {}
        ).result_set

    def _fill_search_texts(self, client: "Redis", label: str, source: str) -> None:
        missing = f"MATCH (n:{label}) WHERE n.search_text IS NULL RETURN n.id, n.{source} LIMIT 5000"
        fill = f"UNWIND $rows AS r MATCH (n:{label} {{id: r[0]}}) SET n.search_text = r[1]"
        while rows := self._run(client, "GRAPH.RO_QUERY", missing, {}).result_set:
            self._changed(client, fill, {"rows": [[id_, search_text(text or "")] for id_, text in rows]}, None)

    def _call(self, work: Callable[["Redis"], _Result]) -> _Result:
        """Do work that may safely be done twice. When the server went away, connect again and do it once more."""
        from redis.exceptions import BusyLoadingError, ConnectionError

        if self._closed:
            raise StoreError("The graph store is closed. Open it again.")
        try:
            return self._translated(lambda: work(self._connected()), passed_on=(ConnectionError,))
        except (BusyLoadingError, ConnectionError):
            self._drop_client()
            return self._translated(lambda: work(self._connected()))

    def _translated(self, work: Callable[[], _Result], passed_on: tuple[type[Exception], ...] = ()) -> _Result:
        from redis.exceptions import RedisError, WatchError

        try:
            return work()
        except RedisError as error:
            if isinstance(error, (WatchError, *passed_on)):
                raise
            raise StoreError(
                f"The graph database of graph {self._name!r} can't be used: {type(error).__name__}: {error}"
            ) from error

    def _connected(self) -> "Redis":
        if self._client is None:
            self._client = self._connect()
            self._wait_for_indexes(self._client)
        return self._client

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _as_one(statements: Statements) -> tuple[str, dict[str, Any]]:
    """One statement that runs all of them in turn, under one lock."""
    parts, together = [], {}
    for number, (text, parameters) in enumerate(statements):
        for name, value in parameters.items():
            text = re.sub(rf"\${name}\b", f"${name}{number}", text)
            together[f"{name}{number}"] = value
        parts.append(f"CALL {{ {text} RETURN count(*) AS n{number} }}")
    return " ".join([*parts, "RETURN 1"]), together


def _mark() -> str:
    return uuid.uuid4().hex


def _alive(client: "Redis") -> "Redis":
    client.ping()
    return client


def _statement(text: str, parameters: Mapping[str, Any]) -> str:
    header = " ".join(f"{identifier(name)}={literal(value)}" for name, value in parameters.items())
    return f"CYPHER {header} {text}" if header else text


def _refuse_error(text: str, reply: Any) -> None:
    error = reply if isinstance(reply, Exception) else reply[0] if isinstance(reply, list) and reply else None
    if isinstance(error, Exception):
        raise StoreError(f"The graph database refused {_shortened(text)!r}: {error}") from error


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def _plain(value: Any) -> Any:
    """Nodes, edges and paths as dictionaries."""
    from falkordb import Edge, Node, Path

    if isinstance(value, Node):
        return {"labels": list(value.labels or ()), "properties": dict(value.properties or {})}
    if isinstance(value, Edge):
        return {"type": value.relation, "properties": dict(value.properties or {})}
    if isinstance(value, Path):
        return {"nodes": [_plain(node) for node in value.nodes()], "edges": [_plain(edge) for edge in value.edges()]}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
