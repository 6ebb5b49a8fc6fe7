"""Strategy "chunk_embedding": the chunks whose meaning is nearest to the question's."""

from typing import Any, ClassVar, Self

from resources.graph.base import GraphStore
from resources.models.embedders.sentence_transformer import Embedder
from resources.records import Scored, Subgraph
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.embeddings.sync import CHUNK_INDEX
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Need, Retriever, Sources
from retrico_assets.query.retrievers.meaning import search_index
from retrico_assets.query.retrievers.ranking import around_chunks


class ChunkEmbeddingRetriever(Retriever):
    """Chunks by cosine similarity with the question, then what they mention and state (``around_chunks``)."""

    name: ClassVar[str] = "chunk_embedding"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts", "vectors", "embedder"))

    def __init__(self, graph: GraphStore, texts: TextStore, vectors: VectorStore, embedder: Embedder) -> None:
        self._graph = graph
        self._texts = texts
        self._vectors = vectors
        self._embedder = embedder

    @classmethod
    def from_sources(cls, sources: Sources, options: Any) -> Self:
        assert sources.graph is not None
        assert sources.texts is not None
        assert sources.vectors is not None
        assert sources.embedder is not None
        return cls(sources.graph, sources.texts, sources.vectors, sources.embedder)

    def retrieve(self, question: Question, k: int) -> Subgraph:
        if not question.text.strip():
            return Subgraph()
        hits = search_index(self._vectors, self._embedder, CHUNK_INDEX, [question.text], k)[0]
        stored = self._texts.get_chunks([hit.record for hit in hits])
        chunks = [Scored(stored[hit.record], hit.score) for hit in hits if hit.record in stored]
        return around_chunks(question.text, chunks, self._graph, k)
