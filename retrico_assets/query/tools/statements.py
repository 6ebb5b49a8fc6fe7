"""Pieces of Cypher that the graph tools are put together from. Values are parameters; names pass ``identifier``.

Rows name what they hold: ``entity_id``; ``relation_id`` with ``head_id`` and ``tail_id``; ``chunk_id``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from resources.errors import SettingsError
from resources.graph.encoding import identifier
from resources.texts.structured import as_number

Statement = tuple[str, dict[str, Any]]

ENTITY = (
    "e.id AS entity_id, e.label AS label, e.entity_type AS type,"
    " CASE WHEN e.property_keys IS NULL THEN NULL ELSE properties(e) END AS properties"
)
RELATION = (
    "r.id AS relation_id, h.id AS head_id, h.label AS head, r.label AS relation, t.id AS tail_id, t.label AS tail,"
    " r.score AS score, r.start_date AS start_date, r.end_date AS end_date, r.chunk_ids[0..5] AS chunk_ids,"
    " CASE WHEN r.property_keys IS NULL THEN NULL ELSE properties(r) END AS properties"
)
CHUNK = "c.id AS chunk_id, c.document_id AS document_id, c.index AS index, c.text AS text"

OPERATORS: Mapping[str, str] = {
    "eq": "{field} = {value}",
    "neq": "{field} <> {value}",
    "gt": "{field} > {value}",
    "gte": "{field} >= {value}",
    "lt": "{field} < {value}",
    "lte": "{field} <= {value}",
    "contains": "toLower(toStringOrNull({field})) CONTAINS toLower({value})",
    "starts_with": "toLower(toStringOrNull({field})) STARTS WITH toLower({value})",
}
"""How a filter compares: what is missing, or of another kind than the value, matches nothing."""

_SHOWN_AS = {"entity_id": "id", "relation_id": "id", "type": "entity_type", "relation": "label"}


def property_filters(variable: str, filters: Sequence[Mapping[str, Any]], parameters: dict[str, Any]) -> list[str]:
    """A condition for each {property, operator, value}; the values are added to ``parameters``.

    StoreError for a property that can't be a name; SettingsError for an unknown operator.
    """
    conditions = []
    for number, one in enumerate(filters):
        operator = one["operator"]
        if operator not in OPERATORS:
            raise SettingsError(f"unknown operator {operator!r}; known are: {', '.join(OPERATORS)}")
        field = f"{variable}.`{identifier(_SHOWN_AS.get(one['property'], one['property']))}`"
        ways = []
        for way, value in enumerate(_meant(operator, one["value"])):
            parameters[f"value{number}_{way}"] = value
            ways.append(OPERATORS[operator].format(field=field, value=f"$value{number}_{way}"))
        conditions.append(f"({(' AND ' if operator == 'neq' else ' OR ').join(ways)})")
    return conditions


def _meant(operator: str, value: Any) -> list[Any]:
    """The value, and the number that it may stand for: models write numbers as text. Only one of them has the property's kind."""
    if operator in ("contains", "starts_with"):
        return [str(value)]
    number = as_number(value) if isinstance(value, str) else None
    return [value] if number is None or not math.isfinite(number) else [value, number]


def relation_conditions(arguments: Mapping[str, Any], parameters: dict[str, Any]) -> list[str]:
    """Conditions on ``r`` for relation_type, min_score and the window of dates, as far as they are given."""
    conditions = []
    if "relation_type" in arguments:
        conditions.append("r.label = $relation")
        parameters["relation"] = arguments["relation_type"]
    if "min_score" in arguments:
        conditions.append("r.score >= $min_score")
        parameters["min_score"] = arguments["min_score"]
    if "start_date" in arguments:
        conditions.append("(r.end_date IS NULL OR r.end_date = '' OR r.end_date >= $start_date)")
        parameters["start_date"] = arguments["start_date"]
    if "end_date" in arguments:
        conditions.append("(r.start_date IS NULL OR r.start_date = '' OR r.start_date <= $end_date)")
        parameters["end_date"] = arguments["end_date"]
    return conditions


def where(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def levels(steps: int, conditions: Sequence[str], stop_at: str = "") -> str:
    """Breadth-first steps: from the ids ``level0`` in scope to ``level1`` … ``level<steps>``, over relations that fulfil the
    conditions, both ways. A level holds the ends of all walks of that length, each once; past one that holds the parameter
    ``stop_at`` the levels are empty.

    Each step is a subquery of its own: FalkorDB copies what is in scope for every row, and a level may hold thousands of ids.
    """
    made = []
    for step in range(1, steps + 1):
        last = f"level{step - 1}"
        ids = f"CASE WHEN ${stop_at} IN {last} THEN [] ELSE {last} END" if stop_at else last
        made.append(
            f"CALL {{ WITH {last} WITH {ids} AS ids UNWIND ids AS id WITH id MATCH (a:Entity)-[r]-(n:Entity)"
            f" {where(['a.id = id', *conditions])} RETURN collect(DISTINCT n.id) AS level{step} }}"
        )
    return "\n".join(made)


def with_steps(first: int, last: int) -> str:
    """[id, step] of every id in the levels from ``first`` to ``last``, as a list."""
    return " + ".join(f"[x IN level{step} | [x, {step}]]" for step in range(first, last + 1))


def shortest_path(max_depth: int, conditions: Sequence[str]) -> str:
    """The relations along one shortest way from ``$source`` to ``$target``, whatever their direction, in order of ``step``.

    Of several ways the one whose entity ids, read from the target, are the smallest; relations side by side are all given.
    """
    picks = [
        f"CALL {{ WITH levels, depth, stop{step - 1}"
        f" WITH CASE WHEN depth >= {step} THEN levels[depth - {step}] ELSE [] END AS near, stop{step - 1} AS id"
        f" MATCH (a:Entity)-[r]-(n:Entity) {where(['a.id = id', 'n.id IN near', *conditions])}"
        f" RETURN min(n.id) AS stop{step} }}"
        for step in range(1, max_depth + 1)
    ]
    ends = ["h.id IN [x, y]", "t.id IN [x, y]", "h.id <> t.id"]
    return "\n".join(
        [
            "MATCH (s:Entity), (e:Entity) WHERE s.id = $source AND e.id = $target WITH [s.id] AS level0",
            levels(max_depth, conditions, stop_at="target"),
            f"WITH [{', '.join(f'level{step}' for step in range(max_depth + 1))}] AS levels",
            f"WITH levels, [i IN range(0, {max_depth}) WHERE $target IN levels[i]][0] AS depth WHERE depth IS NOT NULL",
            "WITH levels, depth, $target AS stop0",
            *picks,
            f"WITH depth, [{', '.join(f'stop{step}' for step in range(max_depth, -1, -1))}] AS stops",
            f"UNWIND range({max_depth} - depth, {max_depth - 1}) AS place",
            f"WITH place - {max_depth} + depth + 1 AS step, stops[place] AS x, stops[place + 1] AS y",
            f"MATCH (h:Entity)-[r]->(t:Entity) {where([*ends, *conditions])}",
            f"RETURN step, {RELATION} ORDER BY step, score DESC, relation_id",
        ]
    )
