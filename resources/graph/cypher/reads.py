"""What retrieval asks of a graph in Cypher: full text, neighbourhoods, relations by pattern, paths."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from resources.graph.changes import is_id
from resources.graph.cypher.rows import CHUNK, ENTITY, RELATION, chunk_record, entity_record, relation_record
from resources.graph.cypher.writes import Read
from resources.graph.encoding import edge_type, identifier
from resources.graph.fulltext import name_phrases, question_phrases, rank_names, rank_texts, rarity
from resources.graph.paths import shortest_paths
from resources.records import Chunk, Entity, Neighbourhood, Path, Relation, Scored

_MOST_HITS = 5_000
"""How many hits of a question's phrases are added up; the most frequent phrases beyond it only rank what rarer ones find."""
_FREQUENCIES = """UNWIND $phrases AS phrase CALL db.idx.fulltext.queryNodes('{label}', '"' + phrase + '"') YIELD node
RETURN phrase, count(node)"""
_CANDIDATES = """UNWIND $weighted AS w CALL db.idx.fulltext.queryNodes('{label}', w[0]) YIELD node, score
WITH node, sum(w[1]) AS weight, sum(score) AS score
WITH node, weight, score, node.search_text AS text ORDER BY weight DESC, score DESC, size(text), node.id LIMIT $limit
RETURN node.id, text"""


