"""What it takes to make a Cypher store say what some documents say now: first reads, then statements that run as one."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from resources.errors import StoreError
from resources.graph.changes import RelationState, combined, display_name, entity_of, mention_order, merged, relation_states
from resources.graph.encoding import clean_text, edge_type, encode_properties, identifier, to_json
from resources.graph.fulltext import search_text
from resources.records import DocumentGraph, ResolvedMention

Rows = list[list[Any]]
Read = Callable[[str, Mapping[str, Any]], Rows]
Statements = list[tuple[str, Mapping[str, Any]]]
Place = tuple[str, str, str, str]  # of a relation: edge type, head id, tail id, id

_CONFIRM = "UNWIND $rows AS r MATCH (d:Document {id: r[0]}) SET d.fingerprint = r[1]"  # last: now the document is whole
_CREATE_CHUNKS = """UNWIND $rows AS r MATCH (d:Document {id: r[1]})
CREATE (c:Chunk {id: r[0], document_id: r[1], index: r[2], text: r[3], start: r[4], end: r[5], metadata: r[6],
 search_text: r[7]})-[:PART_OF]->(d)
WITH c, r UNWIND r[8] AS m MATCH (e:Entity {id: m[0]})
CREATE (e)-[:MENTIONED_IN {start: m[1], end: m[2], score: m[3], text: m[4], label: m[5], key: m[6], properties: m[7]}]->(c)"""
_DROP_UNMENTIONED = "MATCH (e:Entity) WHERE e.id IN $ids AND NOT (e)-[:MENTIONED_IN]->(:Chunk) DETACH DELETE e"
_NAME_ENTITIES = """UNWIND $rows AS r MATCH (e:Entity {id: r[0]})
SET e.label = r[1], e.key = r[2], e.search_text = r[3]"""
_TYPE_ENTITIES = """MATCH (e:Entity)-[m:MENTIONED_IN]->(:Chunk) WHERE e.id IN $ids
WITH e, m.label AS label, floor(sum(m.score) * 1000000 + 0.5) AS total ORDER BY total DESC, label
WITH e, collect(label)[0] AS label SET e.entity_type = label"""
# Not one SET += with nulls for what goes: FalkorDB 4.16 then leaves some keys as they were.
_DESCRIBE_ENTITIES = """UNWIND $rows AS r MATCH (e:Entity {id: r[0]})
SET e = {id: e.id, label: e.label, key: e.key, entity_type: e.entity_type, search_text: e.search_text,
 kg_embedding: e.kg_embedding, kg_embedding_hash: e.kg_embedding_hash} SET e += r[1]"""
_ENDS = "UNWIND $rows AS r MATCH (h:Entity {id: r[0]}), (t:Entity {id: r[1]}) "
_RELATION_ROW = """{id: r[2], label: r[3], score: r[4], chunk_ids: r[5], chunk_scores: r[6], chunk_properties: r[7],
 start_date: r[8], end_date: r[9]}"""


@dataclass(frozen=True)
class Replacement:
    """Ids of the documents that the store knew, and the statements that replace them."""

    known: tuple[str, ...]
    statements: Statements


@dataclass(frozen=True)
class _Old:
    """What the store holds of the documents to be replaced."""

    known: tuple[str, ...]
    relations: frozenset[Place]
    chunks: frozenset[str]
    entities: frozenset[str]


def replacement(read: Read, document_ids: Sequence[str], new: Sequence[DocumentGraph]) -> Replacement:
    """Statements after which the store says of these documents what ``new`` says, and nothing else."""
    old = _read_old(read, document_ids)
    _refuse_foreign_chunks(read, old, new)
    mentions: dict[str, list[ResolvedMention]] = defaultdict(list)
    for graph in new:
        for resolved in graph.mentions:
            mentions[resolved.entity_id].append(resolved)
    existing = _existing_entities(read, old.entities, mentions)

    statements = _forget(document_ids, old, {graph.document.id for graph in new})
    statements += _documents(new)
    statements += _new_entities({id_: some for id_, some in mentions.items() if id_ not in existing.ids})
    statements += _chunks(new)
    statements += _old_entities(read, document_ids, old, existing, mentions)
    statements += _relations(read, old, existing.ids, relation_states(r for graph in new for r in graph.relations))
    statements.append((_CONFIRM, {"rows": [[graph.document.id, graph.fingerprint] for graph in new]}))
    return Replacement(old.known, [(text, values) for text, values in statements if any(values.values())])


def _read_old(read: Read, document_ids: Sequence[str]) -> _Old:
    ids = {"ids": list(document_ids)}
    documents = read("MATCH (d:Document) WHERE d.id IN $ids RETURN d.id, d.relation_keys", ids)
    chunks = read("MATCH (c:Chunk) WHERE c.document_id IN $ids RETURN c.id", ids) if documents else []
    entities = []
    if chunks:
        entities = read("MATCH (e:Entity)-[:MENTIONED_IN]->(c:Chunk) WHERE c.document_id IN $ids RETURN DISTINCT e.id", ids)
    return _Old(
        tuple(id_ for id_, _ in documents),
        frozenset(tuple(place) for _, keys in documents for place in json.loads(keys or "[]")),
        frozenset(id_ for (id_,) in chunks),
        frozenset(id_ for (id_,) in entities),
    )


@dataclass(frozen=True)
class _Existing:
    """Touched entities that are in the graph: all, those to be named and typed anew, and those that have properties."""

    ids: frozenset[str]
    changed: frozenset[str]
    described: frozenset[str]


def _existing_entities(read: Read, old: frozenset[str], mentions: Mapping[str, Sequence[ResolvedMention]]) -> _Existing:
    """Ids come back joined: thousands of separate values cost the client more than all the rest."""
    text = """UNWIND $rows AS r MATCH (e:Entity {id: r[0]}) WITH e.id AS id, e.property_keys IS NOT NULL AS described,
