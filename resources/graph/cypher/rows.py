"""What statements return for an entity, a relation and a chunk, and the records that such rows make."""

import json
from collections.abc import Sequence
from typing import Any

from resources.graph.encoding import decode_properties
from resources.records import Chunk, Entity, Relation

ENTITY = "e.id, e.label, e.key, e.entity_type, CASE WHEN e.property_keys IS NULL THEN NULL ELSE properties(e) END"
RELATION = (
    "r.id, h.id, r.label, t.id, r.score, r.chunk_ids, r.start_date, r.end_date,"
    " CASE WHEN r.property_keys IS NULL THEN NULL ELSE properties(r) END"
)
CHUNK = "c.id, c.document_id, c.index, c.text, c.start, c.end, c.metadata"


def entity_record(row: Sequence[Any]) -> Entity:
    return Entity(row[0], row[1], row[2], row[3], decode_properties(row[4]) if row[4] else {})


def relation_record(row: Sequence[Any]) -> Relation:
    id_, head, label, tail, score, chunk_ids, start_date, end_date, properties = row
    found = decode_properties(properties) if properties else {}
    return Relation(id_, head, label, tail, score, tuple(chunk_ids or ()), start_date, end_date, found)


def chunk_record(row: Sequence[Any]) -> Chunk:
    id_, document_id, index, text, start, end, metadata = row
    return Chunk(id_, document_id, index, text, start, end, json.loads(metadata) if metadata else {})
