"""Entities in Cypher: made, named, typed, described and dropped as mentions come and go."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.graph.changes import display_name, entity_of, mention_order, merged
from resources.graph.cypher.dialect import Reader, Statements
from resources.graph.encoding import clean_text, encode_properties, noted_keys
from resources.graph.fulltext import search_text
from resources.records import ResolvedMention

Mentions = Mapping[str, Sequence[ResolvedMention]]
"""New mentions by the id of their entity."""

_CREATE = "UNWIND $rows AS r CREATE (:Entity {id: r[0], label: r[1], key: r[2], entity_type: r[3], search_text: r[4]})"
_DROP_UNMENTIONED = "MATCH (e:Entity) WHERE e.id IN $ids AND NOT (e)-[:MENTIONED_IN]->(:Chunk) DETACH DELETE e"
_NAME = """UNWIND $rows AS r MATCH (e:Entity {id: r[0]})
SET e.label = r[1], e.key = r[2], e.search_text = r[3]"""
_TYPE = """MATCH (e:Entity)-[m:MENTIONED_IN]->(:Chunk) WHERE e.id IN $ids
WITH e, m.label AS label, floor(sum(m.score) * 1000000 + 0.5) AS total ORDER BY total DESC, label
WITH e, collect(label)[0] AS label SET e.entity_type = label"""
# Not one SET += with nulls for what goes: FalkorDB 4.16 then leaves some keys as they were.
_DESCRIBE = """UNWIND $rows AS r MATCH (e:Entity {id: r[0]})
SET e = {id: e.id, label: e.label, key: e.key, entity_type: e.entity_type, search_text: e.search_text,
 kg_embedding: e.kg_embedding, kg_embedding_hash: e.kg_embedding_hash} SET e += r[1]"""


@dataclass(frozen=True)
class Existing:
    """Ids of touched entities that are in the graph: all, those to be named and typed again, and those with properties."""

    ids: frozenset[str]
    changed: frozenset[str]
    described: frozenset[str]


def existing_entities(read: Reader, losing: frozenset[str], mentions: Mentions) -> Existing:
    """What the graph holds of the entities that lose mentions (``losing``) or gain some (``mentions``)."""
    rows = [[id_, *_confirming(mentions[id_])] for id_ in mentions if id_ not in losing]
    rows += [[id_, None, None, None] for id_ in losing]
    if not rows:
        return Existing(frozenset(), frozenset(), frozenset())
    statement = f"""UNWIND $rows AS r MATCH (e:Entity {{id: r[0]}}) WITH e.id AS id, e.property_keys IS NOT NULL AS described,
coalesce(e.label = r[1] AND e.entity_type = r[2] AND e.key = r[3], false) AS same
RETURN described, same, {read.dialect.joined("id")}"""
    groups = [(described, same, read.dialect.split(joined)) for described, same, joined in read(statement, {"rows": rows})]
    return Existing(
        frozenset(id_ for _, _, ids in groups for id_ in ids),
        frozenset(id_ for _, same, ids in groups if not same for id_ in ids),
        frozenset(id_ for described, _, ids in groups if described for id_ in ids),
    )


def _confirming(mentions: Sequence[ResolvedMention]) -> tuple[str | None, str | None, str | None]:
    """The name, type and key that all these mentions give; None where they differ.

    More mentions of what an entity is already called by can't change it: such entities are not read again.
    """
    first = mentions[0]
    surface, label, key = first.mention.text, first.mention.label, first.key
    for m in mentions:
        if m.mention.text != surface or m.mention.label != label or m.key != key or m.mention.score < 0:
            return (None, None, None)
    return (surface, label, key)


def new_entities(mentions: Mentions) -> Statements:
    """Statements that make the entities of these mentions."""
    rows, described = [], []
    for id_, some in mentions.items():
        entity = entity_of(id_, some)
        rows.append([id_, entity.label, entity.key, entity.type, search_text(entity.label)])
        if entity.properties:
            described.append([id_, noted_keys(encode_properties(entity.properties))])
    return [(_CREATE, {"rows": rows}), (_DESCRIBE, {"rows": described})]


def changed_entities(
    read: Reader, document_ids: Collection[str], losing: frozenset[str], existing: Existing, mentions: Mentions
) -> Statements:
    """Statements that drop entities without mentions, and name, type and describe again those that lost or gained some.

    Mentions by the documents ``document_ids`` are about to go away; ``mentions`` are about to come.
    """
    touched = sorted(existing.changed)
    gaining = {id_ for id_, some in mentions.items() if any(m.mention.properties for m in some)}
    described = sorted(existing.described | (gaining & existing.ids))
    return [
        (_DESCRIBE, {"rows": _descriptions(read, document_ids, described, mentions)}),
        (_DROP_UNMENTIONED, {"ids": sorted(losing - mentions.keys())}),
        (_NAME, {"rows": _names(read, document_ids, touched, mentions)}),
        (_TYPE, {"ids": touched}),
    ]


def _names(read: Reader, document_ids: Collection[str], entity_ids: Sequence[str], mentions: Mentions) -> list[list[str]]:
    """Id, name, key and search text of each of these entities that something mentions."""
    if not entity_ids:
        return []
    statement = """MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids AND NOT c.document_id IN $documents
RETURN e.id, m.text, count(*), min(m.key)"""
    surfaces: dict[str, Counter[str]] = defaultdict(Counter)
    keys: dict[str, set[str]] = defaultdict(set)
    for id_, surface, count, key in read(statement, {"ids": list(entity_ids), "documents": list(document_ids)}):
        surfaces[id_][surface] += count
        keys[id_].add(key)
    for id_ in entity_ids:
        for resolved in mentions.get(id_, ()):
            surfaces[id_][clean_text(resolved.mention.text)] += 1
            keys[id_].add(clean_text(resolved.key))
    named = [(id_, display_name(surfaces[id_]), min(keys[id_])) for id_ in entity_ids if surfaces[id_]]
    return [[id_, name, key, search_text(name)] for id_, name, key in named]


def _descriptions(read: Reader, document_ids: Collection[str], entity_ids: Sequence[str], mentions: Mentions) -> list[list[Any]]:
    """Id and encoded properties of each of these entities."""
    if not entity_ids:
        return []
    statement = """MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids AND m.properties IS NOT NULL
RETURN e.id, c.document_id, c.id, m.start, m.end, m.label, m.text, m.properties"""
    ordered: dict[str, list[tuple[tuple[Any, ...], Mapping[str, Any]]]] = defaultdict(list)
    for id_, document_id, chunk_id, start, end, label, surface, properties in read(statement, {"ids": list(entity_ids)}):
        if document_id not in document_ids:
            ordered[id_].append((mention_order(document_id, chunk_id, start, end, label, surface), json.loads(properties)))
    rows = []
    for id_ in entity_ids:
        for m in (resolved.mention for resolved in mentions.get(id_, ()) if resolved.mention.properties):
            ordered[id_].append((mention_order(m.document_id, m.chunk_id, m.start, m.end, m.label, m.text), m.properties))
        in_order = sorted(ordered[id_], key=lambda pair: pair[0])
        rows.append([id_, noted_keys(encode_properties(merged(properties for _, properties in in_order)))])
    return rows