coalesce(e.label = r[1] AND e.entity_type = r[2] AND e.key = r[3], false) AS same
RETURN described, same, string.join(collect(id), '\n')"""
    rows = [[id_, *_confirming(mentions[id_])] for id_ in mentions if id_ not in old]
    rows += [[id_, None, None, None] for id_ in old]
    groups = [(described, same, joined.split("\n")) for described, same, joined in read(text, {"rows": rows})] if rows else []
    return _Existing(
        frozenset(id_ for _, _, ids in groups for id_ in ids),
        frozenset(id_ for _, same, ids in groups if not same for id_ in ids),
        frozenset(id_ for described, _, ids in groups if described for id_ in ids),
    )


def _confirming(mentions: Sequence[ResolvedMention]) -> tuple[str | None, str | None, str | None]:
    """The name, type and key that all these mentions give.

    More mentions of what an entity is already called by can't change it: such entities need no look at all their mentions.
    """
    first = mentions[0]
    surface, label, key = first.mention.text, first.mention.label, first.key
    for m in mentions:
        if m.mention.text != surface or m.mention.label != label or m.key != key or m.mention.score < 0:
            return (None, None, None)
    return (surface, label, key)


def _refuse_foreign_chunks(read: Read, old: _Old, new: Sequence[DocumentGraph]) -> None:
    ids = [chunk.id for graph in new for chunk in graph.chunks if chunk.id not in old.chunks]
    if ids:
        for id_, owner in read("MATCH (c:Chunk) WHERE c.id IN $ids RETURN c.id, c.document_id LIMIT 1", {"ids": ids}):
            raise StoreError(f"Chunk {id_!r} already belongs to document {owner!r}. Chunk ids must be unique over all documents.")


def _forget(document_ids: Sequence[str], old: _Old, kept: set[str]) -> Statements:
    gone = [id_ for id_ in document_ids if id_ not in kept]
    return [
        ("MATCH (c:Chunk) WHERE c.id IN $ids DETACH DELETE c", {"ids": sorted(old.chunks)}),
        ("MATCH (d:Document) WHERE d.id IN $ids DETACH DELETE d", {"ids": gone if old.known else []}),
    ]


def _documents(new: Sequence[DocumentGraph]) -> Statements:
    rows = []
    for graph in new:
        d = graph.document
        places = sorted({(edge_type(r.label), r.head_id, r.tail_id, r.relation_id) for r in graph.relations})
        rows.append([d.id, d.source, d.title, d.text_hash, to_json(d.metadata), to_json(places)])
    text = """UNWIND $rows AS r MERGE (d:Document {id: r[0]}) SET d.source = r[1], d.title = r[2], d.text_hash = r[3],
 d.metadata = r[4], d.relation_keys = r[5], d.fingerprint = NULL"""
    return [(text, {"rows": rows})]


def _chunks(new: Sequence[DocumentGraph]) -> Statements:
    """Chunks with their mentions, and the order of the chunks."""
    rows, pairs = [], []
    for graph in new:
        said: dict[str, list[list[Any]]] = defaultdict(list)
        for resolved in graph.mentions:
            m = resolved.mention
            properties = to_json(m.properties) if m.properties else None
            said[m.chunk_id].append([resolved.entity_id, m.start, m.end, m.score, m.text, m.label, resolved.key, properties])
        ordered = sorted(graph.chunks, key=lambda chunk: chunk.index)
        for c in ordered:
            metadata = to_json(c.metadata) if c.metadata else None
            rows.append([c.id, c.document_id, c.index, c.text, c.start, c.end, metadata, search_text(c.text), said[c.id]])
        pairs += [[a.id, b.id] for a, b in pairwise(ordered)]
    follow = "UNWIND $rows AS r MATCH (a:Chunk {id: r[0]}), (b:Chunk {id: r[1]}) CREATE (a)-[:NEXT]->(b)"
    return [(_CREATE_CHUNKS, {"rows": rows}), (follow, {"rows": pairs})]


def _new_entities(mentions: Mapping[str, Sequence[ResolvedMention]]) -> Statements:
    rows, described = [], []
    for id_, some in mentions.items():
        entity = entity_of(id_, some)
        rows.append([id_, entity.label, entity.key, entity.type, search_text(entity.label)])
        if entity.properties:
            described.append([id_, _with_keys(encode_properties(entity.properties))])
    create = "UNWIND $rows AS r CREATE (:Entity {id: r[0], label: r[1], key: r[2], entity_type: r[3], search_text: r[4]})"
    return [(create, {"rows": rows}), (_DESCRIBE_ENTITIES, {"rows": described})]


def _with_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Encoded properties and the note of which keys they are; readers look no further where there is no note."""
    return {**stored, "property_keys": sorted(stored)} if stored else {}


