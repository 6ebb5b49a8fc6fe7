"""The statements that the graph tools stand for, run on a real embedded FalkorDB."""

import hashlib

import pytest

from resources.errors import RetricoError, SettingsError, StoreError
from resources.records import Chunk, Document, DocumentGraph, Mention, RelationMention
from retrico_assets.graph.identity import resolve
from retrico_assets.query.tools.graph_tools import GRAPH_TOOLS
from retrico_assets.query.tools.registry import register_tool, tool_call_to_cypher, unregister_tool
from tests.support.query_world import empty_graph

TYPES = {"Stonehenge": "place"}
PROPERTIES = {"Ana Stone": {"age": 41, "city": "Oslo"}, "Bo": {"age": 9}}
CHUNKS = [
    (
        "Ana Stone hired Bo, who Cy likes.",
        ["Ana Stone", "Bo", "Cy"],
        [("Ana Stone", "hired", "Bo", 0.9), ("Ana Stone", "member of", "Bo", 0.4), ("Cy", "likes", "Bo", 0.8)],
    ),
    ("Cy hired Dee.", ["Cy", "Dee"], [("Cy", "hired", "Dee", 0.7)]),
    ("Eve hired Dee and likes Fay.", ["Eve", "Dee", "Fay"], [("Eve", "hired", "Dee", 0.6), ("Eve", "likes", "Fay", 0.5)]),
    ("Stonehenge is old.", ["Stonehenge"], []),
]


def facts():
    """One document. Who "likes" does so from 2001-05 to 2003; that Ana Stone hired Bo has the year 1999."""
    text = "".join(said for said, _, _ in CHUNKS)
    document = Document("d", "d.txt", "d", text, hashlib.sha256(text.encode()).hexdigest())
    chunks, mentions, relations, start = [], {}, [], 0
    for index, (said, names, stated) in enumerate(CHUNKS):
        chunks.append(Chunk(f"d/{index}", "d", index, said, start, start + len(said)))
        for name in names:
            at = start + said.index(name)
            type_ = TYPES.get(name, "person")
            mentions[index, name] = Mention(
                f"d/{index}", "d", at, at + len(name), name, type_, 0.9, None, PROPERTIES.get(name, {})
            )
        for head, label, tail, score in stated:
            ends = [part for m in (mentions[index, head], mentions[index, tail]) for part in (m.start, m.end, m.text, m.label)]
            dates = ("2001-05", "2003") if label == "likes" else (None, None)
            more = {"year": 1999} if label == "hired" and head == "Ana Stone" else {}
            relations.append(RelationMention(f"d/{index}", "d", *ends, label, score, *dates, more))
        start += len(said)
    resolved = resolve(list(mentions.values()), relations)
    return DocumentGraph(document, tuple(chunks), resolved.mentions, resolved.relations, document.text_hash)


IDS = {m.mention.text: m.entity_id for m in facts().mentions}
ANA, BO, CY, DEE, EVE, FAY, LONE = (IDS[name] for name in ("Ana Stone", "Bo", "Cy", "Dee", "Eve", "Fay", "Stonehenge"))


def everything(graph):
    nodes = graph.query("MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties")
    edges = graph.query("MATCH (a)-[r]->(b) RETURN ID(a) AS a, type(r) AS type, properties(r) AS properties, ID(b) AS b")
    assert nodes
    return sorted(map(repr, nodes)), sorted(map(repr, edges))


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with empty_graph("falkordb", tmp_path_factory.mktemp("graph")) as store:
        store.replace_documents([facts()])
        yield store


def call(graph, name, **arguments):
    statement, parameters = tool_call_to_cypher(name, arguments)
    return graph.query(statement, parameters, read_only=True)


def triples(rows):
    return [(row["head"], row["relation"], row["tail"]) for row in rows]


def labels(rows):
    return [row["label"] for row in rows]


def test_an_entity_is_found_by_name_exact_before_partial_and_never_by_a_piece_of_a_word(graph):
    assert labels(call(graph, "search_entity", label="ANA stone")) == ["Ana Stone"]
    assert labels(call(graph, "search_entity", label="Stone")) == ["Ana Stone"]  # not Stonehenge
    assert labels(call(graph, "search_entity", label="stonehenge", entity_type="place")) == ["Stonehenge"]
    assert call(graph, "search_entity", label="stonehenge", entity_type="person") == []
    assert labels(call(graph, "search_entity", label=BO)) == ["Bo"]  # its id
    with pytest.raises(SettingsError, match="holds no letter or digit"):
        call(graph, "search_entity", label="?!")


