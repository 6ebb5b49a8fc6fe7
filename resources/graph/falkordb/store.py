"""A graph in FalkorDB.

A write is one statement: nobody reads half of it, and the append-only file holds it whole or not at all. (MULTI/EXEC alone is
not enough: readers come in between its statements.) What was read for it is guarded by WATCH on a counter that every write
raises, so that two writers never lose each other's changes.
"""

import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from resources.errors import StoreError
from resources.graph.cypher.dialect import Dialect, Rows, Statements
from resources.graph.cypher.store import CypherGraphStore, Plan
from resources.graph.falkordb.dialect import FalkorDBDialect
from resources.graph.falkordb.indexes import create_indexes, wait_for_indexes
from resources.graph.falkordb.reading import check_reading, limited
from resources.graph.falkordb.transport import FalkorDBTransport, plain, refuse_error

if TYPE_CHECKING:
    from redis import Redis
    from redis.exceptions import WatchError

_ATTEMPTS_OF_A_WRITE = 200
_WRITE_MILLISECONDS = 10_000
_BROKEN_CONNECTIONS = 3


class FalkorDBGraphStore(CypherGraphStore):
    """One graph of a FalkorDB server.

    Args:
        connect: gives a connected client. It is called again, at most once a call, when the server went away.
        undo: takes the server back to its last complete write, after a statement that failed in the middle. FalkorDB 4.16's
            own undoing forgets attributes, and edges that were deleted along with their nodes.
        graph: the graph's name.
        advice: says what to do when the server breaks connections.

    Raises:
        StoreError: the server can't be reached or refuses a statement; from every method too.
    """

    dialect: ClassVar[Dialect] = FalkorDBDialect()

    def __init__(
        self,
        connect: Callable[[], "Redis"],
        undo: Callable[["Redis"], None],
        graph: str = "retrico",
        advice: Callable[[], str] = lambda: "Look into the log of the server.",
    ) -> None:
        self._transport = FalkorDBTransport(connect, self._prepare, graph)
        self._undo = undo
        self._advice = advice
        self._counter = f"{graph}:writes"
        self._revision = f"{graph}:revision"
        self._has_indexes = False
        try:
            self._transport.call(partial(create_indexes, self._transport))
            self._has_indexes = True
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._transport.close()

    def _prepare(self, client: "Redis") -> None:
        if self._has_indexes:  # an empty graph can't even be asked for them
            wait_for_indexes(self._transport, client)

    def revision(self) -> str:
        while (mark := self._transport.call(lambda client: client.get(self._revision))) is None:
            self._transport.call(lambda client: client.set(self._revision, _new_mark(), nx=True))
        return str(mark)

    def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        read_only: bool = True,
        max_rows: int | None = None,
    ) -> list[dict[str, Any]]:
        values = parameters or {}
        if read_only:
            check_reading(statement)
            text = statement if max_rows is None else limited(statement, max_rows)
            result = self._transport.call(lambda client: self._transport.run(client, text, values, max_rows=max_rows))
        else:
            client = self._transport.call(_alive)  # a write whose connection breaks is not run twice
            result = self._transport.translated(lambda: self._changed(client, statement, values, max_rows))
        names = [column[1] for column in result.header]
        return [dict(zip(names, map(plain, row), strict=True)) for row in result.result_set]

    def _most_rows(self) -> int | None:
        return self._transport.most_rows

    def _run(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        return self._transport.call(lambda client: self._transport.rows(client, statement, parameters))

    def _atomically(self, plan: Plan, *, new_revision: bool = True) -> None:
        from redis.exceptions import WatchError

        broken = 0
        for attempt in range(_ATTEMPTS_OF_A_WRITE):
            try:
                return self._transport.call(lambda client: self._transaction(client, plan, new_revision))
            except WatchError as error:
                if self._is_conflict(error):
                    time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 25)))
                    continue
                broken += 1
                if broken == _BROKEN_CONNECTIONS:
                    raise StoreError(
                        f"The graph server ended {broken} times during one write to the graph {self._transport.graph!r}. "
                        f"{self._advice()}"
                    ) from error
        raise StoreError(
            f"Other writers kept changing the graph {self._transport.graph!r}: nothing was written in"
            f" {_ATTEMPTS_OF_A_WRITE} attempts. Try again when fewer processes write."
        )

    def _is_conflict(self, error: "WatchError") -> bool:
        """Whether another writer was faster. The client raises the same error for a connection that breaks."""
        from redis.exceptions import ConnectionError, TimeoutError

        if isinstance(error.__context__, TimeoutError):
            self._transport.refuse_time_out(error)
        return not isinstance(error.__context__, ConnectionError)

    def _transaction(self, client: "Redis", plan: Plan, new_revision: bool) -> None:
        with client.pipeline(transaction=True) as pipe:
            pipe.watch(self._counter)
            statements = plan(self._reader(partial(self._transport.rows, pipe)))
            if not statements:
                return
            pipe.multi()
            self._mark_change(pipe, new_revision)
            statement, parameters = _as_one(statements)
            pipe.execute_command(*self._transport.command(statement, parameters))
            *_, reply = pipe.execute(raise_on_error=False)
        try:
            refuse_error(statement, reply)
        except StoreError:
            self._undo(client)
            raise

    def _changed(self, client: "Redis", statement: str, parameters: Mapping[str, Any], max_rows: int | None) -> Any:
        with client.pipeline(transaction=True) as pipe:
            self._mark_change(pipe)
            pipe.execute_command(*self._transport.command(statement, parameters), "timeout", _WRITE_MILLISECONDS)
            *_, reply = pipe.execute(raise_on_error=False)
        refuse_error(statement, reply)
        return self._transport.result(client, reply, max_rows)

    def _mark_change(self, pipe: Any, new_revision: bool = True) -> None:
        pipe.incr(self._counter)
        if new_revision:
            pipe.set(self._revision, _new_mark())


def _as_one(statements: Statements) -> tuple[str, dict[str, Any]]:
    """One statement that runs all of them in turn, under one lock."""
    parts, together = [], {}
    for number, (statement, parameters) in enumerate(statements):
        for name, value in parameters.items():
            statement = re.sub(rf"\${name}\b", f"${name}{number}", statement)
            together[f"{name}{number}"] = value
        parts.append(f"CALL {{ {statement} RETURN count(*) AS n{number} }}")
    return " ".join([*parts, "RETURN 1"]), together


def _new_mark() -> str:
    return uuid.uuid4().hex


def _alive(client: "Redis") -> "Redis":
    client.ping()
    return client
