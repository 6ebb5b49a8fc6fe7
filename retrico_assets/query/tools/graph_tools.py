"""The eight tools that read the graph. Each makes one read-only statement of what the model asks for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from resources.errors import SettingsError
from resources.text.names import identity_key
from retrico_assets.query.tools.schema import Tool
from retrico_assets.query.tools.statements import (
    CHUNK,
    ENTITY,
    OPERATORS,
    RELATION,
    Statement,
    levels,
    property_filters,
    relation_conditions,
    shortest_path,
    where,
    with_steps,
)

MOST_ROWS = 1000
MOST_CHUNKS = 100
MOST_STEPS = 5
LONGEST_PATH = 10

_Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GraphTool(Tool):
    """``translate`` makes a statement and its parameters from checked arguments; it is run read-only."""

    translate: Callable[[_Arguments], tuple[str, Mapping[str, Any]]]

    def statement(self, arguments: _Arguments) -> Statement:
        """The statement for these arguments. SettingsError for wrong ones."""
        text, parameters = self.translate(self.checked(arguments))
        return text, dict(parameters)


def _search_entity(arguments: _Arguments) -> Statement:
    """Exact names first, then those that share words: at least half of the words asked for, never a part of a word."""
    key = identity_key(arguments["label"])
    if not key:
        raise SettingsError(f"label {arguments['label']!r} holds no letter or digit; give a name")
    parameters: dict[str, Any] = {"id": arguments["label"], "key": key, "words": sorted(set(key.split()))}
    only = _entity_conditions(arguments, parameters, "entity_type")
    text = f"""MATCH (e:Entity) {where(only)} WITH e, split(e.key, ' ') AS names
WITH e, size(names) AS all, size([word IN $words WHERE word IN names]) AS shared,
CASE WHEN e.id = $id OR e.key = $key THEN 1 ELSE 0 END AS exact WHERE exact = 1 OR 2 * shared >= size($words)
RETURN {ENTITY} ORDER BY exact DESC, toFloat(shared) / (all + size($words) - shared) DESC, e.id LIMIT $limit"""
    return text, {**parameters, "limit": arguments["limit"]}


def _list_entities(arguments: _Arguments) -> Statement:
    parameters: dict[str, Any] = {"limit": arguments["limit"]}
    conditions = _entity_conditions(arguments, parameters, "entity_type")
    conditions += property_filters("e", arguments.get("filters", ()), parameters)
    return f"MATCH (e:Entity) {where(conditions)} RETURN {ENTITY} ORDER BY e.label, e.id LIMIT $limit", parameters


def _get_entity_relations(arguments: _Arguments) -> Statement:
    parameters: dict[str, Any] = {"id": arguments["entity_id"], "limit": MOST_ROWS}
    conditions = ["a.id = $id", *relation_conditions(arguments, parameters)]
    conditions += _entity_conditions(arguments, parameters, "target_entity_type")
    conditions += property_filters("r", arguments.get("filters", ()), parameters)
    text = f"""MATCH (a:Entity)-[r]-(e:Entity) {where(conditions)} WITH DISTINCT startNode(r) AS h, r, endNode(r) AS t
RETURN {RELATION} ORDER BY score DESC, relation_id LIMIT $limit"""
    return text, parameters


def _get_neighbors(arguments: _Arguments) -> Statement:
    hops = arguments["max_hops"]
    parameters: dict[str, Any] = {"id": arguments["entity_id"], "limit": MOST_ROWS}
    walk = relation_conditions(arguments, parameters)
    only = _entity_conditions(arguments, parameters, "entity_type")
    only += property_filters("e", arguments.get("filters", ()), parameters)
    text = f"""WITH [$id] AS level0
{levels(hops, walk)}
WITH {with_steps(1, hops)} AS found UNWIND found AS one WITH one[0] AS id, min(one[1]) AS hop WHERE id <> $id
MATCH (e:Entity) {where(["e.id = id", *only])} RETURN hop, {ENTITY} ORDER BY hop, e.label, e.id LIMIT $limit"""
    return text, parameters


def _get_subgraph(arguments: _Arguments) -> Statement:
    hops = arguments["max_hops"]
    parameters: dict[str, Any] = {"ids": list(dict.fromkeys(arguments["entity_ids"])), "limit": MOST_ROWS}
    walk = relation_conditions(arguments, parameters)
    text = f"""WITH $ids AS level0
{levels(hops - 1, walk)}
WITH {with_steps(0, hops - 1)} AS found UNWIND found AS one WITH one[0] AS id, min(one[1]) AS hop
MATCH (a:Entity)-[r]-(:Entity) {where(["a.id = id", *walk])} WITH r, min(hop) + 1 AS hop
WITH hop, startNode(r) AS h, r, endNode(r) AS t RETURN hop, {RELATION} ORDER BY hop, score DESC, relation_id LIMIT $limit"""
    return text, parameters


def _get_chunks_for_entity(arguments: _Arguments) -> Statement:
    text = f"""MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id = $id WITH c, max(m.score) AS score
RETURN {CHUNK}, score ORDER BY score DESC, chunk_id LIMIT $limit"""
    return text, {"id": arguments["entity_id"], "limit": MOST_CHUNKS}


def _get_chunks_for_relation(arguments: _Arguments) -> Statement:
    parameters: dict[str, Any] = {"head": arguments["head"], "tail": arguments["tail"], "limit": MOST_CHUNKS}
    conditions = ["h.id = $head", "t.id = $tail", *relation_conditions(arguments, parameters)]
    text = f"""MATCH (h:Entity)-[r]->(t:Entity) {where(conditions)} UNWIND r.chunk_ids AS id