def test_entities_are_listed_by_type_and_by_their_properties(graph):
    assert labels(call(graph, "list_entities", entity_type="person", limit=2)) == ["Ana Stone", "Bo"]
    for operator, value, expected in [
        ("eq", 41, ["Ana Stone"]),
        ("neq", 41, ["Bo"]),
        ("gt", 9, ["Ana Stone"]),
        ("gte", 9, ["Ana Stone", "Bo"]),
        ("lt", 41, ["Bo"]),
        ("lte", 41, ["Ana Stone", "Bo"]),
    ]:
        only = [{"property": "age", "operator": operator, "value": value}]
        assert labels(call(graph, "list_entities", filters=only)) == expected
        only[0]["value"] = str(value)  # a model writes numbers as text
        assert labels(call(graph, "list_entities", filters=only)) == expected
    for operator, value in (("contains", "STONE"), ("starts_with", "ana")):
        only = [
            {"property": "label", "operator": operator, "value": value},
            {"property": "city", "operator": "eq", "value": "Oslo"},
        ]
        assert labels(call(graph, "list_entities", filters=only)) == ["Ana Stone"]
    assert labels(call(graph, "list_entities", filters=[{"property": "type", "operator": "eq", "value": "place"}])) == [
        "Stonehenge"
    ]
    assert (
        call(graph, "list_entities", filters=[{"property": "age", "operator": "contains", "value": 4}])[0]["label"] == "Ana Stone"
    )


def test_relations_of_an_entity_keep_their_direction_from_both_ends(graph):  # reference B3.32
    both = [("Ana Stone", "hired", "Bo"), ("Cy", "likes", "Bo"), ("Ana Stone", "member of", "Bo")]
    assert triples(call(graph, "get_entity_relations", entity_id=BO)) == both
    assert triples(call(graph, "get_entity_relations", entity_id=ANA)) == [both[0], both[2]]
    row = call(graph, "get_entity_relations", entity_id=ANA)[0]
    assert (row["head_id"], row["tail_id"], row["score"], row["chunk_ids"]) == (ANA, BO, 0.9, ["d/0"])


def test_relations_are_kept_by_exact_type_score_other_end_date_and_property(graph):
    def found(**only):
        return triples(call(graph, "get_entity_relations", entity_id=BO, **only))

    assert found(relation_type="member of") == [("Ana Stone", "member of", "Bo")]
    assert found(relation_type="MEMBER_OF") == []
    assert found(min_score=0.85) == [("Ana Stone", "hired", "Bo")]
    assert found(target_entity_type="place") == []
    assert len(found(target_entity_type="person")) == 3
    assert ("Cy", "likes", "Bo") not in found(start_date="2004")
    assert ("Cy", "likes", "Bo") not in found(end_date="2001-04")
    assert len(found(start_date="2003", end_date="2001-05")) == 3  # relations without dates are always kept
    assert found(filters=[{"property": "year", "operator": "lt", "value": 2000}]) == [("Ana Stone", "hired", "Bo")]


def test_neighbours_are_entities_within_the_hops_nearest_first_and_never_chunks(graph):
    def found(**more):
        return [(row["hop"], row["label"]) for row in call(graph, "get_neighbors", entity_id=ANA, **more)]

    assert found() == [(1, "Bo")]
    assert found(max_hops=3) == [(1, "Bo"), (2, "Cy"), (3, "Dee")]
    assert found(max_hops=5, entity_type="place") == []
    assert found(max_hops=5, relation_type="hired") == [(1, "Bo")]
    assert found(max_hops=2, start_date="2004") == [(1, "Bo")]
    assert found(max_hops=2, filters=[{"property": "age", "operator": "lt", "value": 10}]) == [(1, "Bo")]


def test_a_subgraph_holds_the_relations_within_the_hops_of_any_seed(graph):
    def found(ids, **more):
        return [(row["hop"], *triples([row])[0]) for row in call(graph, "get_subgraph", entity_ids=ids, **more)]

    assert found([DEE]) == [(1, "Cy", "hired", "Dee"), (1, "Eve", "hired", "Dee")]
    assert found([DEE], max_hops=2)[2:] == [(2, "Cy", "likes", "Bo"), (2, "Eve", "likes", "Fay")]
    assert [hop for hop, *_ in found([DEE, ANA], max_hops=2)] == [1, 1, 1, 1, 2, 2]
    assert found([FAY], start_date="2004") == []
    assert found(["nobody"]) == []


