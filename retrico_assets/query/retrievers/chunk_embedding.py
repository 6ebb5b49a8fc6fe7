"""Strategy "chunk_embedding": the chunks whose meaning is nearest to the question's."""

from typing import ClassVar

from resources.records import Scored, Subgraph
from retrico_assets.embeddings.sync import CHUNK_INDEX
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.retrievers.meaning import search_index
from retrico_assets.query.retrievers.ranking import around_chunks
from retrico_assets.query.sources import Need


class ChunkEmbeddingRetriever(Retriever):
    """Chunks by cosine similarity with the question, then what they mention and state (``around_chunks``)."""

    name: ClassVar[str] = "chunk_embedding"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts", "vectors", "embedder"))

    def search(self, question: Question, k: int) -> Subgraph:
        if not question.text.strip():
            return Subgraph()
        hits = search_index(self.vectors, self.embedder, CHUNK_INDEX, [question.text], k)[0]
        stored = self.texts.get_chunks([hit.record for hit in hits])
        chunks = [Scored(stored[hit.record], hit.score) for hit in hits if hit.record in stored]
        return around_chunks(question.text, chunks, self.graph, k)
