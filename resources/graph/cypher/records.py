"""Records from rows: what statements return for an entity, a relation and a chunk, said once.

``ENTITY`` describes the node ``e``, ``RELATION`` the edge ``r`` from ``h`` to ``t``, ``CHUNK`` the node ``c``.
"""

import json
from collections.abc import Sequence
from typing import Any

from resources.graph.cypher.dialect import Reader
from resources.graph.encoding import decode_properties
from resources.records import Chunk, Entity, Relation

ENTITY = "e.id, e.label, e.key, e.entity_type, CASE WHEN e.property_keys IS NULL THEN NULL ELSE properties(e) END"
RELATION = (
    "r.id, h.id, r.label, t.id, r.score, r.chunk_ids, r.start_date, r.end_date,"
    " CASE WHEN r.property_keys IS NULL THEN NULL ELSE properties(r) END"
)
CHUNK = "c.id, c.document_id, c.index, c.text, c.start, c.end, c.metadata"


def entity_record(row: Sequence[Any]) -> Entity:
    id_, label, key, type_, properties = row
    return Entity(id_, label, key, type_ or "", decode_properties(properties) if properties else {})


def relation_record(row: Sequence[Any]) -> Relation:
    id_, head, label, tail, score, chunk_ids, start_date, end_date, properties = row
    decoded = decode_properties(properties) if properties else {}
    return Relation(id_, head, label, tail, score, tuple(chunk_ids or ()), start_date, end_date, decoded)


def chunk_record(row: Sequence[Any]) -> Chunk:
    id_, document_id, index, text, start, end, metadata = row
    return Chunk(id_, document_id, index, text, start, end, json.loads(metadata) if metadata else {})


def entities_by_id(read: Reader, ids: Sequence[str]) -> dict[str, Entity]:
    """The entities with these ids, by id. Unknown ids are left out."""
    if not ids:
        return {}
    rows = read(f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {ENTITY}", {"ids": list(ids)})
    return {row[0]: entity_record(row) for row in rows}


def chunks_by_id(read: Reader, ids: Sequence[str]) -> dict[str, Chunk]:
    """The chunks with these ids, by id. Unknown ids are left out."""
    if not ids:
        return {}
    rows = read(f"MATCH (c:Chunk) WHERE c.id IN $ids RETURN {CHUNK}", {"ids": list(ids)})
    return {row[0]: chunk_record(row) for row in rows}
