"""Strategy "keyword": the chunks that share words with the question."""

from typing import ClassVar, Literal, Self

from resources.graph.base import GraphStore
from resources.records import Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Need, Options, Retriever, Sources
from retrico_assets.query.retrievers.ranking import around_chunks


class KeywordOptions(Options):
    """Which full-text index is asked, and whether to add what the chunks mention and state."""

    source: Literal["texts", "graph"] = "texts"
    expand: bool = True


class KeywordRetriever(Retriever):
    """Chunks by full-text search, the question taken as written; with ``expand`` what they mention and state (``around_chunks``).

    ``source`` is the text store, or the graph's own index of the same chunks.
    """

    name: ClassVar[str] = "keyword"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts"))
    options = KeywordOptions

    def __init__(
        self, graph: GraphStore, texts: TextStore, *, source: Literal["texts", "graph"] = "texts", expand: bool = True
    ) -> None:
        self._graph = graph
        self._texts = texts
        self._source = source
        self._expand = expand

    @classmethod
    def from_sources(cls, sources: Sources, options: KeywordOptions) -> Self:
        assert sources.graph is not None
        assert sources.texts is not None
        return cls(sources.graph, sources.texts, source=options.source, expand=options.expand)

    def retrieve(self, question: Question, k: int) -> Subgraph:
        search = self._texts.search if self._source == "texts" else self._graph.search_chunks
        chunks = search(question.text, k)
        return around_chunks(question.text, chunks, self._graph, k) if self._expand else Subgraph(chunks=tuple(chunks[:k]))
