"""Which chunks become evidence, and how a result is shown."""

import json

import pytest
from markdown_it import MarkdownIt

from resources.errors import SettingsError
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.answering.collect import collect
from retrico_assets.query.answering.evidence import (
    Evidence,
    InferredRelation,
    QueryResult,
    SourceChunk,
    Spending,
)
from retrico_assets.query.answering.render import escape, render_markdown, to_json
from retrico_assets.query.failures import Failure
from tests.support.query_world import documents


class Watched:
    """A store that counts what it is asked."""

    def __init__(self, store):
        self.store = store
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments, **options):
            self.calls.append(name)
            return getattr(self.store, name)(*arguments, **options)

        return call


class Down:
    def __getattr__(self, name):
        raise ConnectionError("no route")


@pytest.fixture
def known(world):
    """Entities and chunks of the world by name and id, relations by label."""
    entities = {(one.label, one.type): one for one in world.graph.entities()}
    chunks = {chunk.id: chunk for one in documents() for chunk in one.chunks}
    relations = {relation.label: relation for relation in world.graph.relations()}
    return entities, chunks, relations


def scored(*records):
    return tuple(Scored(record, 1 / place) for place, record in enumerate(records, 1))


def ids(evidence):
    return [source.chunk.id for source in evidence.chunks]


def test_retrieved_chunks_come_first_then_those_that_state_relations_then_those_that_mention_entities(world, known):
    entities, chunks, relations = known
    found = Subgraph(
        scored(entities["Ulm", "location"]),
        scored(relations["works at"], relations["born in"]),
        scored(chunks["tokyo.txt#0"], chunks["einstein.txt#0"]),
    )
    graph, texts = Watched(world.graph), Watched(world.texts)
    evidence, failures = collect(found, texts, graph)
    assert ids(evidence) == ["tokyo.txt#0", "einstein.txt#0", "einstein.txt#1", "memory.txt#0", "ulm.txt#0"]
    assert [source.score for source in evidence.chunks] == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert evidence.chunks[2].source == "einstein.txt"
    assert failures == ()
    assert (graph.calls, texts.calls) == (["chunks_of"], ["get_chunks", "get_documents"])
    assert (evidence.entities, evidence.relations) == (found.entities, found.relations)


def test_no_chunk_is_added_when_there_are_enough(world, known):
    entities, chunks, relations = known
    found = Subgraph(scored(entities["Ulm", "location"]), scored(relations["works at"]), scored(*list(chunks.values())[2:9]))
    graph = Watched(world.graph)
    evidence, _ = collect(found, world.texts, graph)
    assert ids(evidence) == list(chunks)[2:9]
    assert graph.calls == []
    assert ids(collect(found, world.texts, graph, max_chunks=3)[0]) == list(chunks)[2:5]


def test_chunks_that_mention_several_entities_are_added_first(world, known):
    entities, _, _ = known
    found = Subgraph(scored(entities["Ulm", "location"], entities["Albert Einstein", "person"]))
    evidence, _ = collect(found, world.texts, world.graph)
    assert ids(evidence)[:2] == ["einstein.txt#0", "memory.txt#0"]
    assert len(evidence.chunks) == 5
    assert ids(collect(found, world.texts, world.graph, max_chunks=2)[0]) == ["einstein.txt#0", "memory.txt#0"]


def test_without_a_graph_the_stating_chunks_are_added(world, known):
    entities, _, relations = known
    found = Subgraph(scored(entities["Ulm", "location"]), scored(relations["works at"], relations["born in"]))
    assert ids(collect(found, world.texts)[0]) == ["einstein.txt#1", "einstein.txt#0"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("head", ["memory.txt#0", "einstein.txt#0", "einstein.txt#1", "injection.txt#0"]),
        ("tail", ["ulm.txt#0", "memory.txt#0", "einstein.txt#0"]),
        ("both", ["ulm.txt#0", "memory.txt#0", "einstein.txt#0", "einstein.txt#1", "injection.txt#0"]),
    ],
)
def test_chunks_can_be_limited_to_those_that_mention_an_end_of_a_relation(world, known, source, expected):
    _, chunks, relations = known
    found = Subgraph((), scored(relations["born in"]), scored(chunks["tokyo.txt#0"], chunks["ulm.txt#0"], chunks["memory.txt#0"]))
    graph = Watched(world.graph)
    evidence, failures = collect(found, world.texts, graph, source=source)
    assert ids(evidence) == expected
    assert failures == ()
    assert graph.calls.count("chunks_of") == 1
    assert len(graph.calls) == 2


