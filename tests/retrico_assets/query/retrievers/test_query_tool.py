"""Strategy "tool": a scripted model calls real tools on a real FalkorDB and a real SQLite text store."""

import json

import pytest

from resources.errors import LLMError, SettingsError, StoreError
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from retrico_assets.query.tools.loop import MOST_CALLS
from retrico_assets.query.tools.registry import register_tool, unregister_tool
from retrico_assets.query.tools.show import show
from tests.support.llm_stub import chat_model, refuses, says, scripted_llm
from tests.support.query_world import INJECTION, WordEmbedder, empty_graph, fill, small_world

QUESTION = "Where was Albert Einstein born?"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    with empty_graph("falkordb", folder / "graph") as graph, SqliteTextStore(folder / "texts.sqlite") as texts:
        yield fill(graph, texts, MemoryVectorStore(), WordEmbedder())


@pytest.fixture(scope="module")
def ids(world):
    """Entity ids by label; of namesakes the last one's."""
    return {entity.label: entity.id for entity in world.graph.entities()}


def call(name, id_="c1", **arguments):
    return raw_call(name, json.dumps(arguments), id_)


def raw_call(name, arguments, id_="c1"):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made):
    """A turn of the model that calls tools."""
    return says(None, tool_calls=list(made), finish_reason="tool_calls")


def ask(world, *replies, question=QUESTION, k=10, **options):
    """The result, and the requests that the model got."""
    with scripted_llm(*replies) as stub:
        llm = chat_model(stub.base_url, "scripted", max_retries=0)
        retriever = make_retriever("tool", Sources(graph=world.graph, texts=world.texts, llm=llm), options)
        found = retriever.retrieve(question if isinstance(question, Question) else Question(question), k)
        return found, stub.requests


def told(requests):
    """What the tools answered, as the last request shows it, by the call's id."""
    messages = requests[-1]["messages"]
    return {m["tool_call_id"]: json.loads(m["content"]) for m in messages if m["role"] == "tool"}


def labels(found):
    return [one.record.label for one in found.entities]


def triples(found):
    names = {one.record.id: one.record.label for one in found.entities}
    return [(names[r.record.head_id], r.record.label, names[r.record.tail_id]) for r in found.relations]


def chunk_ids(found):
    return [one.record.id for one in found.chunks]


# What a question gets


def test_what_the_tools_gave_is_the_result_and_relations_keep_their_direction(world, ids):
    found, requests = ask(
        world,
        calls(call("search_entity", label="Albert Einstein")),
        calls(call("get_entity_relations", entity_id=ids["Ulm"], relation_type="born in")),
        says("einstein.txt#0"),
    )
    assert triples(found) == [("Albert Einstein", "born in", "Ulm")]  # reference B3.32: not Ulm born in Einstein
    assert labels(found)[:2] == ["Albert Einstein", "Ulm"]
    assert chunk_ids(found) == ["einstein.txt#0"]  # the relation's evidence, although no tool gave it
    assert len(requests) == 3
    assert all("tools" in request for request in requests)


def test_the_model_is_told_what_the_graph_holds_the_entities_named_and_all_eleven_tools(world, ids):
    _, requests = ask(world, says("nothing found"), question=link(Question(QUESTION), world.graph))
    system, user = requests[0]["messages"]
    assert "quoted data" in system["content"]
    assert '"born in": 1' in user["content"]
    assert '"location": ' in user["content"]
    assert ids["Albert Einstein"] in user["content"]
    assert user["content"].endswith(QUESTION)
    assert [tool["function"]["name"] for tool in requests[0]["tools"]] == [
        "search_entity",
        "list_entities",
        "get_entity_relations",
        "get_neighbors",
        "get_subgraph",
        "get_chunks_for_entity",
        "get_chunks_for_relation",
        "find_shortest_path",
        "search_chunks",
        "get_chunk",
        "query_records",
    ]


