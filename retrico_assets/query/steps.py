"""The steps of a question, in order. ``answer()``, the job ``query`` and the evaluation all run this list.

A further step is a function from a state to the next one, and a ``Step`` in ``STEPS``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from resources.errors import SettingsError
from resources.records import Subgraph
from resources.text.characters import is_blank
from retrico_assets.query import step_reports as reports
from retrico_assets.query.answering.collect import collect, evidence_of
from retrico_assets.query.answering.reason import reason
from retrico_assets.query.failures import Failure, failure_of
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import find_mentions
from retrico_assets.query.rerank import rerank
from retrico_assets.query.retrievers.base import make_retriever, retriever_class
from retrico_assets.query.retrievers.fusion import fuse
from retrico_assets.query.session import QuerySession
from retrico_assets.query.sources import Sources
from retrico_assets.query.state import QueryState, Retrieved
from retrico_assets.query.step_reports import StepReport, StrategyReport


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a question.

    ``run`` makes the next state from a state and the sources of the session. If it raises, ``recover`` makes the next state
    from the state before and the failure. ``report`` says what the UI shows of the step.
    """

    name: str
    run: Callable[[QueryState, QuerySession], QueryState]
    report: StepReport = reports.no_report
    recover: Callable[[QueryState, Failure], QueryState] = QueryState.with_failures

    def apply(self, state: QueryState, session: QuerySession) -> QueryState:
        """The state after this step."""
        try:
            return self.run(state, session)
        except Exception as error:  # the failure of one step must not take away what the others found
            return self.recover(state, failure_of(self.name, error))


@dataclass(frozen=True, slots=True)
class StrategyStep:
    """A step that runs once for each strategy of the plan, always from the same state: in the UI, an op for each.

    ``split`` names the op that starts them.
    """

    name: str
    split: str
    run: Callable[[str, QueryState, QuerySession], Retrieved]
    report: StrategyReport = reports.no_strategy_report

    def apply(self, state: QueryState, session: QuerySession) -> QueryState:
        """The state after this step."""
        return state.with_retrieved(self.apply_to(strategy, state, session) for strategy in state.plan.strategies)

    def apply_to(self, strategy: str, state: QueryState, session: QuerySession) -> Retrieved:
        """What one strategy found, or why it failed."""
        try:
            return self.run(strategy, state, session)
        except Exception as error:  # the other strategies still answer
            return Retrieved(strategy, failure=failure_of(strategy, error))


AnyStep = Step | StrategyStep


def run_steps(steps: Sequence[AnyStep], state: QueryState, session: QuerySession) -> QueryState:
    """The state after all steps."""
    for step in steps:
        state = step.apply(state, session)
    return state


def parse_question(state: QueryState, session: QuerySession) -> QueryState:
    """Find the entities that the question mentions, with the project's entity extractor."""
    if not state.plan.uses_names or is_blank(state.question.text):
        return state
    extractor = session.open("extractor")
    return replace(state, question=find_mentions(state.question, extractor)) if extractor else state


def link_names(state: QueryState, session: QuerySession) -> QueryState:
    """Find the entities of the graph that the question names."""
    if not state.plan.uses_names:
        return state
    return replace(state, question=link(state.question, session.open("graph")))


def without_names(state: QueryState, failure: Failure) -> QueryState:
    """The state when the names could not be looked up: the strategies that need them report it."""
    fault = f"the names in the question could not be looked up: {failure.error}"
    return replace(state, question=replace(state.question, entities=(), fault=fault))


def retrieve(strategy: str, state: QueryState, session: QuerySession) -> Retrieved:
    """Find entities, relations and chunks with one strategy. If it fails, the others still answer."""
    sources = session.sources_for(retriever_class(strategy))
    retriever = make_retriever(strategy, sources, state.plan.options.get(strategy))
    subgraph = retriever.retrieve(state.question, state.plan.depth)
    return Retrieved(strategy, subgraph, notes=_caveats(sources, subgraph))


def fuse_rankings(state: QueryState, session: QuerySession) -> QueryState:
    """Make one ranking of what the strategies found."""
    plan = state.plan
    rankings = {result.strategy: result.subgraph for result in state.retrieved if result.failure is None}
    return replace(state, retrieved=(), subgraph=fuse(rankings, plan.top_k, plan.fusion, most_chunks=plan.depth))


def rerank_chunks(state: QueryState, session: QuerySession) -> QueryState:
    """Put the best chunks in order with the project's reranker, if it has one."""
    if not state.plan.reranked:
        return state
    reranker = session.open("reranker")
    if reranker is None:
        raise SettingsError("The project has had no reranker since its definitions were loaded. Reload them.")
    return replace(state, subgraph=rerank(state.question.text, state.subgraph, reranker, state.plan.top_k))


def collect_evidence(state: QueryState, session: QuerySession) -> QueryState:
    """Choose the chunks that count, and look up the document that each comes from."""
    plan = state.plan
    texts, graph = session.open("texts"), session.open_optional("graph", "collect")
    evidence, failures = collect(state.subgraph, texts, graph, source=plan.chunk_source, max_chunks=plan.top_k)
    return replace(state, evidence=evidence).with_failures(*failures)


def evidence_without_documents(state: QueryState, failure: Failure) -> QueryState:
    """The state when the text store is not available: the chunks are known, the documents that they come from are not."""
    evidence = evidence_of(state.subgraph, state.subgraph.chunks[: state.plan.top_k], {})
    return replace(state, evidence=evidence).with_failures(failure)


def write_answer(state: QueryState, session: QuerySession) -> QueryState:
    """Let the language model, if the project has one, answer from the evidence."""
    llm = session.open("llm")
    if llm is None:
        return state
    budget = state.plan.token_budget
    return state.with_answer(reason(state.question.text, state.evidence, llm, token_budget=budget, on_text=session.on_text))


def _caveats(sources: Sources, subgraph: Subgraph) -> tuple[str, ...]:
    """What to know of the results of a strategy that uses the KG model."""
    if sources.kg is None or sources.graph is None:
        return ()
    names = {entity.record.id: entity.record.label for entity in subgraph.entities}
    return tuple(sources.kg.caveats(sources.graph.revision(), names))


PARSE = Step("parse_question", parse_question, reports.mentions)
LINK = Step("link", link_names, reports.named_entities, recover=without_names)
RETRIEVE = StrategyStep("retrieve", "strategies", retrieve, reports.strategy_results)
FUSE = Step("fuse", fuse_rankings, reports.fused_results)
RERANK = Step("rerank", rerank_chunks, reports.reranked_chunks)
COLLECT = Step("collect", collect_evidence, reports.evidence_chunks, recover=evidence_without_documents)
REASON = Step("reason", write_answer, reports.answer_usage)

STEPS: tuple[AnyStep, ...] = (PARSE, LINK, RETRIEVE, FUSE, RERANK, COLLECT, REASON)
