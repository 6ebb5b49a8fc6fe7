"""The indexes of a FalkorDB graph: made when a store opens, and whole before they are used."""

import time
from typing import TYPE_CHECKING

from resources.errors import StoreError
from resources.graph.cypher.dialect import INDEXED, SEARCHED, Rows
from resources.graph.falkordb.dialect import FalkorDBDialect
from resources.graph.falkordb.transport import WRITE, FalkorDBTransport, refuse_error
from resources.graph.fulltext import search_text

if TYPE_CHECKING:
    from redis import Redis

_INDEXING_SECONDS = 120
_FILLED_AT_ONCE = 5_000
_DIALECT = FalkorDBDialect()


def create_indexes(transport: FalkorDBTransport, client: "Redis") -> None:
    """Make the indexes that are missing, and wait until all are whole.

    A graph written before there was full-text search is completed.
    """
    statements = [_DIALECT.property_index(label, key) for label, key in INDEXED]
    with client.pipeline(transaction=False) as pipe:
        for statement in statements:
            pipe.execute_command(WRITE, transport.graph, statement)
        for statement, reply in zip(statements, pipe.execute(raise_on_error=False), strict=True):
            if "already indexed" not in str(reply):
                refuse_error(statement, reply)
    for label, source in SEARCHED:
        if not _is_searchable(transport, client, label):
            _make_searchable(transport, client, label, source)
    wait_for_indexes(transport, client)


def wait_for_indexes(transport: FalkorDBTransport, client: "Redis") -> None:
    """Wait until all indexes are whole. While a full-text index is made, after a restart too, it finds only a part.

    Raises:
        StoreError: they are not ready in time.
    """
    deadline = time.monotonic() + _INDEXING_SECONDS
    while any(status != "OPERATIONAL" for _, status, _ in _indexes(transport, client)):
        if time.monotonic() > deadline:
            raise StoreError(
                f"The indexes of graph {transport.graph!r} are not ready after {_INDEXING_SECONDS} s. Open the graph again later."
            )
        time.sleep(0.01)


def _make_searchable(transport: FalkorDBTransport, client: "Redis", label: str, source: str) -> None:
    _fill_search_texts(transport, client, label, source)
    try:
        transport.run(client, _DIALECT.full_text_index(label), {}, WRITE)
    except StoreError:
        if not _is_searchable(transport, client, label):  # no other process made it in the meantime
            raise


def _fill_search_texts(transport: FalkorDBTransport, client: "Redis", label: str, source: str) -> None:
    missing = f"MATCH (n:{label}) WHERE n.search_text IS NULL RETURN n.id, n.{source} LIMIT {_FILLED_AT_ONCE}"
    fill = f"UNWIND $rows AS r MATCH (n:{label} {{id: r[0]}}) SET n.search_text = r[1]"
    while rows := transport.rows(client, missing, {}):
        transport.run(client, fill, {"rows": [[id_, search_text(text or "")] for id_, text in rows]}, WRITE)


def _is_searchable(transport: FalkorDBTransport, client: "Redis", label: str) -> bool:
    indexes = _indexes(transport, client)
    return any(indexed == label and "FULLTEXT" in types.get("search_text", ()) for indexed, _, types in indexes)


def _indexes(transport: FalkorDBTransport, client: "Redis") -> Rows:
    return transport.rows(client, "CALL db.indexes() YIELD label, status, types RETURN label, status, types", {})