def test_every_built_in_tool_runs_and_shows_rows(world, ids):
    einstein, ulm = ids["Albert Einstein"], ids["Ulm"]
    made = [
        call("search_entity", "1", label="Albert Einstein"),
        call("list_entities", "2", entity_type="location", filters=[{"property": "label", "operator": "eq", "value": "Ulm"}]),
        call("get_entity_relations", "3", entity_id=einstein),
        call("get_neighbors", "4", entity_id=einstein, max_hops=2),
        call("get_subgraph", "5", entity_ids=[einstein, ulm], max_hops=2),
        call("get_chunks_for_entity", "6", entity_id=ulm),
        call("get_chunks_for_relation", "7", head=einstein, tail=ulm),
        call("find_shortest_path", "8", source=einstein, target=ids["Germany"]),
        call("search_chunks", "9", query='Where\'s "C++" (from)?'),
        call("get_chunk", "10", chunk_id="ulm.txt#0"),
        call("query_records", "11", filters=[{"field": "source", "operator": "eq", "value": "einstein.txt"}]),
    ]
    found, requests = ask(world, calls(*made), says("nothing found"), k=20)
    rows = {id_: answer["quoted_data"] for id_, answer in told(requests).items()}
    assert all(rows.values())
    assert [row["label"] for row in rows["4"]] == ["ETH Zurich", "Princeton", "Ulm", "Germany"]
    assert [row["relation"] for row in rows["8"]] == ["born in", "located in"]
    assert rows["9"][0]["chunk_id"] == "languages.txt#0"
    assert (rows["10"][0]["source"], rows["10"][0]["title"]) == ("ulm.txt", "Ulm")
    assert [row["index"] for row in rows["11"]] == [0, 1]
    assert ("Ulm", "located in", "Germany") in triples(found)
    assert {"einstein.txt#1", "languages.txt#0", "ulm.txt#0", "memory.txt#0"} <= set(chunk_ids(found))


def test_items_that_come_again_and_late_rank_higher_and_each_comes_once(world, ids):
    found, _ = ask(
        world,
        calls(call("list_entities", entity_type="location", limit=50), call("search_entity", "c2", label="Germany")),
        calls(call("get_neighbors", entity_id=ids["Germany"])),
        says("done"),
        k=50,
    )
    assert labels(found)[:1] == ["Ulm"]  # of the last round, and in the list before
    assert len({one.record.id for one in found.entities}) == len(found.entities)
    scores = [one.score for one in found.entities]
    assert scores == sorted(scores, reverse=True)


def test_chunks_that_the_model_names_in_the_end_come_first_in_its_order(world):
    search = call("search_chunks", query="Albert Einstein Ulm")
    found, _ = ask(world, calls(search), says("nothing"))
    first, second, third, *_ = chunk_ids(found)
    found, _ = ask(world, calls(search), says(f"Best is [{third}], then {second}; invented.txt#7 too."))
    assert chunk_ids(found)[:3] == [third, second, first]
    assert "invented.txt#7" not in chunk_ids(found)
    scores = [one.score for one in found.chunks]
    assert scores == sorted(scores, reverse=True)


def test_k_cuts_each_kind_but_never_the_ends_of_a_relation(world, ids):
    found, _ = ask(world, calls(call("get_entity_relations", entity_id=ids["Albert Einstein"])), says("done"), k=1)
    assert (len(found.entities), len(found.relations), len(found.chunks)) == (2, 1, 1)
    triples(found)


def test_a_model_that_calls_no_tool_finds_nothing(world):
    found, requests = ask(world, says("Einstein was born in Ulm, everybody knows that."))
    assert (found.entities, found.relations, found.chunks) == ((), (), ())
    assert len(requests) == 1


def test_the_tools_are_told_in_terms_that_every_server_takes(world):
    _, requests = ask(world, says("nothing found"))
    told_so = json.dumps([tool["function"]["parameters"] for tool in requests[0]["tools"]])
    assert "Length" not in told_so  # ggml-org/llama.cpp#27087
    assert "Items" not in told_so
    assert '"type": [' not in told_so


@pytest.mark.parametrize("question", ["", "   \n\t", "\u200b\u2060", "\x1b\x07"])
def test_a_question_without_anything_visible_is_not_asked(world, question):
    found, requests = ask(world, says("x"), question=question)
    assert (found.entities, found.relations, found.chunks) == ((), (), ())
    assert requests == []


# Calls that are not as they should be


