"""What every retriever does, and how one is found by name."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.models.embedder import Embedder
from resources.records import Subgraph
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.query.parse import Question

Need = Literal["names", "graph", "texts", "vectors", "embedder"]

RETRIEVERS: dict[str, str] = {
    "entity": "retrico_assets.query.entity:EntityRetriever",
    "chunk_embedding": "retrico_assets.query.chunk_embedding:ChunkEmbeddingRetriever",
    "keyword": "retrico_assets.query.keyword:KeywordRetriever",
}
"""Where the class of each strategy is. A strategy of one's own is added here."""

MOST_HOPS = 10
MOST_RESULTS = 1000


@dataclass(frozen=True, slots=True)
class Sources:
    """What retrievers draw on. Only what a strategy says it needs has to be there."""

    graph: GraphStore | None = None
    texts: TextStore | None = None
    vectors: VectorStore | None = None
    embedder: Embedder | None = None
    hops: int = 2


class Retriever(ABC):
    """One way to find what answers a question."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]]
    """Which sources it uses; "names" means the entities that the question names."""

    @classmethod
    @abstractmethod
    def from_sources(cls, sources: Sources) -> Self:
        """Make the retriever from those of the sources that it needs."""

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


def make_retriever(name: str, sources: Sources) -> Retriever:
    """The retriever of that name. SettingsError for an unknown name, or when a source that it needs is missing."""
    kind = retriever_class(name)
    missing = sorted(need for need in kind.needs - {"names"} if getattr(sources, need) is None)
    if missing:
        raise SettingsError(f"strategy {name!r} needs {', '.join(missing)}; give it, or leave the strategy out")
    return kind.from_sources(sources)


def check_strategies(names: Sequence[str]) -> tuple[str, ...]:
    """The names in order, each once. SettingsError, listing the known ones, for an unknown name, and for none."""
    known = ", ".join(sorted(RETRIEVERS))
    if isinstance(names, str) or not names:
        raise SettingsError(f"strategies must be a list of names, got {names!r}; known are: {known}")
    unknown = [name for name in names if name not in RETRIEVERS]
    if unknown:
        raise SettingsError(f"unknown strategy {', '.join(map(repr, unknown))}; known are: {known}")
    return tuple(dict.fromkeys(names))


def check_limits(top_k: int, hops: int) -> None:
    """SettingsError unless 1 <= top_k <= MOST_RESULTS and 0 <= hops <= MOST_HOPS."""
    if not 1 <= top_k <= MOST_RESULTS:
        raise SettingsError(f"top_k is {top_k}; it must be from 1 to {MOST_RESULTS}")
    if not 0 <= hops <= MOST_HOPS:
        raise SettingsError(f"hops is {hops}; it must be from 0 to {MOST_HOPS}")
