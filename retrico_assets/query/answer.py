"""A question and its answer in plain Python. The op job of job.py takes the same steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor
from resources.models.embedder import Embedder
from resources.models.llm import ChatModel
from resources.records import Subgraph
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.query.evidence import QueryResult, collect
from retrico_assets.query.fuse import fuse
from retrico_assets.query.parse import Failure, Question, explain, link, parse
from retrico_assets.query.reason import reason
from retrico_assets.query.retriever import Sources, check_limits, check_strategies, make_retriever, retriever_class

DEFAULT_STRATEGIES = ("entity", "chunk_embedding", "keyword")


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one strategy found, or why it found nothing."""

    strategy: str
    subgraph: Subgraph
    failure: Failure | None = None


def answer(
    question: str,
    *,
    graph: GraphStore,
    texts: TextStore,
    vectors: VectorStore | None = None,
    embedder: Embedder | None = None,
    extractor: EntityExtractor | None = None,
    llm: ChatModel | None = None,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    top_k: int = 10,
    hops: int = 2,
) -> QueryResult:
    """Answer a question from what was built.

    Each strategy finds ``top_k`` entities, relations and chunks, several are fused, and ``llm``, if there is one, writes an
    answer from the chunks. A strategy that fails is reported in the result and the others answer. SettingsError for an
    unknown strategy and for numbers out of range; nothing else is raised.
    """
    names = check_strategies(strategies)
    check_limits(top_k, hops)
    named = needs_names(names)
    asked, failures = parse(question, extractor if named else None)
    if named:
        asked = linked(asked, graph)
    sources = Sources(graph, texts, vectors, embedder, llm)
    found = [retrieve(name, asked, sources, top_k, with_hops(name, hops)) for name in names]
    evidence, problems = collect(merge(found, top_k), texts)
    failures += failures_of(found) + problems
    text: str | None = None
    if llm is not None:
        text, problems = reason(asked.text, evidence, llm)
        failures += problems
    return QueryResult(asked.text, names, text, evidence, failures)


def needs_names(strategies: Sequence[str]) -> bool:
    """Whether any of the strategies starts from the entities that the question names."""
    return any("names" in retriever_class(name).needs for name in strategies)


def linked(question: Question, graph: GraphStore) -> Question:
    """``link``, a store that fails being noted in the question, for the strategies that need its entities to report."""
    try:
        return link(question, graph)
    except Exception as error:  # any driver's error: strategies without need of the names still answer
        return unlinked(question, error)


def unlinked(question: Question, error: Exception) -> Question:
    """The question, its entities being unknown because of an error."""
    return Question(question.text, question.mentions, fault=f"the question's names could not be looked up: {explain(error)}")


def with_hops(strategy: str, hops: int) -> dict[str, Any]:
    """``hops`` as an option of the strategies that have it."""
    return {"hops": hops} if "hops" in retriever_class(strategy).options.model_fields else {}


def retrieve(
    strategy: str, question: Question, sources: Sources, top_k: int, options: Mapping[str, Any] | None = None
) -> Retrieved:
    """Let one strategy look; whatever it raises becomes its failure."""
    try:
        return Retrieved(strategy, make_retriever(strategy, sources, options).retrieve(question, top_k))
    except Exception as error:  # a strategy may fail in any way, and the others still answer
        return Retrieved(strategy, Subgraph(), Failure(strategy, explain(error)))


def merge(found: Sequence[Retrieved], top_k: int) -> Subgraph:
    """Fuse what the strategies that could look have found."""
    return fuse([one.subgraph for one in found if one.failure is None], top_k)


def failures_of(found: Sequence[Retrieved]) -> tuple[Failure, ...]:
    return tuple(one.failure for one in found if one.failure is not None)
