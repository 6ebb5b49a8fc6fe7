"""Vectors of entities in Cypher: a property of 32-bit floats, which a vector index can take, and its hash beside it."""

from collections.abc import Iterator

from resources.graph.cypher.dialect import Dialect, Reader, Statements
from resources.graph.encoding import identifier
from resources.graph.vectors import VECTOR_HASH_KEY, VECTOR_KEY, VectorChange

_NUMBERS_A_TRANSACTION = 250_000
_REMOVED_A_TRANSACTION = 10_000

_KEY, _HASH = identifier(VECTOR_KEY), identifier(VECTOR_HASH_KEY)
_REMOVE = f"MATCH (e:Entity) WHERE e.id IN $ids SET e.{_KEY} = NULL, e.{_HASH} = NULL"


def stored_vector_hashes(read: Reader) -> dict[str, str]:
    """For each entity the hash of its vector, "" without one."""
    hash_and_id = f"coalesce(e.{_HASH}, '') + ' ' + e.id"
    ((joined,),) = read(f"MATCH (e:Entity) RETURN {read.dialect.joined(hash_and_id)}")  # one row: no server cuts it
    pairs = (line.split(" ", 1) for line in read.dialect.split(joined))
    return {id_: hash_ for hash_, id_ in pairs}


def vector_statements(dialect: Dialect, change: VectorChange) -> Iterator[Statements]:
    """Plan the statements of each transaction. Every call compares again, so repeating an interrupted call completes it."""
    for start in range(0, len(change.removed), _REMOVED_A_TRANSACTION):
        yield [(_REMOVE, {"ids": list(change.removed[start : start + _REMOVED_A_TRANSACTION])})]
    if not change.written:
        return
    # REMOVE comes first because FalkorDB takes two vectors for equal, and then keeps the old one (its issues 2098 and 2099).
    write = f"""UNWIND $rows AS r MATCH (e:Entity {{id: r[0]}})
REMOVE e.{_KEY} SET e.{_HASH} = r[1] {dialect.set_vector("e", _KEY, "r[2]")}"""
    size = max(1, _NUMBERS_A_TRANSACTION // len(change.written[0][2]))
    for start in range(0, len(change.written), size):
        rows = [[id_, hash_, numbers.tolist()] for id_, hash_, numbers in change.written[start : start + size]]
        yield [(write, {"rows": rows})]