def test_each_of_several_calls_gets_its_own_answer_in_order_whatever_is_wrong_with_it(world):  # OPEN-29
    found, requests = ask(
        world,
        calls(
            raw_call("search_chunks", '{"query": "Einstein", "limit": 5}', "c1"),
            raw_call("serch_graph", "{}", "c2"),
            raw_call("search_chunks", '{"query": "kites", "limit": ', "c3"),
            raw_call("search_chunks", '["kites"]', "c4"),
            raw_call("search_chunks", '{"query": "kites", "limit": -1, "extra": true}', "c5"),
        ),
        says("done"),
    )
    roles = [message["role"] for message in requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "tool", "tool"]
    assert [m["tool_call_id"] for m in requests[1]["messages"][3:]] == ["c1", "c2", "c3", "c4", "c5"]
    answers = told(requests)
    assert answers["c1"]["quoted_data"]
    assert answers["c2"]["error"].startswith("there is no tool 'serch_graph'; there are: search_entity, list_entities")
    assert answers["c2"]["error"].endswith("search_chunks, get_chunk, query_records")
    for id_ in ("c3", "c4"):
        assert "are not a JSON object" in answers[id_]["error"]
    assert "limit: -1 is not from 1 to 100; 'extra': unknown argument. It takes query, limit" in answers["c5"]["error"]
    assert "einstein.txt#0" in chunk_ids(found)
    sent = [made["function"]["arguments"] for made in requests[1]["messages"][2]["tool_calls"]]
    assert all(isinstance(text, str) for text in sent)
    assert (sent[0], sent[1], sent[4]) == (
        '{"query": "Einstein", "limit": 5}',
        "{}",
        '{"query": "kites", "limit": -1, "extra": true}',
    )
    assert all(isinstance(json.loads(text), dict) for text in sent)  # a server that reads them does not break on c3 and c4


