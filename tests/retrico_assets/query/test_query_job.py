"""The op job `query`: the result of answer(), each step visible, and a run that survives a failing strategy."""

import json
import pickle
from typing import ClassVar

import dagster as dg
import pytest

from resources.dagster_resources import ModelsResource
from resources.errors import ExtractionError
from resources.models.rerankers.embedder import EmbedderReranker
from resources.records import Subgraph
from retrico_assets.project import ProjectResource
from retrico_assets.query.answer import answer
from retrico_assets.query.answering.render import to_json
from retrico_assets.query.job import listening, query_job
from retrico_assets.query.options import FusionOptions, QueryOptions
from retrico_assets.query.plan import plan_for_project
from retrico_assets.query.retrievers.base import Retriever
from tests.support.llm_stub import chat_model, says, scripted_llm
from tests.support.query_resources import Models, Unreachable, metadata, run_query

QUESTION = "Where was Albert Einstein born?"


@pytest.fixture
def project(tmp_path):
    """Writes a project file, whose query section is the given one."""

    def write(**query):
        file = tmp_path / "project.yaml"
        file.write_text(json.dumps({"query": query}))
        return ProjectResource(file=str(file))

    return write


@pytest.fixture
def run(world, project):
    def run(**given):
        return run_query(world, query_job, given.pop("project", None) or project(), **given)

    return run


def test_the_job_and_answer_give_the_same_result(run, world):
    wanted = {"strategies": ["entity", "pagerank"], "top_k": 5, "hops": 1}
    result = run(**wanted)
    assert result.success
    assert result.output_for_node("reason") == to_json(answer(QUESTION, **world.sources, **wanted))


def test_the_answer_and_its_evidence_are_shown_as_markdown(run):
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub:
        result = run(llm=chat_model(stub.base_url, "m"))
    shown = metadata(result, "reason")["answer"]
    assert "In Ulm \\[1\\]." in shown
    assert "> Albert Einstein was born in Ulm." in shown
    assert result.output_for_node("reason")["answer"] == "In Ulm [einstein.txt#0]."


def test_each_step_shows_what_it_did(run):
    result = run()
    assert "Albert Einstein" in metadata(result, "link")["linked"]
    assert metadata(result, "retrieve")["chunks"] > 0
    assert "born in" in metadata(result, "fuse")["top relations"]
    assert "einstein.txt" in metadata(result, "collect")["chunk texts"]


def test_every_strategy_is_a_step(run):
    result = run(strategies=["entity", "keyword"])
    assert set(result.output_for_node("retrieve")) == {"entity", "keyword"}


def test_a_failing_strategy_is_shown_and_the_run_goes_on(run):
    result = run(strategies=["entity", "pagerank"], stores={"vector_store": Unreachable()})
    assert result.success
    data = result.output_for_node("reason")
    assert [error["strategy"] for error in data["errors"]] == ["pagerank"]
    assert data["chunks"][0]["text"] == "Albert Einstein was born in Ulm."
    assert "pagerank" in metadata(result, "fuse")["errors"]
    assert "CANARY" not in str(result.all_events)


def test_a_strategy_opens_only_what_it_needs(run):
    result = run(strategies=["keyword"], stores={"vector_store": Unreachable(), "models": Models(None)})
    assert result.output_for_node("reason")["errors"] == []