def test_a_namesake_of_an_end_does_not_count(world, known):
    """By id: Einstein the café is not Albert Einstein, and Paris the Trojan is not the city."""
    entities, chunks, _ = known
    city = entities["Paris", "location"]
    trojan = entities["Paris", "person"]
    elsewhere = Relation("r", trojan.id, "loves", entities["Geneva", "location"].id, 0.9, ("gone",))
    found = Subgraph((), scored(elsewhere), scored(chunks["tokyo.txt#0"]))
    assert city.id != trojan.id
    assert ids(collect(found, world.texts, world.graph, source="tail")[0]) == ["who.txt#0"]


def test_chunks_of_heads_and_tails_are_added_up_to_the_maximum(world, known):
    _, _, relations = known
    found = Subgraph((), scored(relations["born in"]))
    evidence, _ = collect(found, world.texts, world.graph, source="both", max_chunks=20)
    assert set(ids(evidence)) == {"einstein.txt#0", "einstein.txt#1", "injection.txt#0", "memory.txt#0", "ulm.txt#0"}
    assert ids(collect(found, world.texts, world.graph, source="both", max_chunks=1)[0]) == ["einstein.txt#0"]


def test_without_a_relation_there_are_no_chunks_of_heads_and_a_failure_says_so(world, known):
    _, chunks, _ = known
    evidence, failures = collect(Subgraph(chunks=scored(chunks["tokyo.txt#0"])), world.texts, world.graph, source="head")
    assert evidence.chunks == ()
    assert "no relation was found" in failures[0].error


def test_each_chunk_is_collected_once_at_its_best_place(world, known):
    _, chunks, _ = known
    first, second = chunks["ulm.txt#0"], chunks["tokyo.txt#0"]
    evidence, _ = collect(Subgraph(chunks=(*scored(first, second), Scored(first, 0.1))), world.texts)
    assert ids(evidence) == ["ulm.txt#0", "tokyo.txt#0"]
    assert evidence.chunks[0].score == 1.0


@pytest.mark.parametrize("source", ["all", "head"])
def test_a_failing_graph_is_reported_and_the_retrieved_chunks_are_kept(world, known, source):
    entities, chunks, relations = known
    found = Subgraph(scored(entities["Ulm", "location"]), scored(relations["born in"]), scored(chunks["tokyo.txt#0"]))
    evidence, failures = collect(found, world.texts, Down(), source=source)
    assert ids(evidence)[0] == "tokyo.txt#0"
    assert [failure.strategy for failure in failures] == ["collect"]
    assert "no route" in failures[0].error


def test_the_chunks_of_heads_need_the_graph(world):
    with pytest.raises(SettingsError, match="chunk_source is 'head', which needs the graph"):
        collect(Subgraph(), world.texts, source="head")


def test_an_empty_subgraph_calls_no_store():
    assert collect(Subgraph(), Down(), Down()) == (Evidence(), ())


def a_result(**more):
    text = "Einstein was born in Ulm."
    chunks = (
        SourceChunk(Chunk("c-1", "d", 0, text, 0, 25, {"page": 3}), "a.pdf", "Lives", 0.5),
        SourceChunk(Chunk("c-2", "d", 1, "Ulm is old.", 26, 37), "b.txt", "b.txt", 0.4),
    )
    people = scored(Entity("e1", "Einstein", "einstein", "person"), Entity("e2", "Ulm", "ulm", "location"))
    relations = scored(
        Relation("r1", "e1", "born in", "e2", 0.9, ("c-1",)),
        Relation("r2", "e1", "citizen of", "e2", 0.7, (), properties={"predicted": True}),
    )
    more = {"answer": "In Ulm [c-1].", "state": "answered"} | more
    return QueryResult("Where?", ("entity",), evidence=Evidence(people, relations, chunks), **more)