def _old_entities(
    read: Read,
    document_ids: Sequence[str],
    old: _Old,
    existing: _Existing,
    mentions: Mapping[str, Sequence[ResolvedMention]],
) -> Statements:
    """Drop entities that nothing mentions any more; name, type and describe again those that lost or gained mentions."""
    touched = sorted(existing.changed)
    described = sorted(
        id_ for id_ in existing.ids if id_ in existing.described or any(m.mention.properties for m in mentions.get(id_, ()))
    )
    return [
        (_DESCRIBE_ENTITIES, {"rows": _descriptions(read, document_ids, described, mentions)}),
        (_DROP_UNMENTIONED, {"ids": sorted(old.entities - mentions.keys())}),
        (_NAME_ENTITIES, {"rows": _names(read, document_ids, touched, mentions)}),
        (_TYPE_ENTITIES, {"ids": touched}),
    ]


def _names(
    read: Read,
    document_ids: Sequence[str],
    entity_ids: Sequence[str],
    mentions: Mapping[str, Sequence[ResolvedMention]],
) -> list[list[str]]:
    """Id, name, key and search text of each of these entities that something mentions."""
    if not entity_ids:
        return []
    text = """MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids AND NOT c.document_id IN $documents
RETURN e.id, m.text, count(*), min(m.key)"""
    surfaces: dict[str, Counter[str]] = defaultdict(Counter)
    keys: dict[str, set[str]] = defaultdict(set)
    for id_, surface, times, key in read(text, {"ids": list(entity_ids), "documents": list(document_ids)}):
        surfaces[id_][surface] += times
        keys[id_].add(key)
    for id_ in entity_ids:
        for resolved in mentions.get(id_, ()):
            surfaces[id_][clean_text(resolved.mention.text)] += 1
            keys[id_].add(clean_text(resolved.key))
    named = [(id_, display_name(surfaces[id_]), min(keys[id_])) for id_ in entity_ids if surfaces[id_]]
    return [[id_, name, key, search_text(name)] for id_, name, key in named]