def test_chunks_of_an_entity_and_of_a_relation(graph):
    assert [row["chunk_id"] for row in call(graph, "get_chunks_for_entity", entity_id=CY)] == ["d/0", "d/1"]
    (row,) = call(graph, "get_chunks_for_relation", head=CY, tail=DEE)
    assert (row["chunk_id"], row["text"], row["document_id"]) == ("d/1", "Cy hired Dee.", "d")
    assert call(graph, "get_chunks_for_relation", head=DEE, tail=CY) == []
    assert call(graph, "get_chunks_for_relation", head=CY, tail=DEE, relation_type="likes") == []


def test_a_shortest_path_is_walked_either_way_and_its_relations_keep_their_direction(graph):  # reference B1.10, B3.31
    path = call(graph, "find_shortest_path", source=ANA, target=FAY)
    assert [row["step"] for row in path] == [1, 1, 2, 3, 4, 5]
    assert triples(path) == [
        ("Ana Stone", "hired", "Bo"),
        ("Ana Stone", "member of", "Bo"),
        ("Cy", "likes", "Bo"),
        ("Cy", "hired", "Dee"),
        ("Eve", "hired", "Dee"),
        ("Eve", "likes", "Fay"),
    ]
    assert triples(call(graph, "find_shortest_path", source=FAY, target=ANA)) == [*triples(path)[:1:-1], *triples(path)[:2]]
    assert call(graph, "find_shortest_path", source=ANA, target=FAY, max_depth=4) == []
    assert call(graph, "find_shortest_path", source=ANA, target=LONE, max_depth=10) == []
    assert call(graph, "find_shortest_path", source=ANA, target="nobody") == []
    assert call(graph, "find_shortest_path", source=ANA, target=CY, relation_type="hired") == []
    assert len(call(graph, "find_shortest_path", source=CY, target=EVE, relation_type="hired", max_depth=2)) == 2
    with pytest.raises(SettingsError, match="source and target are both"):
        call(graph, "find_shortest_path", source=ANA, target=ANA)


INJECTIONS = [
    "id IS NULL OR true WITH e DETACH DELETE e //",
    "x` IS NULL OR true WITH e DETACH DELETE e //",
    "BORN_IN`]-(n)\tDETACH\tDELETE\tn\t//",
    "`]-() DETACH DELETE e //",
    "1]-(n) DETACH DELETE n //",
    "' OR 1=1 WITH e DETACH DELETE e //",
    '"}) DETACH DELETE e //',
    "\\",
    "$other",
    "a'; MATCH (n) DETACH DELETE n; //",
]
GIVEN = {
    "search_entity": {"label": "Bo"},
    "get_entity_relations": {"entity_id": BO},
    "get_neighbors": {"entity_id": BO},
    "get_subgraph": {"entity_ids": [BO]},
    "get_chunks_for_entity": {"entity_id": BO},
    "get_chunks_for_relation": {"head": ANA, "tail": BO},
    "find_shortest_path": {"source": ANA, "target": BO},
}


@pytest.mark.parametrize("text", INJECTIONS)
@pytest.mark.parametrize("tool", GRAPH_TOOLS, ids=lambda tool: tool.name)
def test_text_from_a_model_changes_nothing_in_any_argument_of_any_tool(graph, tool, text):  # reference B13
    before = everything(graph)
    for name, schema in tool.parameters["properties"].items():
        if name == "filters":
            given = [
                [{"property": text, "operator": "eq", "value": 1}],
                [{"property": "age", "operator": text, "value": 1}],
                [{"property": "age", "operator": "eq", "value": text}],
                [{"property": "label", "operator": "contains", "value": text}],
            ]
        else:
            given = [[text] if schema["type"] == "array" else text]
        for value in given:
            arguments = {**GIVEN.get(tool.name, {}), name: value}
            try:
                statement, parameters = tool_call_to_cypher(tool.name, arguments)
            except RetricoError:
                continue
            assert text not in statement
            graph.query(statement, parameters, read_only=False)  # harmless even where the store would let it write
    assert everything(graph) == before


@pytest.mark.parametrize("text", INJECTIONS)
def test_a_property_that_can_not_be_a_name_and_a_number_that_is_none_are_refused(graph, text):  # reference B13
    with pytest.raises(StoreError, match="can't be a name"):
        call(graph, "list_entities", filters=[{"property": text, "operator": "eq", "value": 1}])
    with pytest.raises(SettingsError, match="is none of eq, neq"):
        call(graph, "list_entities", filters=[{"property": "age", "operator": text, "value": 1}])
    for name, argument in (("get_neighbors", "max_hops"), ("get_subgraph", "max_hops"), ("find_shortest_path", "max_depth")):
        with pytest.raises(SettingsError, match=f"{argument}: .* is no integer"):
            call(graph, name, **GIVEN[name], **{argument: text})