def test_a_result_reports_that_all_stores_are_down(run):
    down = dict.fromkeys(("graph_store", "text_store", "vector_store"), Unreachable())
    result = run(strategies=["entity", "pagerank"], stores=down)
    assert result.success
    errors = result.output_for_node("reason")["errors"]
    assert {error["strategy"] for error in errors} == {"entity", "pagerank", "collect"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"strategies": ["nope"]}, ["'nope'", "Known strategies"]),
        ({"strategies": []}, ["must be a list"]),
        ({"top_k": 0}, ["top_k is 0", "between 1 and 1000"]),
        ({"hops": -1}, ["hops is -1", "between 0 and 10"]),
        ({"options": {"entity": {"hopz": 2}}}, ["entity.hopz is an unknown key", "hops"]),
        ({"options": {"entity": {"hops": "far"}}}, ["entity.hops", "'far'", "whole number"]),
        ({"options": {"path": {}}}, ["options for 'path'", "selected strategies are entity, pagerank"]),
        ({"fusion": "magic"}, ["fusion.method", "intersection"]),
        ({"weights": {"oracle": 1}}, ["'oracle'", "pagerank"]),
        ({"weights": {"entity": -1}}, ["fusion.weights.entity", "greater than 0"]),
        ({"weights": {"keyword": 2}}, ["weights for 'keyword'", "selected strategies are entity, pagerank"]),
        ({"fusion": "intersection", "min_sources": 4}, ["fusion.min_sources is 4", "2 strategies"]),
        ({"chunk_source": "middle"}, ["chunk_source", "middle", "head"]),
        ({"rerank": True}, ["no reranker", "query.reranker", "project.yaml"]),
        ({"strategies": ["pagerank"], "hops": 3}, ["hops=3 has no effect", "(pagerank)", 'such as "entity"']),
        ({"strategies": ["chunk_embedding"], "active_after": "1905"}, ["active_after=1905 has no effect", "(chunk_embedding)"]),
    ],
)
def test_a_wrong_config_fails_the_run_before_any_store_is_opened(run, config, words):
    down = dict.fromkeys(("graph_store", "text_store", "vector_store"), Unreachable())
    with pytest.raises(dg.Failure) as failure:
        run(stores=down, **{"strategies": ["entity", "pagerank"], **config})
    for word in words:
        assert word in failure.value.description


@pytest.mark.parametrize("question", ["", "🤔", "東京はどこですか", "the of"])
def test_any_question_runs(run, question):
    assert run(question=question).output_for_node("reason")["errors"] == []


def test_the_state_between_steps_is_small_plain_data(run):
    """No store, client or model is handed from step to step."""
    result = run()
    for node in ("parse_question", "link", "retrieve", "fuse", "rerank", "collect", "reason"):
        value = result.output_for_node(node)
        data = pickle.dumps(value)
        assert pickle.loads(data) == value
        assert len(data) < 20_000


def test_options_that_a_run_does_not_set_are_those_of_the_project(run, world, project):
    mine = project(
        strategies=["keyword", "entity"],
        options={"entity": {"hops": 0}, "path": {"max_length": 2}},
        top_k=3,
        fusion={"method": "weighted", "weights": {"keyword": 5}},
    )
    ours = run(project=mine).output_for_node("reason")
    assert ours == to_json(
        answer(
            QUESTION,
            **world.sources,
            strategies=["keyword", "entity"],
            options={"entity": {"hops": 0}},
            top_k=3,
            fusion=FusionOptions(method="weighted", weights={"keyword": 5}),
        )
    )
    theirs = run(project=mine, strategies=["entity"], top_k=1, hops=1).output_for_node("reason")
    assert theirs == to_json(answer(QUESTION, **world.sources, strategies=["entity"], top_k=1, hops=1))


@pytest.mark.parametrize(
    ("project", "config", "hops"),
    [
        ({}, {}, {}),
        ({"hops": 1}, {}, {"hops": 1}),
        ({"hops": 1, "options": {"entity": {"hops": 2}}}, {}, {"hops": 2}),
        ({"hops": 1, "options": {"entity": {"hops": 2}}}, {"hops": 3}, {"hops": 3}),
        ({"hops": 1}, {"hops": 3, "options": {"entity": {"hops": 4}}}, {"hops": 4}),
    ],
)
def test_a_run_wins_over_the_project_and_an_option_of_a_strategy_over_hops(project, config, hops):
    plan = plan_for_project({"strategies": ["entity"], **config}, QueryOptions(**project))
    assert plan.options.get("entity", {}) == hops


def test_dates_go_to_the_strategies_that_support_them():
    asked = {"strategies": ["entity", "chunk_embedding"], "active_after": "1905-01-01"}
    assert plan_for_project(asked, QueryOptions()).options == {"entity": {"active_after": "1905-01-01"}}