def _descriptions(
    read: Read,
    document_ids: Sequence[str],
    entity_ids: Sequence[str],
    mentions: Mapping[str, Sequence[ResolvedMention]],
) -> list[list[Any]]:
    if not entity_ids:
        return []
    text = """MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids AND m.properties IS NOT NULL
RETURN e.id, c.document_id, c.id, m.start, m.end, m.label, m.text, m.properties"""
    said: dict[str, list[tuple[tuple[Any, ...], Mapping[str, Any]]]] = defaultdict(list)
    for id_, document_id, chunk_id, start, end, label, surface, properties in read(text, {"ids": list(entity_ids)}):
        if document_id not in document_ids:
            said[id_].append((mention_order(document_id, chunk_id, start, end, label, surface), json.loads(properties)))
    rows = []
    for id_ in entity_ids:
        for m in (resolved.mention for resolved in mentions.get(id_, ()) if resolved.mention.properties):
            said[id_].append((mention_order(m.document_id, m.chunk_id, m.start, m.end, m.label, m.text), m.properties))
        ordered = sorted(said[id_], key=lambda pair: pair[0])
        stored = encode_properties(merged(properties for _, properties in ordered))
        rows.append([id_, _with_keys(stored)])
    return rows


def _relations(read: Read, old: _Old, existing: frozenset[str], said: Mapping[str, RelationState]) -> Statements:
    places = old.relations | {s.place for s in said.values() if s.head_id in existing and s.tail_id in existing}
    stored = _stored_relations(read, places)
    created: dict[str, list[RelationState]] = defaultdict(list)
    changed: dict[str, list[RelationState]] = defaultdict(list)
    removed: dict[str, list[Place]] = defaultdict(list)
    for id_ in sorted(stored.keys() | said.keys()):
        state = combined(stored.get(id_), set(old.chunks), said.get(id_))
        if state is None:
            removed[stored[id_].place[0]].append(stored[id_].place)
        else:
            (changed if id_ in stored else created)[state.place[0]].append(state)
    statements: Statements = []
    for type_, gone in sorted(removed.items()):
        statements.append((_match(type_) + "DELETE x", {"rows": [[head, tail, id_] for _, head, tail, id_ in gone]}))
    for type_, states in sorted(created.items()):
        statements += _write_relations(_ENDS + f"CREATE (h)-[x:`{identifier(type_)}` {_RELATION_ROW}]->(t)", states)
    for type_, states in sorted(changed.items()):
        statements += _write_relations(_match(type_) + f"SET x = {_RELATION_ROW}", states)
    return statements


def _match(type_: str) -> str:
    return _ENDS + f"MATCH (h)-[x:`{identifier(type_)}`]->(t) WHERE x.id = r[2] "


def _stored_relations(read: Read, places: Iterable[Place]) -> dict[str, RelationState]:
    by_type: dict[str, list[list[str]]] = defaultdict(list)
    for type_, head, tail, id_ in sorted(places):
        by_type[type_].append([head, tail, id_])
    stored = {}
    columns = "RETURN x.id, h.id, x.label, t.id, x.start_date, x.end_date, x.chunk_ids, x.chunk_scores, x.chunk_properties"
    for type_, rows in by_type.items():
        for id_, head, label, tail, start, end, chunks, scores, properties in read(_match(type_) + columns, {"rows": rows}):
            said = [json.loads(text) for text in properties] if properties else [{}] * len(chunks)
            evidence = {chunk: (score, some) for chunk, score, some in zip(chunks, scores, said, strict=True)}
            stored[id_] = RelationState(id_, head, label, tail, start, end, evidence)
    return stored


def _write_relations(text: str, states: Sequence[RelationState]) -> Statements:
    plain, described = [], []
    for state in states:
        record = state.record()
        evidence = [state.evidence[chunk_id] for chunk_id in record.chunk_ids]
        properties = [to_json(some) for _, some in evidence] if any(some for _, some in evidence) else None
        scores = [score for score, _ in evidence]
        row = [record.head_id, record.tail_id, record.id, record.label, record.score, record.chunk_ids, scores, properties]
        row += [record.start_date, record.end_date]
        if record.properties:
            described.append([*row, _with_keys(encode_properties(record.properties))])
        else:
            plain.append(row)
    return [(text, {"rows": plain}), (text + " SET x += r[10]", {"rows": described})]
