"""Talking to a FalkorDB server over Redis' protocol: connecting, statements as text, replies and errors."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from resources.errors import StoreError
from resources.graph.cypher.dialect import Rows
from resources.graph.encoding import identifier, literal

if TYPE_CHECKING:
    from redis import Redis

_QUERY_MILLISECONDS = 10_000
READ, WRITE = "GRAPH.RO_QUERY", "GRAPH.QUERY"
_Result = TypeVar("_Result")


class FalkorDBTransport:
    """One graph of a server.

    Args:
        connect: gives a connected client. It is called again, at most once a call, when the server went away.
        prepare: is called with each new client before it is used.
        graph: the graph's name.
    """

    def __init__(self, connect: Callable[[], "Redis"], prepare: Callable[["Redis"], None], graph: str) -> None:
        self.graph = identifier(graph)
        self.most_rows: int | None = None
        """The length at which the server cuts results, as it was when the client connected; None if it never does."""
        self._connect = connect
        self._prepare = prepare
        self._client: Redis | None = None
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._drop_client()

    def call(self, work: Callable[["Redis"], _Result]) -> _Result:
        """Do work that may safely be done twice. When the server went away, connect again and do it once more.

        Raises:
            StoreError: the store is closed, or the server can't be reached.
        """
        from redis.exceptions import BusyLoadingError, ConnectionError

        if self._closed:
            raise StoreError("The graph store is closed. Open it again.")
        try:
            return self.translated(lambda: work(self.connected()), passed_on=(ConnectionError,))
        except (BusyLoadingError, ConnectionError):
            self._drop_client()
            return self.translated(lambda: work(self.connected()))

    def translated(self, work: Callable[[], _Result], passed_on: tuple[type[Exception], ...] = ()) -> _Result:
        """Do work once, and raise what the client raises as StoreError; a WatchError and ``passed_on`` pass."""
        from redis.exceptions import RedisError, TimeoutError, WatchError

        try:
            return work()
        except TimeoutError as error:
            self.refuse_time_out(error)
        except RedisError as error:
            if isinstance(error, (WatchError, *passed_on)):
                raise
            raise StoreError(f"The graph {self.graph!r} can't be reached: {type(error).__name__}: {error}") from error

    def refuse_time_out(self, error: Exception) -> NoReturn:
        """Drop the connection, so that the next call finds out whether the server still answers, and raise a StoreError."""
        self._drop_client()
        raise StoreError(
            f"The graph server did not answer in time (graph {self.graph!r}). Try again: a server that hangs is replaced by the "
            "next command. `retrico stop` ends it, too."
        ) from error

    def connected(self) -> "Redis":
        if self._client is None:
            client = self._connect()
            self._client = client
            self.most_rows = _result_limit(client)
            self._prepare(client)
        return self._client

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def rows(self, client: Any, statement: str, parameters: Mapping[str, Any], command: str = READ) -> Rows:
        rows: Rows = self.run(client, statement, parameters, command).result_set
        return rows

    def run(
        self, client: Any, statement: str, parameters: Mapping[str, Any], command: str = READ, max_rows: int | None = None
    ) -> Any:
        """Run one statement within the time limit.

        Raises:
            StoreError: the server refuses the statement.
        """
        from redis.exceptions import ResponseError

        try:
            reply = client.execute_command(*self.command(statement, parameters, command), "timeout", _QUERY_MILLISECONDS)
            return self.result(client, reply, max_rows)
        except ResponseError as error:
            raise _refusal(statement, error) from error

    def command(self, statement: str, parameters: Mapping[str, Any], command: str = WRITE) -> tuple[str, str, str, str]:
        """The words of the command that runs a statement. Parameters travel as literals in its header."""
        header = " ".join(f"{identifier(name)}={literal(value)}" for name, value in parameters.items())
        return (command, self.graph, f"CYPHER {header} {statement}" if header else statement, "--compact")

    def result(self, client: Any, reply: Any, max_rows: int | None = None) -> Any:
        """Read a reply. Rows beyond ``max_rows`` are not decoded."""
        from falkordb import Graph
        from falkordb.query_result import QueryResult

        if max_rows is not None and len(reply) == 3:
            reply = [reply[0], reply[1][: max(0, max_rows)], reply[2]]
        return QueryResult(Graph(client, self.graph), reply)


def refuse_error(statement: str, reply: Any) -> None:
    """Raise a StoreError if the reply, or the first part of it, is an error."""
    first = reply[0] if isinstance(reply, list) and reply else reply
    if isinstance(first, Exception):
        raise _refusal(statement, first) from first


def plain(value: Any) -> Any:
    """Nodes, edges and paths as dictionaries."""
    from falkordb import Edge, Node, Path

    if isinstance(value, Node):
        return {"labels": list(value.labels or ()), "properties": dict(value.properties or {})}
    if isinstance(value, Edge):
        return {"type": value.relation, "properties": dict(value.properties or {})}
    if isinstance(value, Path):
        return {"nodes": [plain(node) for node in value.nodes()], "edges": [plain(edge) for edge in value.edges()]}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def _result_limit(client: "Redis") -> int | None:
    _, limit = client.execute_command("GRAPH.CONFIG", "GET", "RESULTSET_SIZE")
    return int(limit) if int(limit) >= 0 else None


def _refusal(statement: str, error: Exception) -> StoreError:
    shortened = statement if len(statement) <= 200 else statement[:197] + "..."
    return StoreError(f"The graph database refused {shortened!r}: {error}")