def test_the_fused_chunks_are_put_in_order_by_the_reranker(run, world, project):
    reranked = project(reranker={"backend": "embedder"})
    result = run(project=reranked, reranker=EmbedderReranker(world.embedder), top_k=2, strategies=["keyword"])
    question, *texts = world.embedder.embed([QUESTION, *(chunk["text"] for chunk in result.output_for_node("reason")["chunks"])])
    scores = [chunk["score"] for chunk in result.output_for_node("reason")["chunks"]]
    assert scores == pytest.approx([float(question @ text) for text in texts])
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)
    assert metadata(result, "rerank")["reranked"] > 2
    assert metadata(result, "rerank")["reranker"] == "hashed-words"
    assert metadata(run(project=reranked, rerank=False), "rerank")["reranked"] == 0
    assert result.output_for_node("reason") == to_json(
        answer(QUESTION, **world.sources, reranker=EmbedderReranker(world.embedder), top_k=2, strategies=["keyword"])
    )


def test_a_reranker_that_was_added_after_the_definitions_were_loaded_is_a_failure(run, project):
    errors = run(project=project(reranker={"backend": "embedder"})).output_for_node("reason")["errors"]
    assert [error["strategy"] for error in errors] == ["rerank"]
    assert "Reload" in errors[0]["error"]


def test_a_reranker_that_can_not_be_loaded_leaves_the_fused_ranking(run, project):
    whole = run(top_k=2).output_for_node("reason")
    result = run(project=project(reranker={"backend": "embedder", "top": 2}), reranker=ExtractionError("no weights"), top_k=2)
    data = result.output_for_node("reason")
    assert data["chunks"] == whole["chunks"]
    assert data["errors"] == [{"strategy": "rerank", "error": "no weights"}]
    assert "no weights" in metadata(result, "rerank")["errors"]


class Probe(Retriever):
    """Records which sources it is given."""

    name = "probe"
    needs = frozenset(("graph",))
    wants = frozenset(("names", "vectors", "llm", "kg"))
    seen: ClassVar[list] = []

    def search(self, question, k):
        self.seen += [self.sources, question]
        return Subgraph()


PROBE = f"{__name__}:Probe"


@pytest.fixture
def probe(monkeypatch):
    monkeypatch.setattr(Probe, "seen", [])
    return Probe.seen


def test_optional_sources_of_a_strategy_are_opened(run, world, probe):
    with scripted_llm(says("hello")) as stub:
        result = run(strategies=[PROBE], llm=chat_model(stub.base_url, "m"))
    sources, question = probe
    assert (sources.graph, sources.vectors, sources.texts, sources.embedder) == (world.graph, world.vectors, None, None)
    assert sources.llm.model == "m"
    assert (sources.kg, sources.cache.name) == (None, "query_cache")
    assert [entity.label for entity in question.entities] == ["Albert Einstein"]
    assert result.output_for_node("reason")["errors"] == []


def test_an_optional_source_that_can_not_be_opened_is_missing(run, probe):
    result = run(strategies=[PROBE], stores={"vector_store": Unreachable()})
    assert probe[0].vectors is None
    assert result.output_for_node("reason")["errors"] == []


def test_a_strategy_without_the_language_model_it_needs_says_what_to_do(run):
    result = run(strategies=["tool", "keyword"])
    error = result.output_for_node("reason")["errors"][0]
    assert error["strategy"] == "tool"
    assert "models.llm in project.yaml" in error["error"]


def test_the_pieces_of_the_answer_are_passed_on(run):
    pieces = []
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub, listening(pieces.append):
        run(llm=chat_model(stub.base_url, "m"))
    assert "".join(pieces) == "In Ulm [1]."


def test_the_usage_of_the_language_model_is_shown(run):
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub:
        shown = metadata(run(llm=chat_model(stub.base_url, "m")), "reason")
    assert (shown["llm requests"], shown["prompt tokens"], shown["completion tokens"]) == (1, 7, 3)


def test_the_models_of_a_project_give_its_reranker():
    models = {"entity_labels": [], "relation_labels": [], "entities": {}, "embedding": {"model": "all-MiniLM-L6-v2"}}
    assert ModelsResource(**models).reranker() is None
    assert ModelsResource(**models, reranking={"backend": "embedder"}).reranker().name == "all-MiniLM-L6-v2"
    named = ModelsResource(**models, reranking={"backend": "cross_encoder", "model": "some/model", "batch_size": 4})
    assert named.reranker().name == "some/model"
