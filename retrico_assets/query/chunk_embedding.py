"""Strategy "chunk_embedding": the chunks whose meaning is nearest to the question's."""

from typing import ClassVar, Self

from resources.errors import IndexMismatchError, NotBuiltError
from resources.graph.base import GraphStore
from resources.models.embedder import Embedder
from resources.records import Scored, Subgraph
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.embeddings.sync import CHUNK_INDEX
from retrico_assets.query.parse import Question
from retrico_assets.query.ranking import around_chunks
from retrico_assets.query.retriever import Need, Retriever, Sources


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
    def from_sources(cls, sources: Sources) -> Self:
        assert sources.graph is not None
        assert sources.texts is not None
        assert sources.vectors is not None
        assert sources.embedder is not None
        return cls(sources.graph, sources.texts, sources.vectors, sources.embedder)

    def retrieve(self, question: Question, k: int) -> Subgraph:
        if not question.text.strip():
            return Subgraph()
        index = self._vectors.describe(CHUNK_INDEX)
        if index is None:
            raise NotBuiltError(f"there is no vector index {CHUNK_INDEX!r}: build {CHUNK_INDEX} first (retrico build)")
        if index.model != self._embedder.name:
            raise IndexMismatchError(
                f"the vector index {CHUNK_INDEX!r} was made by {index.model!r}, the embedder is {self._embedder.name!r}; "
                f"set the embedder back, or build {CHUNK_INDEX} again"
            )
        hits = self._vectors.search(CHUNK_INDEX, self._embedder.embed([question.text]), k)[0]
        stored = self._texts.get_chunks([hit.record for hit in hits])
        chunks = [Scored(stored[hit.record], hit.score) for hit in hits if hit.record in stored]
        return around_chunks(question.text, chunks, self._graph, k)
