"""The op job `query`: the same answer as plain Python gives, each step visible, a failing strategy no failing run."""

import pickle
from contextlib import nullcontext

import dagster as dg
import pytest
from llm_stub import says, scripted_llm

from resources.errors import StoreError
from resources.models.llm import ChatModel
from retrico_assets.query.answer import answer
from retrico_assets.query.evidence import to_json
from retrico_assets.query.job import query_job

QUESTION = "Where was Albert Einstein born?"


class Given:
    """A store resource: hands out a store that the test keeps open."""

    def __init__(self, store):
        self._store = store

    def connect(self):
        return nullcontext(self._store)


class Unreachable:
    def connect(self):
        raise StoreError("the store at redis://u:CANARY@h can't be reached; start it")


class Models:
    """A models resource, with an embedder and perhaps a language model."""

    context_tokens = 3000

    def __init__(self, embedder, llm=None):
        self._embedder = embedder
        self._llm = llm

    def entity_extractor(self):
        return None

    def embedder(self):
        return self._embedder

    def llm(self):
        return self._llm


def run(world, llm=None, raise_on_error=True, question=QUESTION, stores=None, **config):
    resources = {
        "graph_store": Given(world.graph),
        "text_store": Given(world.texts),
        "vector_store": Given(world.vectors),
        "models": Models(world.embedder, llm),
    } | (stores or {})
    job = dg.Definitions(jobs=[query_job], resources=resources).resolve_job_def("query")
    run_config = {"ops": {"parse_question": {"config": {"question": question, **config}}}}
    return job.execute_in_process(run_config, raise_on_error=raise_on_error)


def metadata(result, node):
    outputs = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT" and event.node_name == node]
    return {name: entry.value for event in outputs for name, entry in event.event_specific_data.metadata.items()}


def test_the_job_gives_what_plain_python_gives(world):
    result = run(world, top_k=5, hops=1)
    assert result.success
    assert result.output_for_node("reason") == to_json(answer(QUESTION, **world.sources, top_k=5, hops=1))


def test_the_answer_and_its_evidence_are_shown_as_markdown(world):
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub:
        result = run(world, llm=ChatModel(stub.base_url, "m", None))
    shown = metadata(result, "reason")["answer"]
    assert "In Ulm [1]." in shown
    assert "> Albert Einstein was born in Ulm." in shown
    assert result.output_for_node("reason")["answer"] == "In Ulm [einstein.txt#0]."


def test_each_step_shows_what_it_did(world):
    result = run(world)
    assert "Albert Einstein" in metadata(result, "link")["linked"]
    assert metadata(result, "retrieve")["chunks"] > 0
    assert "born in" in metadata(result, "fuse")["top relations"]
    assert "einstein.txt" in metadata(result, "collect")["chunk texts"]


def test_every_strategy_is_a_step(world):
    result = run(world, strategies=["entity", "keyword"])
    assert set(result.output_for_node("retrieve")) == {"entity", "keyword"}


def test_a_failing_strategy_is_shown_and_the_run_goes_on(world):
    result = run(world, stores={"vector_store": Unreachable()})
    assert result.success
    data = result.output_for_node("reason")
    assert [error["strategy"] for error in data["errors"]] == ["chunk_embedding"]
    assert data["chunks"][0]["text"] == "Albert Einstein was born in Ulm."
    assert "chunk\\_embedding" in metadata(result, "fuse")["errors"]
    assert "CANARY" not in str(result.all_events)


def test_a_strategy_opens_only_what_it_needs(world):
    result = run(world, strategies=["keyword"], stores={"vector_store": Unreachable(), "models": Models(None)})
    assert result.output_for_node("reason")["errors"] == []


def test_stores_that_are_all_down_leave_a_result_that_says_so(world):
    down = dict.fromkeys(("graph_store", "text_store", "vector_store"), Unreachable())
    result = run(world, stores=down)
    assert result.success
    errors = result.output_for_node("reason")["errors"]
    assert {error["strategy"] for error in errors} == {"entity", "chunk_embedding", "keyword", "collect"}


@pytest.mark.parametrize("config", [{"strategies": ["nope"]}, {"strategies": []}, {"top_k": 0}, {"hops": -1}])
def test_a_wrong_config_fails_the_run(world, config):
    with pytest.raises(dg.Failure, match=r"must be|known are"):
        run(world, **config)


@pytest.mark.parametrize("question", ["", "🤔", "東京はどこですか", "the of"])
def test_any_question_runs(world, question):
    assert run(world, question=question).output_for_node("reason")["errors"] == []


def test_what_steps_hand_on_is_small_plain_data(world):
    """OPEN-47, the part of the query: no store, client or model goes from step to step."""
    result = run(world)
    for node in ("parse_question", "link", "retrieve", "fuse", "collect", "reason"):
        value = result.output_for_node(node)
        data = pickle.dumps(value)
        assert pickle.loads(data) == value
        assert len(data) < 20_000
