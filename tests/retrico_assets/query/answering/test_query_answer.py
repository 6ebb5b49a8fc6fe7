"""A question from end to end in plain Python, and how the result is shown."""

import json
import subprocess
import sys

import pytest

from resources.errors import SettingsError
from resources.models.rerankers.embedder import EmbedderReranker
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.answer import answer
from retrico_assets.query.answering.collect import collect
from retrico_assets.query.answering.evidence import Evidence, QueryResult, SourceChunk
from retrico_assets.query.answering.render import escape, render_markdown, to_json
from retrico_assets.query.failures import Failure
from retrico_assets.query.options import FusionOptions
from tests.support.llm_stub import chat_model, refuses, says, scripted_llm

QUESTION = "Where was Albert Einstein born?"


class Down:
    """A store that can't be reached."""

    def __getattr__(self, name):
        raise ConnectionError("no route to redis://u:CANARY@h")


def test_the_default_strategy_finds_the_answer(world):
    result = answer(QUESTION, **world.sources)
    data = to_json(result)
    assert data["answer"] is None
    assert data["errors"] == []
    assert data["chunks"][0]["text"] == "Albert Einstein was born in Ulm."
    assert (data["chunks"][0]["source"], data["chunks"][0]["title"]) == ("einstein.txt", "Einstein")
    first = data["relations"][0]
    assert (first["head"], first["relation"], first["tail"], first["chunk_ids"]) == (
        "Albert Einstein",
        "born in",
        "Ulm",
        ["einstein.txt#0"],
    )


def test_the_json_has_these_keys_and_no_others(world):
    data = to_json(answer(QUESTION, **world.sources))
    assert list(data) == [
        "question",
        "strategies",
        "answer",
        "state",
        "notes",
        "inferred_relations",
        "entities",
        "relations",
        "chunks",
        "errors",
        "usage",
    ]
    assert set(data["entities"][0]) == {"id", "label", "type", "score"}
    assert set(data["relations"][0]) == {"id", "head", "relation", "tail", "score", "chunk_ids", "predicted", "properties"}
    assert set(data["chunks"][0]) == {"id", "source", "title", "page", "text", "start", "end", "score", "metadata"}
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_failing_strategy_is_reported_and_the_others_answer(world):
    whole = to_json(answer(QUESTION, **world.sources, strategies=("entity", "keyword")))
    data = to_json(answer(QUESTION, **world.sources | {"vectors": Down()}, strategies=("entity", "chunk_embedding", "keyword")))
    assert [error["strategy"] for error in data["errors"]] == ["chunk_embedding"]
    assert "no route" in data["errors"][0]["error"]
    assert "CANARY" not in json.dumps(data)
    for key in ("entities", "relations", "chunks"):
        assert data[key] == whole[key]


def test_an_unbuilt_index_says_what_to_build(world):
    data = to_json(answer(QUESTION, **world.sources | {"vectors": MemoryVectorStore()}, strategies=["chunk_embedding"]))
    assert "retrico build" in data["errors"][0]["error"]
    assert data["chunks"] == []


def test_when_all_strategies_fail_the_result_says_so(world):
    both = {"strategies": ("entity", "pagerank")}
    result = answer(QUESTION, **world.sources | {"graph": Down(), "texts": Down(), "vectors": Down()}, **both)
    assert result.all_failed
    assert {failure.strategy for failure in result.failures} == {"entity", "pagerank"}
    assert result.evidence == Evidence()
    assert not answer(QUESTION, **world.sources | {"vectors": Down()}, **both).all_failed


def test_wrong_options_are_errors_before_any_store_is_used(world):
    for options in (
        {"strategies": ["nope"]},
        {"strategies": []},
        {"top_k": 0},
        {"hops": -1},
        {"hops": 2, "strategies": ["keyword"]},
        {"options": {"entity": {"hopz": 1}}},
        {"options": {"community": {}}},
        {"options": {"entity": 3}},
        {"fusion": FusionOptions(method="intersection", min_sources=9)},
        {"chunk_source": "middle"},
        {"rerank_top": -1, "reranker": EmbedderReranker(world.embedder)},
    ):
        with pytest.raises(SettingsError):
            answer(
                QUESTION, **{"strategies": ["entity", "keyword"], **world.sources, "graph": Down(), "texts": Down(), **options}
            )


def labels(result):
    return {found.record.label for found in result.evidence.entities}


def test_options_of_a_strategy_win_over_hops(world):
    def near(**given):
        return labels(answer("Albert Einstein", **world.sources, strategies=["entity"], **given))

    assert "Germany" in near()
    assert "Germany" not in near(hops=1)
    assert "Germany" not in near(options={"entity": {"hops": 1}})
    assert "Germany" in near(options={"entity": {"hops": 2}}, hops=1)


def test_the_selected_fusion_is_used(world):
    def found(*strategies, **given):
        chunks = answer("Who created C++?", **world.sources, strategies=strategies, **given).evidence.chunks
        return {chunk.chunk.id: chunk.score for chunk in chunks if chunk.score > 0}

    entity, keyword = set(found("entity")), set(found("keyword"))
    assert entity < keyword
    assert set(found("entity", "keyword")) == keyword
    assert set(found("entity", "keyword", fusion=FusionOptions(method="intersection"))) == entity
    heavy = found("entity", "keyword", fusion=FusionOptions(method="weighted", weights={"keyword": 100}))
    assert list(heavy) == list(found("keyword"))
    assert max(heavy.values()) >= 100