def search_entities(read: Read, text: str, k: int) -> list[Scored[Entity]]:
    phrases = name_phrases(text)
    labels, frequencies, total = _candidates(read, "Entity", phrases, k)
    ranked = rank_names(text, labels, frequencies, total, k)
    rows = read(f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {ENTITY}", {"ids": [id_ for id_, _ in ranked]}) if ranked else []
    found = {row[0]: entity_record(row) for row in rows}
    return [Scored(found[id_], score) for id_, score in ranked if id_ in found]


def search_chunks(read: Read, question: str, k: int) -> list[Scored[Chunk]]:
    phrases = question_phrases(question)
    texts, frequencies, total = _candidates(read, "Chunk", phrases, k)
    ranked = rank_texts(phrases, texts, frequencies, total, k)
    rows = read(f"MATCH (c:Chunk) WHERE c.id IN $ids RETURN {CHUNK}", {"ids": [id_ for id_, _ in ranked]}) if ranked else []
    found = {row[0]: chunk_record(row) for row in rows}
    return [Scored(found[id_], score) for id_, score in ranked if id_ in found]


def _candidates(read: Read, label: str, phrases: Sequence[str], k: int) -> tuple[dict[str, str], dict[str, int], int]:
    """Search texts by id that hold the rarest of the phrases, how many hold each phrase, and how many there are.

    Each phrase is asked for by itself: in one query RediSearch would divide the score by the distance of the hits.
    """
    if not phrases or k < 1:
        return {}, {}, 0
    name = identifier(label)
    frequencies: dict[str, int] = {row[0]: row[1] for row in read(_FREQUENCIES.format(label=name), {"phrases": list(phrases)})}
    total = read(f"MATCH (n:{name}) RETURN count(n)", {})[0][0]
    weighted: list[list[Any]] = []
    hits = 0
    for phrase in sorted(frequencies, key=lambda phrase: (frequencies[phrase], phrase)):
        if hits >= k and hits + frequencies[phrase] > _MOST_HITS:
            all_of_them = " ".join(f'"{phrase}"' for phrase in frequencies)
            weighted.append([all_of_them, sum(rarity(times, total) for times in frequencies.values())])
            break
        hits += frequencies[phrase]
        weighted.append([f'"{phrase}"', rarity(frequencies[phrase], total)])
    if not weighted:
        return {}, {}, total
    rows = read(_CANDIDATES.format(label=name), {"weighted": weighted, "limit": max(100, 4 * k)})
    return {row[0]: row[1] for row in rows}, frequencies, total


def neighbourhood(
    read: Read, entity_ids: Sequence[str], hops: int, limit: int, active_after: str | None, active_before: str | None
) -> Neighbourhood:
    seeds = sorted(filter(is_id, set(entity_ids)))
    if not seeds:
        return Neighbourhood()
    window, dates = _window(active_after, active_before)
    relation = "[r]" if window else "[]"
    distances = dict.fromkeys(seeds, 0)
    frontier = seeds
    text = f"""MATCH (e:Entity)-{relation}-(n:Entity) WHERE e.id IN $ids{window}
RETURN DISTINCT n.id AS id ORDER BY id LIMIT $limit"""
    for hop in range(1, hops + 1):
        if not frontier or len(distances) >= limit:
            break
        near = read(text, {"ids": frontier, "limit": limit + len(distances), **dates})
        frontier = [id_ for (id_,) in near if id_ not in distances][: limit - len(distances)]
        distances.update(dict.fromkeys(frontier, hop))
    rows = read(f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {ENTITY}", {"ids": list(distances)})
    found = {row[0]: entity_record(row) for row in rows}
    near_first = tuple((found[id_], hop) for id_, hop in distances.items() if id_ in found)
    if not found:
        return Neighbourhood()
    text = f"""MATCH (h:Entity)-[r]->(t:Entity) WHERE h.id IN $ids AND t.id IN $ids{window}
RETURN {RELATION} ORDER BY r.id"""
    return Neighbourhood(near_first, tuple(map(relation_record, read(text, {"ids": list(found), **dates}))))


def find_relations(
    read: Read,
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
        wanted = [label for label in dict.fromkeys(labels) if isinstance(label, str) and label.strip()]
        relation = "r:" + "|".join(sorted({f"`{identifier(edge_type(label))}`" for label in wanted}))
        conditions.append("r.label IN $labels")
        values["labels"] = wanted
    if limit < 1 or any(value == [] for value in values.values()):
        return []
    text = f"""MATCH (h:Entity)-[{relation}]->(t:Entity) WHERE {" AND ".join(conditions)}{window}
WITH h, r, t ORDER BY r.score DESC, r.id LIMIT $limit RETURN {RELATION} ORDER BY r.score DESC, r.id"""
    return list(map(relation_record, read(text, {**values, "min_score": min_score, "limit": limit})))


def paths(read: Read, pairs: Sequence[tuple[str, str]], max_length: int, limit: int) -> list[list[Path]]:
    """``shortest_paths`` of this module's database."""
    usable = [(a, b) if is_id(a) and is_id(b) else ("", "") for a, b in pairs]
    return shortest_paths(usable, max_length, limit, partial(_near, read), partial(_between, read), partial(_entities, read))


def _near(read: Read, ids: Sequence[str]) -> dict[str, list[str]]:
    """Ids come back joined: thousands of separate values cost the client more than all the rest."""
    text = """MATCH (e:Entity)-[]-(n:Entity) WHERE e.id IN $ids WITH e.id AS id, n.id AS near
RETURN id, string.join(collect(near), '\n')"""
    return {id_: joined.split("\n") for id_, joined in read(text, {"ids": list(ids)})}


def _between(read: Read, pairs: Sequence[tuple[str, str]]) -> list[Relation]:
    if not pairs:
        return []
    text = f"""UNWIND $pairs AS p MATCH (h:Entity {{id: p[0]}})-[r]->(t:Entity {{id: p[1]}}) RETURN {RELATION}"""
    both = [[a, b] for a, b in pairs] + [[b, a] for a, b in pairs]
    return list(map(relation_record, read(text, {"pairs": both})))


def _entities(read: Read, ids: Sequence[str]) -> list[Entity]:
    if not ids:
        return []
    return list(map(entity_record, read(f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {ENTITY}", {"ids": list(ids)})))


def _window(active_after: str | None, active_before: str | None) -> tuple[str, dict[str, Any]]:
    """Further conditions on ``r``, and their values."""
    text, values = "", {}
    if active_after is not None:
        text += " AND (r.end_date IS NULL OR r.end_date = '' OR r.end_date >= $active_after)"
        values["active_after"] = active_after
    if active_before is not None:
        text += " AND (r.start_date IS NULL OR r.start_date = '' OR r.start_date <= $active_before)"
        values["active_before"] = active_before
    return text, values
