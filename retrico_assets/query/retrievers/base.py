"""What every retriever does, and how one is found by name."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.models.embedders.sentence_transformer import Embedder
from resources.models.llm.client import ChatModel
from resources.records import Subgraph
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.query.question.question import Question
from retrico_assets.settings import ProjectSettings

Need = Literal["names", "graph", "texts", "vectors", "embedder", "llm", "kg"]

RETRIEVERS: dict[str, str] = {
    "entity": "retrico_assets.query.retrievers.entity:EntityRetriever",
    "community": "retrico_assets.query.retrievers.community:CommunityRetriever",
    "chunk_embedding": "retrico_assets.query.retrievers.chunk_embedding:ChunkEmbeddingRetriever",
    "entity_embedding": "retrico_assets.query.retrievers.entity_embedding:EntityEmbeddingRetriever",
    "tool": "retrico_assets.query.retrievers.tool:ToolRetriever",
    "path": "retrico_assets.query.retrievers.path:PathRetriever",
    "kg_scored": "retrico_assets.query.retrievers.kg_scored:KGScoredRetriever",
    "keyword": "retrico_assets.query.retrievers.keyword:KeywordRetriever",
    "graph": "retrico_assets.query.retrievers.graph:GraphRetriever",
    "hybrid": "retrico_assets.query.retrievers.hybrid:HybridRetriever",
    "pagerank": "retrico_assets.query.retrievers.pagerank:PageRankRetriever",
}
"""Where the class of each strategy is. A strategy of one's own is added here."""

MOST_HOPS = 10
MOST_RESULTS = 1000

_REMEDIES = {"llm": "name a language model (models.llm in project.yaml)"}


class TripleScorer(Protocol):
    """A trained KG model, as the query room uses it. Entities go by id, relations by label, scores are 0 to 1."""

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float | None]:
        """How plausible each (head, relation, tail) is; None where the model does not know an entity or the relation."""

    def predict(self, head: str | None, relation: str, tail: str | None, k: int) -> list[tuple[str, str, str, float]]:
        """The ``k`` most plausible completions of a pattern with one open end; none for what the model does not know."""

    def caveats(self, revision: str, entities: Mapping[str, str]) -> list[str]:
        """What a reader must know of its scores of these entities (names by id) in a graph of this revision."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What retrievers draw on. Only what a strategy says it needs has to be there."""

    graph: GraphStore | None = None
    texts: TextStore | None = None
    vectors: VectorStore | None = None
    embedder: Embedder | None = None
    llm: ChatModel | None = None
    kg: TripleScorer | None = None
    cache: Path | None = None
    """A folder of the project for what a retriever keeps between processes."""
    project: ProjectSettings | None = None
    """Says which graph provider serves; without it the graph store given here does."""


class Options(BaseModel):
    """Settings of one strategy; each retriever that has any extends this."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Retriever(ABC):
    """One way to find what answers a question."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]]
    """Which sources it can't do without; "names" means the entities that the question names."""
    wants: ClassVar[frozenset[Need]] = frozenset()
    """Which sources it uses when the project has them."""
    options: ClassVar[type[Options]] = Options

    @classmethod
    @abstractmethod
    def from_sources(cls, sources: Sources, options: Any) -> Self:
        """Make the retriever from those of the sources that it needs, ``options`` being an instance of ``cls.options``."""

    @abstractmethod
    def retrieve(self, question: Question, k: int) -> Subgraph:
        """The best ``k`` entities, relations and chunks, ranked, each once, with finite scores.

        The ends of the relations kept are always among the entities: those that ``k`` would cut are appended.
        Nothing found is an empty result; an error means that the strategy could not look.
        """


def retriever_class(name: str) -> type[Retriever]:
    """The class of a strategy. SettingsError, listing the known ones, for an unknown name."""
    check_strategies([name])
    module, _, attribute = RETRIEVERS[name].partition(":")
    found: type[Retriever] = getattr(importlib.import_module(module), attribute)
    return found


def make_retriever(name: str, sources: Sources, options: Mapping[str, Any] | None = None) -> Retriever:
    """The retriever of that name.

    SettingsError for an unknown name, for options that it does not take, and when a source that it needs is missing.
    """
    kind = retriever_class(name)
    chosen = check_options(name, options or {})
    missing = sorted(need for need in kind.needs - {"names"} if getattr(sources, need) is None)
    if missing:
        remedies = [_REMEDIES.get(need, f"give {need}") for need in missing]
        raise SettingsError(f"strategy {name!r} needs {', '.join(missing)}: {', '.join(remedies)}, or leave the strategy out")
    return kind.from_sources(sources, chosen)


def check_options(name: str, options: Mapping[str, Any]) -> Options:
    """The options of a strategy. SettingsError that names the strategy, the option, its fault and what is known."""
    kind = retriever_class(name).options
    try:
        return kind.model_validate(dict(options))
    except ValidationError as error:
        known = ", ".join(kind.model_fields) or "none"
        faults = "; ".join(
            ": ".join(filter(None, [".".join(map(str, e["loc"])), _fault(e["type"], e["msg"])]))
            for e in error.errors(include_input=False, include_url=False)
        )
        raise SettingsError(f"options of strategy {name!r}: {faults}; known options: {known}") from None


def _fault(kind: str, message: str) -> str:
    return "unknown option" if kind == "extra_forbidden" else message.removeprefix("Value error, ")


def check_strategies(names: Sequence[str]) -> tuple[str, ...]:
    """The names in order, each once. SettingsError, listing the known ones, for an unknown name, and for none."""
    known = ", ".join(sorted(RETRIEVERS))
    if isinstance(names, str) or not names:
        raise SettingsError(f"strategies must be a list of names, got {names!r}; known are: {known}")
    unknown = [name for name in names if name not in RETRIEVERS]
    if unknown:
        raise SettingsError(f"unknown strategy {', '.join(map(repr, unknown))}; known are: {known}")
    return tuple(dict.fromkeys(names))


def check_limits(top_k: int, hops: int | None) -> None:
    """SettingsError unless 1 <= top_k <= MOST_RESULTS and 0 <= hops <= MOST_HOPS (None: each strategy's own)."""
    if not 1 <= top_k <= MOST_RESULTS:
        raise SettingsError(f"top_k is {top_k}; it must be from 1 to {MOST_RESULTS}")
    if hops is not None and not 0 <= hops <= MOST_HOPS:
        raise SettingsError(f"hops is {hops}; it must be from 0 to {MOST_HOPS}")