def test_a_citation_is_shown_with_its_source_and_page():
    shown = render_markdown(a_result())
    assert "In Ulm \\[1\\].\n\nCited: [1] a.pdf, Lives, page 3\n" in shown
    assert "**[1]** a.pdf, Lives, page 3, 0-25" in shown
    assert "**[2]** b.txt, 26-37" in shown
    assert [chunk["page"] for chunk in to_json(a_result())["chunks"]] == [3, None]


def test_an_answer_keeps_its_lines():
    assert "Two towns:\n- Ulm \\[1\\]\n- Bern\n" in render_markdown(a_result(answer="Two towns:\n- Ulm [c-1]\n- Bern"))


@pytest.mark.parametrize(
    "line", ["1990. Next", "7) seven", "- 5 °C", "+ plus", "=====", "---", "# title", "* star", "    indented"]
)
def test_a_quoted_line_is_shown_literally(line):
    text = f"1986. A year\n{line}\n\n{line}"
    chunk = SourceChunk(Chunk("c", "d", 0, text, 0, len(text)), "a.txt", "A", 1.0)
    shown = MarkdownIt().render(render_markdown(QueryResult("Where?", (), None, Evidence(chunks=(chunk,)))))
    line = line.strip()
    assert f"<blockquote>\n<p>1986. A year\n{line}</p>\n<p>{line}</p>\n</blockquote>" in shown


@pytest.mark.parametrize("answer", ["See [c-1](javascript:x).", "[c-1]: x", "Ulm [c-1]\n===", "Ulm [c-1]\n---"])
def test_an_answer_adds_no_link_and_no_heading(answer):
    shown = MarkdownIt().render(render_markdown(a_result(answer=answer)))
    assert f"<p>{answer.replace('c-1', '1')}</p>" in shown
    assert "<a " not in shown


def test_control_characters_are_not_shown():
    assert escape("\x1b[2J\x07a\x9bb") == "\\[2Jab"


def test_inferred_and_predicted_relations_are_marked():
    result = a_result(inferred=(InferredRelation("Einstein", "native of", "Germany", "e1"),))
    shown, data = render_markdown(result), to_json(result)
    assert "- Einstein -\\[native of\\]-&gt; Germany (inferred)" in shown
    assert "- Einstein -\\[citizen of\\]-&gt; Ulm (0.5000) (predicted)" in shown
    assert "- Einstein -\\[born in\\]-&gt; Ulm (1.0000) [1]" in shown
    assert data["inferred_relations"] == [
        {"head": "Einstein", "head_id": "e1", "relation": "native of", "tail": "Germany", "tail_id": None, "inferred": True}
    ]
    assert [(one["relation"], one["predicted"]) for one in data["relations"]] == [("born in", False), ("citizen of", True)]


def test_an_answer_that_is_not_in_the_sources_says_so():
    shown = render_markdown(a_result(answer="They name no year.", state="not_in_sources"))
    assert "**Not in the sources.**\n\nThey name no year." in shown
    assert (
        render_markdown(a_result(answer="Not in the sources.", state="not_in_sources")).lower().count("not in the sources") == 1
    )
    silent = a_result(answer=None, state="not_in_sources")
    assert "**Not in the sources.**" in render_markdown(silent)
    assert "No answer was written" not in render_markdown(silent)
    assert to_json(silent)["state"] == "not_in_sources"


def test_an_incomplete_answer_and_notes_are_shown():
    shown = render_markdown(a_result(state="cut", notes=("the answer cites *no* source",)))
    assert "*The answer is incomplete: the model reached its token limit.*" in shown
    assert "*Note: the answer cites \\*no\\* source*" in shown
    assert to_json(a_result(state="cut", notes=("a",)))["notes"] == ["a"]


def test_the_usage_of_the_language_model_is_in_the_json():
    data = to_json(a_result(usage=Spending(requests=2, cached=1, prompt_tokens=70, completion_tokens=9, cost=0.01)))
    assert data["usage"] == {
        "requests": 2,
        "cached": 1,
        "prompt_tokens": 70,
        "completion_tokens": 9,
        "requests_without_usage": 0,
        "cost": 0.01,
    }
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_failures_are_shown_beside_the_answer():
    assert "**keyword failed:** down" in render_markdown(a_result(failures=(Failure("keyword", "down"),)))