WITH id, max(r.score) AS score MATCH (c:Chunk) WHERE c.id = id
RETURN {CHUNK}, score ORDER BY score DESC, chunk_id LIMIT $limit"""
    return text, parameters


def _find_shortest_path(arguments: _Arguments) -> Statement:
    if arguments["source"] == arguments["target"]:
        raise SettingsError(f"source and target are both {arguments['source']!r}; give two entities")
    parameters: dict[str, Any] = {"source": arguments["source"], "target": arguments["target"]}
    conditions = relation_conditions(arguments, parameters)
    return shortest_path(arguments["max_depth"], conditions), parameters


def _entity_conditions(arguments: _Arguments, parameters: dict[str, Any], name: str) -> list[str]:
    if name not in arguments:
        return []
    parameters["entity_type"] = arguments[name]
    return ["e.entity_type = $entity_type"]


def _text(description: str, longest: int = 500) -> dict[str, Any]:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": longest}


def _number(description: str, least: int, most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": least, "maximum": most, "default": default}


def _takes(*required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_ENTITY_ID = _text("id of the entity, as search_entity gives it")
_ENTITY_TYPE = _text("only entities of this type, exactly as listed")
_RELATION_TYPE = _text("only relations of this type, exactly as listed")
_DATES = {
    "start_date": _text("ISO date: leave out relations that ended before it", 40),
    "end_date": _text("ISO date: leave out relations that began after it", 40),
}
_LIMIT = _number("rows at most", 1, MOST_ROWS, 50)
_FILTERS = {
    "type": "array",
    "description": "conditions on properties, all of which must hold; text comparison by contains and starts_with ignores case",
    "maxItems": 10,
    "items": _takes(
        "property",
        "operator",
        "value",
        property=_text("name of the property, for example label", 64),
        operator={"type": "string", "enum": list(OPERATORS)},
        value={
            "type": ["string", "number", "boolean"],
            "description": "what to compare with; numbers may be written as text",
            "maxLength": 500,
        },
    ),
}

GRAPH_TOOLS: tuple[GraphTool, ...] = (
    GraphTool(
        "search_entity",
        "Find entities by name: exact matches first, then names that share words. Gives the ids that the other tools take.",
        _takes("label", label=_text("the name"), entity_type=_ENTITY_TYPE, limit=_number("rows at most", 1, MOST_ROWS, 10)),
        _search_entity,
    ),
    GraphTool(
        "list_entities",
        "List entities of a type, or whose properties fulfil conditions, ordered by name.",
        _takes(entity_type=_ENTITY_TYPE, filters=_FILTERS, limit=_LIMIT),
        _list_entities,
    ),
    GraphTool(
        "get_entity_relations",
        "The relations of an entity, incoming and outgoing, each from its head to its tail, surest first.",
        _takes(
            "entity_id",
            entity_id=_ENTITY_ID,
            relation_type=_RELATION_TYPE,
            target_entity_type=_text("only relations whose other end is of this type"),
            min_score={"type": "number", "description": "only relations at least this sure", "minimum": 0, "maximum": 1},
            **_DATES,
            filters=_FILTERS,
        ),
        _get_entity_relations,
    ),
    GraphTool(
        "get_neighbors",
        "Entities that can be reached from an entity within some hops, nearest first.",
        _takes(
            "entity_id",
            entity_id=_ENTITY_ID,
            max_hops=_number("relations to walk at most", 1, MOST_STEPS, 1),
            entity_type=_ENTITY_TYPE,
            relation_type=_text("walk only relations of this type, exactly as listed"),
            **_DATES,
            filters=_FILTERS,
        ),
        _get_neighbors,
    ),
    GraphTool(
        "get_subgraph",
        "The relations within some hops of several entities, nearest first, each from its head to its tail.",
        _takes(
            "entity_ids",
            entity_ids={
                "type": "array",
                "description": "ids of the entities",
                "items": _ENTITY_ID,
                "minItems": 1,
                "maxItems": 50,
            },
            max_hops=_number("relations to walk at most", 1, MOST_STEPS, 1),
            **_DATES,
        ),
        _get_subgraph,
    ),
    GraphTool(
        "get_chunks_for_entity",
        "The pieces of text that mention an entity, surest mention first.",
        _takes("entity_id", entity_id=_ENTITY_ID),
        _get_chunks_for_entity,
    ),
    GraphTool(
        "get_chunks_for_relation",
        "The pieces of text that state the relations from one entity (head) to another (tail).",
        _takes("head", "tail", head=_text("id of the head"), tail=_text("id of the tail"), relation_type=_RELATION_TYPE),
        _get_chunks_for_relation,
    ),
    GraphTool(
        "find_shortest_path",
        "The relations on a shortest way between two entities, walked in either direction, each from its head to its tail.",
        _takes(
            "source",
            "target",
            source=_text("id of the entity to start from"),
            target=_text("id of the entity to reach"),
            max_depth=_number("relations to walk at most", 1, LONGEST_PATH, 5),
            relation_type=_text("walk only relations of this type, exactly as listed"),
        ),
        _find_shortest_path,
    ),
)
