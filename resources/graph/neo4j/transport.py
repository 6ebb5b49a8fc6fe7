"""Talking to a Neo4j server: sessions, transactions, time limits, values and errors."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from resources.errors import StoreError
from resources.graph.cypher.dialect import Rows
from resources.graph.encoding import clean_text
from resources.graph.neo4j.options import Neo4jOptions
from resources.secrets import mask_secrets

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction, Result, Transaction

_CONNECT_SECONDS = 5
_ACQUIRE_SECONDS = 5
_RETRY_SECONDS = 2
_READ_SECONDS = 10
_WRITE_SECONDS = 120
_INT64 = range(-(2**63), 2**63)
_Result = TypeVar("_Result")


class Neo4jTransport:
    """One database of a server. Nothing is connected before the first call; without a password the login is anonymous.

    Raises:
        StoreError: there is no address; from every method: the server can't be reached, or refuses the login or a statement.
    """

    def __init__(self, options: Neo4jOptions) -> None:
        self.address = options.address
        if not self.address:
            raise StoreError("No Neo4j server is named. Set the option uri, or the environment variable NEO4J_URI.")
        self._options = options
        self._password = os.environ.get(options.password.env)
        self._driver: Driver | None = None
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def read(self, work: "Callable[[ManagedTransaction], _Result]") -> _Result:
        """Do work in a transaction in which the server refuses to write. It may be done again when the connection breaks."""
        from neo4j import READ_ACCESS, unit_of_work

        with (
            self._errors(),
            self._connected().session(database=self._options.database, default_access_mode=READ_ACCESS) as session,
        ):
            return session.execute_read(unit_of_work(timeout=_READ_SECONDS)(work))

    def write(self, work: "Callable[[ManagedTransaction], _Result]") -> _Result:
        """Do work in a transaction, all or none. It may be done again: after a deadlock, or when the connection breaks."""
        from neo4j import unit_of_work

        with self._errors(), self._connected().session(database=self._options.database) as session:
            return session.execute_write(unit_of_work(timeout=_WRITE_SECONDS)(work))

    def write_once(self, work: "Callable[[Transaction], _Result]") -> _Result:
        """Do work in a transaction, all or none, and never twice."""
        with (
            self._errors(),
            self._connected().session(database=self._options.database) as session,
            session.begin_transaction(timeout=_READ_SECONDS) as transaction,
        ):
            result = work(transaction)
            transaction.commit()
            return result

    def _connected(self) -> "Driver":
        from neo4j import GraphDatabase

        with self._lock:
            if self._closed:
                raise StoreError("The graph store is closed. Open it again.")
            if self._driver is None:
                logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)  # it warns of labels that an empty graph lacks
                self._driver = GraphDatabase.driver(
                    self.address,
                    auth=None if self._password is None else (self._options.user, self._password),
                    connection_timeout=_CONNECT_SECONDS,
                    connection_acquisition_timeout=_ACQUIRE_SECONDS,
                    max_transaction_retry_time=_RETRY_SECONDS,
                )
            return self._driver

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what the driver raises as StoreError, without secrets."""
        from neo4j.exceptions import AuthError, ClientError, DriverError, Neo4jError

        try:
            yield
        except (DriverError, Neo4jError, ValueError, OverflowError) as error:
            where = f"The Neo4j database at {self.address}"
            if isinstance(error, AuthError):
                problem = (
                    f"{where} refused the login of user {self._options.user!r}. Set the password in the environment variable"
                    f" {self._options.password.env}."
                )
            elif isinstance(error, ClientError):
                problem = f"{where} refused a statement: {error.message}"
            else:
                problem = f"{where} can't be reached: {type(error).__name__}: {error}. Check its address, and that it runs."
            raise StoreError(mask_secrets(problem, self._password or "")) from error


def rows(transaction: Any, statement: str, parameters: Mapping[str, Any]) -> Rows:
    """The rows of one statement, as lists."""
    return [list(record.values()) for record in run(transaction, statement, parameters)]


def run(transaction: Any, statement: str, parameters: Mapping[str, Any]) -> "Result":
    """Run one statement. Texts are cleaned of what the database can't hold.

    Raises:
        StoreError: a number has more than 64 bits.
    """
    result: Result = transaction.run(statement, sendable(parameters))
    return result


def sendable(value: Any) -> Any:
    """The value as the driver can send it."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
        raise StoreError(f"{value} can't be a parameter: the database's integers have 64 bits. Pass it as text.")
    return value


def plain(value: Any) -> Any:
    """Nodes, edges and paths as dictionaries; dates and times as ISO text; points and other values as text."""
    from neo4j.graph import Node, Path, Relationship

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Node):
        return {"labels": sorted(value.labels), "properties": plain(dict(value.items()))}
    if isinstance(value, Relationship):
        return {"type": value.type, "properties": plain(dict(value.items()))}
    if isinstance(value, Path):
        return {"nodes": [plain(node) for node in value.nodes], "edges": [plain(edge) for edge in value.relationships]}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.iso_format() if hasattr(value, "iso_format") else str(value)
