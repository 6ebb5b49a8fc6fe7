"""Strategy "keyword": the chunks that share words with the question."""

from typing import Any, ClassVar, Self

from resources.graph.base import GraphStore
from resources.records import Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.parse import Question
from retrico_assets.query.ranking import around_chunks
from retrico_assets.query.retriever import Need, Retriever, Sources


class KeywordRetriever(Retriever):
    """Chunks by full-text search (BM25), then what they mention and state (``around_chunks``)."""

    name: ClassVar[str] = "keyword"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts"))

    def __init__(self, graph: GraphStore, texts: TextStore) -> None:
        self._graph = graph
        self._texts = texts

    @classmethod
    def from_sources(cls, sources: Sources, options: Any) -> Self:
        assert sources.graph is not None
        assert sources.texts is not None
        return cls(sources.graph, sources.texts)

    def retrieve(self, question: Question, k: int) -> Subgraph:
        return around_chunks(question.text, self._texts.search(question.text, k), self._graph, k)