def test_a_reranker_reads_more_chunks_than_are_kept(world):
    question = "Where was Albert Einstein born?"
    given = world.sources | {"strategies": ["keyword"], "top_k": 1}
    assert answer(question, **given).evidence.chunks[0].score > 1
    reranked = answer(question, **given, reranker=EmbedderReranker(world.embedder))
    assert [source.chunk.text for source in reranked.evidence.chunks] == ["Albert Einstein was born in Ulm."]
    assert 0 < reranked.evidence.chunks[0].score <= 1


def test_chunks_can_be_limited_to_one_end_of_the_relations(world):
    tails = answer("Where was Albert Einstein born?", **world.sources, strategies=["entity"], top_k=1, chunk_source="tail")
    assert [source.chunk.id for source in tails.evidence.chunks] == ["einstein.txt#0"]
    assert tails.failures == ()


def test_the_answer_is_given_piece_by_piece(world):
    pieces = []
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub:
        result = answer(QUESTION, **world.sources, llm=chat_model(stub.base_url, "m"), on_text=pieces.append)
    assert result.answer == "In Ulm [einstein.txt#0]."
    assert "".join(pieces) == "In Ulm [1]."


def test_what_several_strategies_found_is_in_the_prompt_once(world):
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub:
        answer(QUESTION, **world.sources, llm=chat_model(stub.base_url, "m"))
    assert stub.prompt.count("Albert Einstein was born in Ulm.") == 1


@pytest.mark.parametrize("question", ["", " ", "🤔", "the", "東京", "\0", "'\"`; --", "\udcff"])
def test_any_text_can_be_a_question(world, question):
    result = answer(question, **world.sources)
    assert result.failures == ()
    json.dumps(to_json(result)).encode()
    render_markdown(result).encode()


def test_one_strategy_keeps_its_own_ranking(world):
    scores = [chunk["score"] for chunk in to_json(answer(QUESTION, **world.sources, strategies=["chunk_embedding"]))["chunks"]]
    assert 0.3 < scores[0] <= 1
    assert scores == sorted(scores, reverse=True)


def test_top_k_cuts(world):
    data = to_json(answer(QUESTION, **world.sources, top_k=1))
    assert (len(data["relations"]), len(data["chunks"])) == (1, 1)


def test_a_failing_model_leaves_the_evidence(world):
    with scripted_llm(refuses(401, "who are you?")) as stub:
        result = answer(QUESTION, **world.sources, llm=chat_model(stub.base_url, "m"))
    assert result.answer is None
    assert [failure.strategy for failure in result.failures] == ["reason"]
    assert result.evidence.chunks


def test_the_extractor_runs_only_for_strategies_that_use_names(world):
    class Failing:
        def extract(self, texts):
            raise RuntimeError("asked")

    assert answer(QUESTION, **world.sources, extractor=Failing(), strategies=["keyword"]).failures == ()
    assert [f.strategy for f in answer(QUESTION, **world.sources, extractor=Failing()).failures] == ["parse_question"]


def test_sources_cost_one_round_trip_and_a_missing_one_is_empty():
    calls = []

    class Texts:
        def get_documents(self, ids):
            calls.append(list(ids))
            return {}

    chunks = tuple(Scored(Chunk(f"c{n % 3}", f"d{n % 2}", n, "x", 0, 1), 1.0) for n in range(6))
    evidence, failures = collect(Subgraph(chunks=chunks), Texts())
    assert calls == [["d0", "d1"]]
    assert [source.chunk.id for source in evidence.chunks] == ["c0", "c1", "c2"]
    assert {source.source for source in evidence.chunks} == {""}
    assert failures == ()


def _nasty_result():
    chunk = Chunk("c-1", "d", 0, "<script>alert(1)</script>\n# not a title\n| a | b |", 0, 48)
    people = (Scored(Entity("e1", "A|B\n*C*", "a b c", "per|son"), 1.0), Scored(Entity("e2", "[x](y)", "x y", "t"), float("nan")))
    relation = Relation("r", "e1", "knows`", "e2", 0.5, ("c-1", "c-2"))
    evidence = Evidence(people, (Scored(relation, float("inf")),), (SourceChunk(chunk, "a_b.txt", "T|", 0.5),))
    return QueryResult("What *is* <b>?", ("entity",), "It is so [c-1].", evidence, (Failure("keyword", "a|b"),))


def test_markdown_shows_texts_as_they_are():
    shown = render_markdown(_nasty_result())
    assert "<" not in shown
    assert "| A\\|B \\*C\\* | per\\|son |" in shown
    assert "It is so \\[1\\]." in shown
    assert "> \\# not a title" in shown
    assert "**[1]** a\\_b.txt, T\\|, 0-48" in shown
    assert "-\\[knows\\`\\]-&gt;" in shown
    assert "keyword failed" in shown
    assert escape("a\nb  c") == "a b c"


def test_infinite_and_nan_scores_do_not_break_the_json():
    json.dumps(to_json(_nasty_result()), allow_nan=False)


def test_markdown_says_when_nothing_was_found():
    assert "Nothing was found" in render_markdown(QueryResult("", ("entity",), None, Evidence()))


def test_importing_the_query_room_loads_no_model_package():
    heavy = ("openai", "torch", "gliner", "sentence_transformers", "faiss", "falkordb")
    code = f"import sys, retrico_assets.query.job as _; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == "[]"