@pytest.mark.parametrize("number", [-1, 0, 11, 10**30, 1.5, float("nan"), True, None, [1], {"a": 1}])
def test_hops_depths_and_limits_are_whole_numbers_within_bounds(number):
    for name, argument in (("get_neighbors", "max_hops"), ("find_shortest_path", "max_depth")):
        if number is None:  # left out
            assert tool_call_to_cypher(name, {**GIVEN[name], argument: None}) == tool_call_to_cypher(name, GIVEN[name])
        else:
            with pytest.raises(SettingsError, match=f"{argument}: "):
                tool_call_to_cypher(name, {**GIVEN[name], argument: number})


def test_unknown_tools_and_arguments_are_errors_that_say_what_there_is():
    with pytest.raises(SettingsError, match=r"unknown graph tool 'serch'; known are: search_entity, .*find_shortest_path"):
        tool_call_to_cypher("serch", {})
    with pytest.raises(SettingsError, match=r"'name': unknown argument; label: missing\. It takes label, entity_type \(optional"):
        tool_call_to_cypher("search_entity", {"name": "Bo"})


STATEMENTS = [
    ("MATCH (n) DETACH DELETE n", False),
    ("match (n) Set n.x = 1", False),
    ("MATCH (n) REMOVE n.name", False),
    ("CALL { CREATE (:X) } RETURN 1", False),
    ("FOREACH (i IN [1] | CREATE (:X))", False),
    ("LOAD CSV FROM 'file:///etc/hosts' AS l RETURN l", False),
    ("MATCH (n:Created) RETURN n.set_name", True),
    ("MATCH (n) RETURN n", True),
    ("MATCH (n) RETURN n; MATCH (m) DELETE m", False),
    ('RETURN "DELETE" AS word', True),
]


@pytest.mark.parametrize(("statement", "reads"), STATEMENTS)
def test_a_statement_of_an_own_tool_reads_or_fails_and_changes_nothing(graph, statement, reads):  # OPEN-50
    before = everything(graph)
    register_tool("own", "A statement.", {"type": "object", "properties": {}}, lambda arguments: (statement, {}))
    try:
        if reads:
            assert isinstance(call(graph, "own"), list)
        else:
            with pytest.raises(StoreError):
                call(graph, "own")
    finally:
        unregister_tool("own")
    assert everything(graph) == before


def test_an_own_tool_has_its_arguments_checked_and_its_values_as_parameters(graph):
    schema = {
        "type": "object",
        "properties": {"letter": {"type": "string", "maxLength": 1}, "limit": {"type": "integer", "default": 1}},
        "required": ["letter"],
    }
    statement = "MATCH (e:Entity) WHERE e.label STARTS WITH $letter RETURN e.id AS entity_id, e.label AS label LIMIT $limit"
    register_tool("by_letter", "Entities by their first letter.", schema, lambda given: (statement, given))
    try:
        assert labels(call(graph, "by_letter", letter="B")) == ["Bo"]
        with pytest.raises(SettingsError, match="it has 2 characters, not 1 or less"):
            call(graph, "by_letter", letter="Bo")
        with pytest.raises(SettingsError, match="there is a tool 'by_letter' already"):
            register_tool("by_letter", "", schema, lambda given: (statement, given))
    finally:
        unregister_tool("by_letter")
    with pytest.raises(SettingsError, match="unknown graph tool 'by_letter'"):
        tool_call_to_cypher("by_letter", {"letter": "B"})


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        ("search_entity", {"type": "object"}, "there is a tool"),
        ("search_chunks", {"type": "object"}, "there is a tool"),
        ("no name", {"type": "object"}, "can't be the name"),
        ("x", {"type": "array"}, 'must be a JSON schema with "type": "object"'),
        (
            "x",
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "a"}}},
            r"\.a uses pattern, which is not checked",
        ),
        ("x", {"type": "object", "properties": {"a": {"type": "text"}}}, r"\.a has the type 'text'; known are object, array"),
        ("x", {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}, r"a items has the type None"),
    ],
)
def test_a_tool_that_can_not_be_registered_is_refused_with_the_reason(name, schema, message):
    with pytest.raises(SettingsError, match=message):
        register_tool(name, "", schema, lambda given: ("RETURN 1", {}))


def test_only_registered_tools_can_be_taken_back():
    with pytest.raises(SettingsError, match="no tool 'search_entity' was registered"):
        unregister_tool("search_entity")
