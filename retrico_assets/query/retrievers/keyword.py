"""Strategy "keyword": the chunks that share words with the question."""

from typing import ClassVar, Literal

from resources.options import Options
from resources.records import Subgraph
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.retrievers.ranking import around_chunks
from retrico_assets.query.sources import Need


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
    config: KeywordOptions

    def search(self, question: Question, k: int) -> Subgraph:
        search = self.texts.search if self.config.source == "texts" else self.graph.search_chunks
        chunks = search(question.text, k)
        return around_chunks(question.text, chunks, self.graph, k) if self.config.expand else Subgraph(chunks=tuple(chunks[:k]))
