"""Replacing documents in Cypher: first everything is read, then statements are planned that run as one."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from resources.errors import StoreError
from resources.graph.changes import Place, relation_place, relation_states
from resources.graph.cypher.dialect import Reader, Statements
from resources.graph.cypher.entity_writes import changed_entities, existing_entities, new_entities
from resources.graph.cypher.relation_writes import relation_changes
from resources.graph.encoding import stored_float, to_json
from resources.graph.fulltext import search_text
from resources.records import DocumentGraph, ResolvedMention

_WRITE_DOCUMENTS = """UNWIND $rows AS r MERGE (d:Document {id: r[0]}) SET d.source = r[1], d.title = r[2], d.text_hash = r[3],
 d.metadata = r[4], d.relation_keys = r[5], d.fingerprint = NULL"""
_CREATE_CHUNKS = """UNWIND $rows AS r MATCH (d:Document {id: r[1]})
CREATE (c:Chunk {id: r[0], document_id: r[1], index: r[2], text: r[3], start: r[4], end: r[5], metadata: r[6],
 search_text: r[7]})-[:PART_OF]->(d)
WITH c, r UNWIND r[8] AS m MATCH (e:Entity {id: m[0]})
CREATE (e)-[:MENTIONED_IN {start: m[1], end: m[2], score: m[3], text: m[4], label: m[5], key: m[6], properties: m[7]}]->(c)"""
_ORDER_CHUNKS = "UNWIND $rows AS r MATCH (a:Chunk {id: r[0]}), (b:Chunk {id: r[1]}) CREATE (a)-[:NEXT]->(b)"
_CONFIRM = "UNWIND $rows AS r MATCH (d:Document {id: r[0]}) SET d.fingerprint = r[1]"  # last: now the document is whole


@dataclass(frozen=True)
class Replacement:
    """Ids of the documents that the store knew, and the statements that replace them."""

    known: tuple[str, ...]
    statements: Statements


@dataclass(frozen=True)
class _Old:
    """What the store holds of the documents to be replaced: ids, and where their relations are."""

    documents: tuple[str, ...]
    relations: frozenset[Place]
    chunks: frozenset[str]
    entities: frozenset[str]


def replacement(read: Reader, document_ids: Sequence[str], new: Sequence[DocumentGraph]) -> Replacement:
    """Plan the statements after which the store holds of these documents what ``new`` holds, and nothing else.

    Raises:
        StoreError: a new chunk has the id of another document's chunk.
    """
    old = _read_old(read, document_ids)
    _refuse_foreign_chunks(read, old, new)
    mentions: dict[str, list[ResolvedMention]] = defaultdict(list)
    for graph in new:
        for resolved in graph.mentions:
            mentions[resolved.entity_id].append(resolved)
    existing = existing_entities(read, old.entities, mentions)
    states = relation_states(relation for graph in new for relation in graph.relations)
    places = {s.place for s in states.values() if s.head_id in existing.ids and s.tail_id in existing.ids}

    statements = _deletions(document_ids, old, {graph.document.id for graph in new})
    statements += _documents(new)
    statements += new_entities({id_: some for id_, some in mentions.items() if id_ not in existing.ids})
    statements += _chunks(new)
    statements += changed_entities(read, document_ids, old.entities, existing, mentions)
    statements += relation_changes(read, old.relations | places, old.chunks, states)
    statements.append((_CONFIRM, {"rows": [[graph.document.id, graph.fingerprint] for graph in new]}))
    return Replacement(old.documents, [(text, values) for text, values in statements if any(values.values())])


def _read_old(read: Reader, document_ids: Sequence[str]) -> _Old:
    ids = {"ids": list(document_ids)}
    documents = read("MATCH (d:Document) WHERE d.id IN $ids RETURN d.id, d.relation_keys", ids)
    chunks = read("MATCH (c:Chunk) WHERE c.document_id IN $ids RETURN c.id", ids) if documents else []
    entities = []
    if chunks:
        entities = read("MATCH (e:Entity)-[:MENTIONED_IN]->(c:Chunk) WHERE c.document_id IN $ids RETURN DISTINCT e.id", ids)
    return _Old(
        tuple(id_ for id_, _ in documents),
        frozenset(Place(*place) for _, places in documents for place in json.loads(places or "[]")),
        frozenset(id_ for (id_,) in chunks),
        frozenset(id_ for (id_,) in entities),
    )


def _refuse_foreign_chunks(read: Reader, old: _Old, new: Sequence[DocumentGraph]) -> None:
    ids = [chunk.id for graph in new for chunk in graph.chunks if chunk.id not in old.chunks]
    if ids:
        for id_, owner in read("MATCH (c:Chunk) WHERE c.id IN $ids RETURN c.id, c.document_id LIMIT 1", {"ids": ids}):
            raise StoreError(f"Chunk {id_!r} already belongs to document {owner!r}. Chunk ids must be unique over all documents.")


def _deletions(document_ids: Sequence[str], old: _Old, kept: set[str]) -> Statements:
    gone = [id_ for id_ in document_ids if id_ not in kept]
    return [
        ("MATCH (c:Chunk) WHERE c.id IN $ids DETACH DELETE c", {"ids": sorted(old.chunks)}),
        ("MATCH (d:Document) WHERE d.id IN $ids DETACH DELETE d", {"ids": gone if old.documents else []}),
    ]


def _documents(new: Sequence[DocumentGraph]) -> Statements:
    rows = []
    for graph in new:
        d = graph.document
        places = sorted({relation_place(relation) for relation in graph.relations})
        rows.append([d.id, d.source, d.title, d.text_hash, to_json(d.metadata), to_json(places)])
    return [(_WRITE_DOCUMENTS, {"rows": rows})]


def _chunks(new: Sequence[DocumentGraph]) -> Statements:
    """Chunks with their mentions, and the order of the chunks."""
    rows, pairs = [], []
    for graph in new:
        mentions: dict[str, list[list[Any]]] = defaultdict(list)
        for resolved in graph.mentions:
            m = resolved.mention
            properties = to_json(m.properties) if m.properties else None
            row = [resolved.entity_id, m.start, m.end, stored_float(m.score), m.text, m.label, resolved.key, properties]
            mentions[m.chunk_id].append(row)
        ordered = sorted(graph.chunks, key=lambda chunk: chunk.index)
        for c in ordered:
            metadata = to_json(c.metadata) if c.metadata else None
            rows.append([c.id, c.document_id, c.index, c.text, c.start, c.end, metadata, search_text(c.text), mentions[c.id]])
        pairs += [[a.id, b.id] for a, b in pairwise(ordered)]
    return [(_CREATE_CHUNKS, {"rows": rows}), (_ORDER_CHUNKS, {"rows": pairs})]
