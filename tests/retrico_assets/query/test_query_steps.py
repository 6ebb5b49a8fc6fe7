"""The steps of a question: one list for answer() and the job, one policy for errors, sources opened on first use."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from resources.errors import GraphCapabilityError, StoreError
from resources.records import Subgraph
from retrico_assets.query.answer import answer
from retrico_assets.query.answering.render import to_json
from retrico_assets.query.job import make_query_job
from retrico_assets.query.plan import Plan
from retrico_assets.query.retrievers.keyword import KeywordRetriever
from retrico_assets.query.session import QuerySession
from retrico_assets.query.state import QueryState, Retrieved
from retrico_assets.query.step_reports import Markdown
from retrico_assets.query.steps import COLLECT, FUSE, LINK, RERANK, RETRIEVE, STEPS, Step, StrategyStep, run_steps
from tests.support.query_resources import metadata, run_query

QUESTION = "Where was Albert Einstein born?"


def _reversed_chunks(state, session):
    """Put the chunks in reverse order."""
    subgraph = state.subgraph
    return replace(state, subgraph=Subgraph(subgraph.entities, subgraph.relations, subgraph.chunks[::-1]))


def _chunk_report(before, after, session):
    return {"first before": before.subgraph.chunks[0].record.id, "all": Markdown("**all**")}


SECOND_RERANKER = Step("second_rerank", _reversed_chunks, _chunk_report)


def after_step(step, *more):
    place = STEPS.index(step) + 1
    return (*STEPS[:place], *more, *STEPS[place:])


def test_a_further_step_runs_in_answer_and_as_an_op_of_the_job(world):
    steps = after_step(RERANK, SECOND_RERANKER)
    plain = answer(QUESTION, **world.sources, strategies=["keyword"])
    reversed_ = answer(QUESTION, **world.sources, strategies=["keyword"], steps=steps)
    assert len(plain.evidence.chunks) > 1
    ids = [source.chunk.id for source in plain.evidence.chunks]
    assert [source.chunk.id for source in reversed_.evidence.chunks] == ids[::-1]

    run = run_query(world, make_query_job(steps), strategies=["keyword"])
    assert run.output_for_node("reason") == to_json(reversed_)
    shown = metadata(run, "second_rerank")
    assert shown == {"first before": ids[0], "all": "**all**"}


def test_a_step_after_the_last_one_gives_the_result_of_the_job(world):
    def shout(state, session):
        return replace(state, notes=(*state.notes, "HELLO"))

    steps = (*STEPS, Step("shout", shout))
    run = run_query(world, make_query_job(steps), strategies=["keyword"])
    assert run.output_for_node("shout")["notes"] == ["HELLO"]
    assert "HELLO" in metadata(run, "shout")["answer"]


@pytest.mark.parametrize("steps", [(RETRIEVE, *STEPS[3:]), after_step(RETRIEVE, StrategyStep("again", "split", None))])
def test_a_job_needs_a_plain_step_before_one_for_each_strategy(steps):
    with pytest.raises(TypeError, match="must follow a step"):
        make_query_job(steps)


def test_a_further_step_for_each_strategy_runs_in_answer_and_in_the_job(world):
    def count(strategy, state, session):
        return Retrieved(strategy, notes=(f"{strategy} follows {len(state.subgraph.chunks)} chunks",))

    steps = after_step(FUSE, StrategyStep("count", "again", count))
    strategies = ["keyword", "chunk_embedding"]
    result = answer(QUESTION, **world.sources, strategies=strategies, steps=steps, top_k=2)
    assert result.notes == ("keyword follows 2 chunks", "chunk_embedding follows 2 chunks")
    run = run_query(world, make_query_job(steps), strategies=strategies, top_k=2)
    assert run.output_for_node("reason") == to_json(result)
    assert set(run.output_for_node("count")) == set(strategies)


def test_a_step_that_raises_leaves_the_state_and_is_reported_by_its_name(world):
    def breaks(state, session):
        raise ZeroDivisionError("at http://u:CANARY@h")

    steps = after_step(RERANK, Step("breaks", breaks))
    broken, whole = (answer(QUESTION, **world.sources, steps=some) for some in (steps, STEPS))
    assert broken.evidence == whole.evidence
    assert [failure.strategy for failure in broken.failures] == ["breaks"]
    assert "ZeroDivisionError" in broken.failures[0].error
    assert "CANARY" not in broken.failures[0].error
    run = run_query(world, make_query_job(steps))
    assert run.success
    assert run.output_for_node("reason") == to_json(broken)
    assert "ZeroDivisionError" in metadata(run, "breaks")["errors"]


def test_a_project_without_graph_retrieval_is_an_error_and_no_failure(world):
    def refuses(state, session):
        raise GraphCapabilityError("no provider")

    with pytest.raises(GraphCapabilityError):
        answer(QUESTION, **world.sources, steps=after_step(RERANK, Step("refuses", refuses)))


def test_names_that_can_not_be_looked_up_are_reported_by_the_strategies_that_need_them():
    def down(stack):
        raise StoreError("the graph is down")

    session = QuerySession({"graph": down})
    state = LINK.apply(QueryState.begin(QUESTION, Plan(("entity",))), session)
    assert state.failures == ()
    assert state.question.fault == "the names in the question could not be looked up: the graph is down"


def test_without_the_text_store_chunks_are_kept_without_their_documents(world):
    def down(stack):
        raise StoreError("the texts are down")

    found = run_steps(STEPS[:5], QueryState.begin(QUESTION, Plan(("keyword",))), QuerySession(given=world.sources))
    state = COLLECT.apply(found, QuerySession({"texts": down}, {"graph": world.graph}))
    assert [source.chunk for source in state.evidence.chunks] == [scored.record for scored in found.subgraph.chunks]
    assert {(source.source, source.title) for source in state.evidence.chunks} == {("", "")}
    assert [(failure.strategy, failure.error) for failure in state.failures] == [("collect", "the texts are down")]


class Counted:
    """A source that counts how often it is opened and closed."""

    def __init__(self, error=None):
        self.opened = self.closed = 0
        self._error = error

    @contextmanager
    def connect(self):
        self.opened += 1
        if self._error:
            raise self._error
        yield self
        self.closed += 1


def opener(source):
    return lambda stack: stack.enter_context(source.connect())


def test_a_source_is_opened_by_its_first_use_and_closed_at_the_end():
    graph, texts = Counted(), Counted()
    with QuerySession({"graph": opener(graph), "texts": opener(texts)}) as session:
        assert session.open("texts") is session.open("texts") is texts
        assert session.already_open("texts") is texts
        assert session.already_open("graph") is None
        assert (texts.opened, texts.closed) == (1, 0)
    assert (texts.opened, texts.closed) == (1, 1)
    assert graph.opened == 0


def test_a_source_that_fails_to_close_is_a_warning():
    warnings = []

    def closes_badly(stack):
        def close():
            raise StoreError("the disk is full")

        stack.callback(close)

    with QuerySession({"graph": closes_badly}, warn=warnings.append) as session:
        session.open("graph")
    assert warnings == ["closing the stores failed: the disk is full"]


def test_a_given_source_is_not_closed_and_an_unknown_one_is_none():
    graph = Counted()
    with QuerySession(given={"graph": graph}) as session:
        assert session.open("graph") is graph
        assert session.open("llm") is None
    assert graph.closed == 0


def test_a_source_that_can_not_be_opened_is_tried_once():
    graph = Counted(StoreError("down"))
    warnings = []
    session = QuerySession({"graph": opener(graph)}, warn=warnings.append)
    for _ in range(2):
        with pytest.raises(StoreError, match="down"):
            session.open("graph")
    assert session.open_optional("graph", "collect") is None
    assert graph.opened == 1
    assert warnings == ["collect continues without graph: down"]


def test_a_strategy_gets_the_sources_that_it_names(world):
    sources = QuerySession(given=world.sources).sources_for(KeywordRetriever)
    assert sources.texts is world.texts
    assert sources.embedder is None
