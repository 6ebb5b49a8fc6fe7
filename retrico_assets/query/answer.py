"""A question and its answer in plain Python. The op job of job.py takes the same steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.errors import GraphCapabilityError, SettingsError
from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor
from resources.models.embedders.sentence_transformer import Embedder
from resources.models.llm.client import ChatModel
from resources.models.rerankers.cross_encoder import Reranker
from resources.records import Subgraph
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.query.answering.evidence import Answer, ChunkSource, Evidence, QueryResult, check_collection, collect
from retrico_assets.query.answering.reason import TOKEN_BUDGET, reason
from retrico_assets.query.failures import Failure, explain
from retrico_assets.query.options import FusionOptions
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question, parse
from retrico_assets.query.rerank import RERANKED, rerank
from retrico_assets.query.retrievers.base import (
    Retriever,
    Sources,
    TripleScorer,
    check_limits,
    check_options,
    check_strategies,
    make_retriever,
    retriever_class,
)
from retrico_assets.query.retrievers.fusion import DEFAULT_FUSION, fuse

DEFAULT_STRATEGIES = ("pagerank",)

StrategyOptions = Mapping[str, Mapping[str, Any]]
"""Options by strategy."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is answered, once it is checked. ``reranked`` chunks are read by the reranker, 0 without one."""

    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    options: StrategyOptions = field(default_factory=dict)
    fusion: FusionOptions = DEFAULT_FUSION
    top_k: int = 10
    reranked: int = 0
    chunk_source: ChunkSource = "all"

    def __post_init__(self) -> None:
        """SettingsError for what is unknown, out of range or contradictory."""
        check_strategies(self.strategies)
        check_limits(self.top_k, None)
        if self.fusion.weights:
            check_strategies(list(self.fusion.weights))
        self.fusion.check_for(self.strategies)
        for name, options in self.options.items():
            check_options(name, options)
        if self.reranked < 0:
            raise SettingsError(f"the reranker is to read {self.reranked} chunks; it must be 0 or more")
        check_collection(self.chunk_source, True, None, self.top_k)

    @property
    def depth(self) -> int:
        """How far down each strategy looks: the reranker needs something to choose from."""
        return max(self.top_k, self.reranked)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one strategy found, or why it found nothing; ``notes``: what a reader must know of it."""

    strategy: str
    subgraph: Subgraph
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


def answer(
    question: str,
    *,
    graph: GraphStore,
    texts: TextStore,
    vectors: VectorStore | None = None,
    embedder: Embedder | None = None,
    extractor: EntityExtractor | None = None,
    llm: ChatModel | None = None,
    kg: TripleScorer | None = None,
    cache: Path | None = None,
    reranker: Reranker | None = None,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    options: StrategyOptions | None = None,
    fusion: FusionOptions = DEFAULT_FUSION,
    top_k: int = 10,
    hops: int | None = None,
    rerank_top: int = RERANKED,
    chunk_source: ChunkSource = "all",
    token_budget: int = TOKEN_BUDGET,
    on_text: Callable[[str], None] | None = None,
) -> QueryResult:
    """Answer a question from what was built.

    Each strategy finds ``top_k`` entities, relations and chunks, several are fused, the best ``rerank_top`` chunks are put in
    order by ``reranker``, if there is one, and ``llm``, if there is one, writes an answer from the chunks (``on_text`` gets it
    as it is written). ``options`` are those of each strategy, ``hops`` goes to every strategy that has such an option and
    is not given it there. ``chunk_source`` says whose chunks are collected. A strategy that fails is reported in the
    result and the others answer. SettingsError for an unknown strategy or option and for numbers out of range,
    GraphCapabilityError when strategy "graph" is asked for and no provider serves; nothing else is raised.
    """
    names = check_strategies(strategies)
    check_limits(top_k, hops)
    chosen = merged_options(names, [({"hops": hops}, options or {})])
    plan = Plan(names, chosen, fusion, top_k, rerank_top if reranker else 0, chunk_source)
    named = needs_names(names)
    asked, failures = parse(question, extractor if named else None)
    if named:
        asked = linked(asked, graph)
    sources = Sources(graph, texts, vectors, embedder, llm, kg, cache)
    found = [retrieve(name, asked, sources, plan) for name in names]
    subgraph = merge(found, plan)
    failures += failures_of(found)
    if reranker is not None:
        subgraph, problems = rerank(asked.text, subgraph, reranker, top_k)
        failures += problems
    evidence, problems = collect(subgraph, texts, graph, source=chunk_source, max_chunks=top_k)
    told = reason(asked.text, evidence, llm, token_budget=token_budget, on_text=on_text) if llm else Answer()
    return result_of(asked, names, evidence, failures + problems, notes_of(found), told)


def result_of(
    question: Question,
    strategies: tuple[str, ...],
    evidence: Evidence,
    failures: tuple[Failure, ...],
    notes: tuple[str, ...],
    told: Answer,
) -> QueryResult:
    """Evidence and answer together, with all that went wrong on the way."""
    return QueryResult(
        question.text,
        strategies,
        told.text,
        evidence,
        failures + told.failures,
        told.state,
        told.inferred,
        notes + told.notes,
        told.usage,
    )


def merged_options(
    strategies: Sequence[str], layers: Sequence[tuple[Mapping[str, Any], StrategyOptions]]
) -> dict[str, dict[str, Any]]:
    """The options of each strategy, from layers of shared options (None: not said) and options by strategy.

    A later layer wins; in a layer, what is said for one strategy wins over what is shared by all that have such an option.
    SettingsError for options of a strategy that is not asked.
    """
    for _, own in layers:
        if strangers := [name for name in own if name not in strategies]:
            raise SettingsError(
                f"options for {', '.join(map(repr, strangers))}, but the strategies asked are: {', '.join(strategies)}"
            )
    merged: dict[str, dict[str, Any]] = {}
    for name in strategies:
        chosen: dict[str, Any] = {}
        for shared, own in layers:
            chosen |= {option: value for option, value in shared.items() if value is not None and has_option(name, option)}
            options = own.get(name, {})
            if not isinstance(options, Mapping):
                raise SettingsError(f"options of strategy {name!r} must be names and values, got {options!r}")
            chosen |= options
        if chosen:
            merged[name] = chosen
    return merged


def has_option(strategy: str, option: str) -> bool:
    """Whether the strategy has an option of that name."""
    return option in retriever_class(strategy).options.model_fields


def needs_names(strategies: Sequence[str]) -> bool:
    """Whether any of the strategies makes use of the entities that the question names."""
    kinds = [retriever_class(name) for name in strategies]
    return any("names" in kind.needs | kind.wants for kind in kinds)


def linked(question: Question, graph: GraphStore) -> Question:
    """``link``, a store that fails being noted in the question, for the strategies that need its entities to report."""
    try:
        return link(question, graph)
    except Exception as error:  # any driver's error: strategies without need of the names still answer
        return unlinked(question, error)


def unlinked(question: Question, error: Exception) -> Question:
    """The question, its entities being unknown because of an error."""
    return Question(question.text, question.mentions, fault=f"the question's names could not be looked up: {explain(error)}")


def retrieve(strategy: str, question: Question, sources: Sources, plan: Plan) -> Retrieved:
    """Let one strategy look; whatever it raises becomes its failure."""
    try:
        retriever = make_retriever(strategy, sources, plan.options.get(strategy))
        found = retriever.retrieve(question, plan.depth)
        return Retrieved(strategy, found, notes=_caveats(retriever, sources, found))
    except GraphCapabilityError:
        raise  # the project is not set up for graph retrieval: no other strategy stands in for it
    except Exception as error:  # a strategy may fail in any way, and the others still answer
        return Retrieved(strategy, Subgraph(), Failure(strategy, explain(error)))


def merge(found: Sequence[Retrieved], plan: Plan) -> Subgraph:
    """Fuse what the strategies that could look have found."""
    looked = {one.strategy: one.subgraph for one in found if one.failure is None}
    return fuse(looked, plan.top_k, plan.fusion, most_chunks=plan.depth)


def failures_of(found: Sequence[Retrieved]) -> tuple[Failure, ...]:
    return tuple(one.failure for one in found if one.failure is not None)


def notes_of(found: Sequence[Retrieved]) -> tuple[str, ...]:
    """What the strategies want said, each once."""
    return tuple(dict.fromkeys(note for one in found for note in one.notes))


def _caveats(retriever: Retriever, sources: Sources, found: Subgraph) -> tuple[str, ...]:
    """Of the KG model, from the strategies that use it."""
    if sources.kg is None or sources.graph is None or "kg" not in retriever.needs | retriever.wants:
        return ()
    return tuple(sources.kg.caveats(sources.graph.revision(), {one.record.id: one.record.label for one in found.entities}))
