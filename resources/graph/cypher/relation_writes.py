"""Relations in Cypher: one edge for a relation, with the score and properties that each chunk gives it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from resources.graph.changes import Place, RelationState, combined
from resources.graph.cypher.dialect import Reader, Statements
from resources.graph.encoding import encode_properties, identifier, noted_keys, to_json

_ENDS = "UNWIND $rows AS r MATCH (h:Entity {id: r[0]}), (t:Entity {id: r[1]}) "
_ROW = """{id: r[2], label: r[3], score: r[4], chunk_ids: r[5], chunk_scores: r[6], chunk_properties: r[7],
 start_date: r[8], end_date: r[9]}"""
_COLUMNS = "RETURN x.id, h.id, x.label, t.id, x.start_date, x.end_date, x.chunk_ids, x.chunk_scores, x.chunk_properties"


def relation_changes(
    read: Reader,
    places: Iterable[Place],
    gone_chunks: frozenset[str],
    new: Mapping[str, RelationState],
) -> Statements:
    """Statements that take the evidence of some chunks away and add that of ``new``.

    Args:
        read: reads what is stored.
        places: where every relation that may be stored, and may change, is found.
        gone_chunks: ids of chunks whose evidence no longer counts.
        new: relations with their new evidence, by id.
    """
    stored = _stored_relations(read, places)
    created: dict[str, list[RelationState]] = defaultdict(list)
    changed: dict[str, list[RelationState]] = defaultdict(list)
    removed: dict[str, list[Place]] = defaultdict(list)
    for id_ in sorted(stored.keys() | new.keys()):
        state = combined(stored.get(id_), gone_chunks, new.get(id_))
        if state is None:
            removed[stored[id_].place.edge_type].append(stored[id_].place)
        elif id_ in stored:
            changed[state.place.edge_type].append(state)
        else:
            created[state.place.edge_type].append(state)
    statements: Statements = []
    for type_, gone in sorted(removed.items()):
        rows = [[place.head_id, place.tail_id, place.id] for place in gone]
        statements.append((_edges(type_) + "DELETE x", {"rows": rows}))
    for type_, states in sorted(created.items()):
        statements += _written(_ENDS + f"CREATE (h)-[x:`{identifier(type_)}` {_ROW}]->(t)", states)
    for type_, states in sorted(changed.items()):
        statements += _written(_edges(type_) + f"SET x = {_ROW}", states)
    return statements


def _edges(type_: str) -> str:
    """A clause that finds the edges ``x`` of one type by their ends and ids."""
    return _ENDS + f"MATCH (h)-[x:`{identifier(type_)}`]->(t) WHERE x.id = r[2] "


def _stored_relations(read: Reader, places: Iterable[Place]) -> dict[str, RelationState]:
    by_type: dict[str, list[list[str]]] = defaultdict(list)
    for place in sorted(places):
        by_type[place.edge_type].append([place.head_id, place.tail_id, place.id])
    stored = {}
    for type_, rows in by_type.items():
        for row in read(_edges(type_) + _COLUMNS, {"rows": rows}):
            stored[row[0]] = _state(*row)
    return stored


def _state(
    id_: str,
    head_id: str,
    label: str,
    tail_id: str,
    start_date: str | None,
    end_date: str | None,
    chunk_ids: Sequence[str],
    scores: Sequence[float],
    properties: Sequence[str] | None,
) -> RelationState:
    decoded: list[dict[str, Any]] = [json.loads(text) for text in properties] if properties else [{} for _ in chunk_ids]
    evidence = {chunk: (score, some) for chunk, score, some in zip(chunk_ids, scores, decoded, strict=True)}
    return RelationState(id_, head_id, label, tail_id, start_date, end_date, evidence)


def _written(statement: str, states: Sequence[RelationState]) -> Statements:
    """The statement for relations without properties, and extended for those with some."""
    plain, described = [], []
    for state in states:
        record = state.record()
        evidence = [state.evidence[chunk_id] for chunk_id in record.chunk_ids]
        properties = [to_json(some) for _, some in evidence] if any(some for _, some in evidence) else None
        scores = [score for score, _ in evidence]
        row = [record.head_id, record.tail_id, record.id, record.label, record.score, record.chunk_ids, scores, properties]
        row += [record.start_date, record.end_date]
        if record.properties:
            described.append([*row, noted_keys(encode_properties(record.properties))])
        else:
            plain.append(row)
    return [(statement, {"rows": plain}), (statement + " SET x += r[10]", {"rows": described})]
