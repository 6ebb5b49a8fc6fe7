"""Walking a graph in Cypher: neighbourhoods, relations by pattern, paths, and what lies around chunks and entities."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from resources.graph.checks import is_id
from resources.graph.cypher.dialect import Reader
from resources.graph.cypher.records import RELATION, chunks_by_id, entities_by_id, relation_record
from resources.graph.encoding import edge_type, identifier
from resources.graph.paths import shortest_paths
from resources.graph.walk import breadth_first
from resources.records import Chunk, Entity, Neighbourhood, Path, Relation, Scored
from resources.text.characters import is_blank


def neighbourhood(
    read: Reader, entity_ids: Sequence[str], hops: int, limit: int, active_after: str | None, active_before: str | None
) -> Neighbourhood:
    seeds = list(filter(is_id, entity_ids))
    if not seeds:
        return Neighbourhood()
    window, dates = _window(active_after, active_before)
    relation = "[r]" if window else "[]"  # an edge without a name costs FalkorDB less
    near = f"""MATCH (e:Entity)-{relation}-(n:Entity) WHERE e.id IN $ids{window}
RETURN DISTINCT n.id AS id ORDER BY id LIMIT $limit"""

    def next_to(ids: Sequence[str], at_most: int) -> list[str]:
        return [id_ for (id_,) in read(near, {"ids": list(ids), "limit": at_most, **dates})]

    distances = breadth_first(seeds, hops, limit, next_to)
    entities = entities_by_id(read, list(distances))
    if not entities:
        return Neighbourhood()
    among = f"""MATCH (h:Entity)-[r]->(t:Entity) WHERE h.id IN $ids AND t.id IN $ids{window}
RETURN {RELATION} ORDER BY r.id"""
    relations = map(relation_record, read(among, {"ids": list(entities), **dates}))
    return Neighbourhood(tuple((entities[id_], hop) for id_, hop in distances.items() if id_ in entities), tuple(relations))


def find_relations(
    read: Reader,
    head_ids: Sequence[str] | None,
    tail_ids: Sequence[str] | None,
    labels: Sequence[str] | None,
    min_score: float,
    active_after: str | None,
    active_before: str | None,
    limit: int,
) -> list[Relation]:
    window, values = _window(active_after, active_before)
    conditions = ["r.score >= $min_score"]
    for name, ids in (("h", head_ids), ("t", tail_ids)):
        if ids is not None:
            conditions.append(f"{name}.id IN ${name}_ids")
            values[f"{name}_ids"] = list(dict.fromkeys(filter(is_id, ids)))
    relation = "r"
    if labels is not None:
        usable = [label for label in dict.fromkeys(labels) if isinstance(label, str) and not is_blank(label)]
        relation = "r:" + "|".join(sorted({f"`{identifier(edge_type(label))}`" for label in usable}))
        conditions.append("r.label IN $labels")
        values["labels"] = usable
    if limit < 1 or any(value == [] for value in values.values()):
        return []
    statement = f"""MATCH (h:Entity)-[{relation}]->(t:Entity) WHERE {" AND ".join(conditions)}{window}
WITH h, r, t ORDER BY r.score DESC, r.id LIMIT $limit RETURN {RELATION} ORDER BY r.score DESC, r.id"""
    return list(map(relation_record, read(statement, {**values, "min_score": min_score, "limit": limit})))


def paths(read: Reader, pairs: Sequence[tuple[str, str]], max_length: int, limit: int) -> list[list[Path]]:
    usable = [(a, b) if is_id(a) and is_id(b) else ("", "") for a, b in pairs]
    return shortest_paths(
        usable, max_length, limit, partial(_neighbours, read), partial(_relations_between, read), partial(entities_by_id, read)
    )


def _neighbours(read: Reader, ids: Sequence[str]) -> dict[str, list[str]]:
    statement = f"""MATCH (e:Entity)-[]-(n:Entity) WHERE e.id IN $ids WITH e.id AS id, n.id AS near
RETURN id, {read.dialect.joined("near")}"""
    return {id_: read.dialect.split(joined) for id_, joined in read(statement, {"ids": list(ids)})}


def _relations_between(read: Reader, pairs: Sequence[tuple[str, str]]) -> list[Relation]:
    if not pairs:
        return []
    statement = f"UNWIND $pairs AS p MATCH (h:Entity {{id: p[0]}})-[r]->(t:Entity {{id: p[1]}}) RETURN {RELATION}"
    both_directions = [[a, b] for a, b in pairs] + [[b, a] for a, b in pairs]
    return list(map(relation_record, read(statement, {"pairs": both_directions})))


def chunks_of(read: Reader, entity_ids: Sequence[str], limit: int) -> dict[str, list[Scored[Chunk]]]:
    ids = list(dict.fromkeys(entity_ids))
    if not ids:
        return {}
    statement = """MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids
WITH e.id AS id, c.id AS chunk, max(m.score) AS score ORDER BY score DESC, chunk
WITH id, collect([chunk, score])[0..$limit] AS best RETURN id, best"""
    rows = read(statement, {"ids": ids, "limit": limit})
    best: dict[str, list[list[Any]]] = {str(id_): scored for id_, scored in rows}
    chunks = chunks_by_id(read, list(dict.fromkeys(chunk_id for pairs in best.values() for chunk_id, _ in pairs)))
    return {id_: [Scored(chunks[c], score) for c, score in best[id_] if c in chunks] for id_ in ids if id_ in best}


def entities_of(read: Reader, chunk_ids: Sequence[str]) -> dict[str, list[Entity]]:
    ids = list(dict.fromkeys(chunk_ids))
    if not ids:
        return {}
    statement = """MATCH (e:Entity)-[:MENTIONED_IN]->(c:Chunk) WHERE c.id IN $ids
RETURN DISTINCT c.id AS chunk, e.id AS id ORDER BY id"""
    mentioned: dict[str, list[str]] = defaultdict(list)
    for chunk_id, entity_id in read(statement, {"ids": ids}):
        mentioned[chunk_id].append(entity_id)
    entities = entities_by_id(read, sorted({id_ for some in mentioned.values() for id_ in some}))
    return {id_: [entities[e] for e in mentioned[id_] if e in entities] for id_ in ids if id_ in mentioned}


def _window(active_after: str | None, active_before: str | None) -> tuple[str, dict[str, Any]]:
    """The window of dates as further conditions on ``r``, and their values."""
    conditions, values = "", {}
    if active_after is not None:
        conditions += " AND (r.end_date IS NULL OR r.end_date = '' OR r.end_date >= $active_after)"
        values["active_after"] = active_after
    if active_before is not None:
        conditions += " AND (r.start_date IS NULL OR r.start_date = '' OR r.start_date <= $active_before)"
        values["active_before"] = active_before
    return conditions, values