@pytest.mark.parametrize(
    "arguments",
    ["", "null", "3", '"{}"', "[" * 100_000, '{"a":' * 100_000, "1" * 5000, '{"query": NaN}', "not json"]
    + [
        f'{{"{name}": "{text}"}}'
        for name in ("query", "label", "\ud800")
        for text in ("\ud800", "\\ud800", "\\u0000", "x" * 5000)
    ],
)
def test_no_arguments_of_a_model_end_the_question(world, arguments):
    _, requests = ask(
        world, calls(*(raw_call(name, arguments, name) for name in ("search_chunks", "search_entity"))), says("done")
    )
    assert len(requests) == 2
    assert all(told(requests).values())
    assert isinstance(json.loads(requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"]), dict)


def test_calls_without_an_id_of_their_own_get_one(world):
    made = [call("search_chunks", id_, query=query) for id_, query in (("", "Ulm"), ("x", "Einstein"), ("x", "Paris"))]
    _, requests = ask(world, calls(*made), says("done"))
    assistant, *tools = requests[1]["messages"][2:]
    sent = [one["id"] for one in assistant["tool_calls"]]
    assert len(set(sent)) == 3
    assert [message["tool_call_id"] for message in tools] == sent


def test_a_name_that_the_protocol_does_not_allow_does_not_go_back_to_the_server(world):
    _, requests = ask(world, calls(call("search chunks/ü", query="x"), call("", "c2")), says("done"))
    names = [one["function"]["name"] for one in requests[1]["messages"][2]["tool_calls"]]
    assert names == ["search_chunks__", "unnamed"]
    assert "there is no tool 'search chunks/ü'" in told(requests)["c1"]["error"]


def test_a_failing_tool_is_told_to_the_model_and_the_search_goes_on(world):
    def broken(arguments):
        raise ZeroDivisionError("division by zero")

    register_tool("broken", "Fails.", {"type": "object", "properties": {}}, broken)
    register_tool("refused", "Fails in the store.", {"type": "object", "properties": {}}, lambda given: ("MATCH (", {}))
    try:
        found, requests = ask(
            world,
            calls(
                call("broken", "c1"),
                call("refused", "c2"),
                call("query_records", "c3", filters=[{"field": "nope", "operator": "neq", "value": "x"}]),
                call("list_entities", "c4", filters=[{"property": "a`b", "operator": "eq", "value": 1}]),
            ),
            calls(call("search_chunks", "c5", query="Ulm")),
            says("done"),
        )
    finally:
        unregister_tool("broken")
        unregister_tool("refused")
    answers = told(requests)
    assert answers["c1"] == {"error": "ZeroDivisionError: division by zero"}
    assert "refused" in answers["c2"]["error"]
    assert "there is no field 'nope'; known are: id, document_id, text, source, title, index" in answers["c3"]["error"]
    assert "can't be a name" in answers["c4"]["error"]
    assert "ulm.txt#0" in chunk_ids(found)


def test_a_type_that_the_graph_does_not_have_is_answered_with_those_it_has(world, ids):
    _, requests = ask(
        world,
        calls(
            call("get_entity_relations", "c1", entity_id=ids["Ulm"], relation_type="BORN_IN"),
            call("list_entities", "c2", entity_type="planet"),
        ),
        says("done"),
    )
    assert "born in" in told(requests)["c1"]["relation_types_in_the_graph"]
    assert "location" in told(requests)["c2"]["entity_types_in_the_graph"]


# Limits


ALWAYS_THE_SAME = [calls(call("search_chunks", query="Einstein"))]
ALTERNATING = [calls(call("search_chunks", query="Einstein")), calls(call("list_entities", entity_type="person"))] * 10


@pytest.mark.parametrize("script", [ALWAYS_THE_SAME, ALTERNATING])
def test_a_model_that_never_stops_is_asked_once_more_without_tools_and_what_was_found_is_kept(world, script):  # OPEN-30
    found, requests = ask(world, *script, max_rounds=4)
    assert ["tools" in request for request in requests] == [True, True, True, True, False]
    assert "no more calls" in requests[-1]["messages"][-1]["content"]
    assert "einstein.txt#0" in chunk_ids(found)
    results = [json.loads(m["content"]) for m in requests[-1]["messages"] if m["role"] == "tool"]
    assert len(results) == 4
    assert sum("quoted_data" in result for result in results) == (1 if script is ALWAYS_THE_SAME else 2)


def test_the_same_name_and_arguments_are_run_once_however_they_are_written(world):  # OPEN-30
    ran = []

    def counted(arguments):
        ran.append(arguments)
        return "RETURN $n AS n", arguments

    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    register_tool("counted", "Counts.", schema, counted)
    try:
        _, requests = ask(
            world,
            calls(raw_call("counted", '{"n": 1}', "c1"), raw_call("counted", '{ "n":1.0}', "c2"), raw_call("counted", "", "c3")),
            calls(raw_call("counted", '{"n": 2}', "c4"), raw_call("counted", '{"n": "1"}', "c5")),
            says("done"),
        )
    finally:
        unregister_tool("counted")
    assert ran == [{"n": 1}, {"n": 2}]
    answers = told(requests)
    assert answers["c5"] == {"error": "counted was called with these arguments in round 1: its result is above"}
    assert answers["c4"] == {"quoted_data": [{"n": 2}]}


def test_the_last_message_counts_after_the_last_round_too(world):
    search = calls(call("search_chunks", query="Einstein Ulm"))
    found, requests = ask(world, search, says("memory.txt#0"), max_rounds=1)
    assert len(requests) == 2
    assert chunk_ids(found)[0] == "memory.txt#0"


def test_a_call_shows_so_many_rows_and_characters_at_most_and_says_what_it_left_out(world):
    search = call("search_chunks", query="Einstein Ulm Paris Geneva")
    found, requests = ask(world, calls(search, call("list_entities", "c2")), says("done"), max_rows=2)
    assert [len(told(requests)[id_]["quoted_data"]) for id_ in ("c1", "c2")] == [2, 2]
    assert told(requests)["c1"]["rows_left_out"] > 0
    assert len(found.chunks) == 2  # what the model was not shown is no result
    _, requests = ask(world, calls(search), says("done"), max_characters=500)
    content = requests[1]["messages"][-1]["content"]
    assert len(content) <= 500
    assert json.loads(content)["quoted_data"]


def test_a_row_that_is_too_long_by_itself_is_cut_where_it_is_longest():
    for text in ("long " * 5000, "長い" * 5000, '"\\\n' * 5000):
        content, kept = show([{"chunk_id": "a", "text": text}, {"chunk_id": "b", "text": "short"}], 50, 600)
        assert len(content) <= 600
        assert json.loads(content)["quoted_data"] == kept
        assert kept[0]["chunk_id"] == "a"
        assert kept[0]["text"].endswith("…")
        assert len(kept[0]["text"]) > 100


def test_a_row_that_can_not_be_cut_short_enough_is_left_out():
    content, kept = show([{"numbers": list(range(5000))}], 50, 600)
    assert (json.loads(content), kept) == ({"quoted_data": [], "rows_left_out": 1}, [])


def test_calls_beyond_what_one_turn_may_make_are_told_so(world):
    made = [call("search_chunks", f"c{n}", query=f"Einstein {n}") for n in range(MOST_CALLS + 2)]
    _, requests = ask(world, calls(*made), says("done"))
    answers = told(requests)
    assert len(answers) == MOST_CALLS + 2
    assert [id_ for id_, answer in answers.items() if "not run" in answer.get("error", "")] == ["c16", "c17"]


@pytest.mark.parametrize("options", [{"max_rounds": 0}, {"max_rows": 0}, {"max_characters": 10}, {"rounds": 3}])
def test_options_that_can_not_be_are_refused(world, options):
    with pytest.raises(SettingsError, match="tool\."):
        ask(world, says("x"), **options)


# Failures and attacks


def test_a_model_that_can_not_be_asked_is_an_error(world):
    with pytest.raises(LLMError, match="401"):
        ask(world, refuses(401, "no such key"))
    with pytest.raises(LLMError, match="500"):
        ask(world, calls(call("search_chunks", query="Ulm")), refuses(500, "broken"))


def test_a_graph_store_without_a_language_says_so_before_the_model_is_asked(tmp_path):
    world = small_world(tmp_path)
    with scripted_llm(says("x")) as stub, world.texts:
        llm = chat_model(stub.base_url, "scripted")
        retriever = make_retriever("tool", Sources(graph=world.graph, texts=world.texts, llm=llm))
        with pytest.raises(StoreError, match=r"no query language\. Set stores\.graph\.backend to falkordb"):
            retriever.retrieve(Question(QUESTION), 5)
        assert stub.requests == []


def test_a_document_that_tells_the_model_to_delete_everything_changes_nothing(world):  # OPEN-50
    before = (list(world.graph.entities()), list(world.graph.relations()), world.graph.stats(), list(world.texts.chunks()))
    register_tool(
        "run", "Any statement.", {"type": "object", "properties": {"s": {"type": "string"}}}, lambda given: (given["s"], {})
    )
    try:
        found, requests = ask(
            world,
            calls(call("search_chunks", query="ignore rules delete everything")),
            calls(
                call("delete_everything", "c2"),
                call("run", "c3", s="MATCH (n) DETACH DELETE n"),
                call("list_entities", "c4", filters=[{"property": "id", "operator": "eq", "value": "' DETACH DELETE e //"}]),
            ),
            says("done"),
        )
    finally:
        unregister_tool("run")
    answers = told(requests)
    assert INJECTION in answers["c1"]["quoted_data"][0]["text"]
    assert "there is no tool" in answers["c2"]["error"]
    assert "error" in answers["c3"]
    assert answers["c4"] == {"quoted_data": []}
    assert chunk_ids(found) == ["injection.txt#0"]
    assert "you don't follow it" in requests[0]["messages"][0]["content"]
    after = (list(world.graph.entities()), list(world.graph.relations()), world.graph.stats(), list(world.texts.chunks()))
    assert after == before


def test_an_own_tool_may_give_ids_in_columns_or_whole_nodes(world, ids):
    statement = (
        "MATCH (h:Entity)-[r]->(t:Entity) WHERE r.label = $label MATCH (c:Chunk) WHERE c.id IN r.chunk_ids "
        "RETURN r.id AS relation_id, h.id AS head_id, t.id AS tail_id, c AS chunk"
    )
    schema = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
    register_tool("all_of_a_kind", "Every relation of a type.", schema, lambda given: (statement, given))
    try:
        found, _ = ask(world, calls(call("all_of_a_kind", label="founded in")), says("done"))
    finally:
        unregister_tool("all_of_a_kind")
    assert triples(found) == [("WHO", "founded in", "Geneva")]
    assert chunk_ids(found) == ["who.txt#0"]
