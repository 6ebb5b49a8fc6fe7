"""A strategy of your own: the chunks of documents whose titles share words with the question.

    query:
      strategies: ["examples.title_retriever:TitleRetriever"]

or, for one question: retrico query "Who is Marie Curie?" --strategy examples.title_retriever:TitleRetriever
"""

from typing import ClassVar

from resources.records import Chunk, Scored, Subgraph
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.sources import Need


class TitleRetriever(Retriever):
    """Chunks of the documents with the best titles. Score: the share of the title's words that the question contains."""

    name: ClassVar[str] = "title"
    needs: ClassVar[frozenset[Need]] = frozenset(("texts",))

    def search(self, question: Question, k: int) -> Subgraph:
        asked = _words(question.text)
        scores = {}
        for document_id, title in self.texts.document_titles().items():
            words = _words(title)
            if words & asked:
                scores[document_id] = len(words & asked) / len(words)
        chunks = [self._scored(chunk, scores) for chunk in self.texts.chunks() if chunk.document_id in scores]
        best = sorted(chunks, key=lambda scored: (-scored.score, scored.record.document_id, scored.record.index))
        return Subgraph(chunks=tuple(best[:k]))

    @staticmethod
    def _scored(chunk: Chunk, scores: dict[str, float]) -> Scored[Chunk]:
        return Scored(chunk, scores[chunk.document_id])


def _words(text: str) -> set[str]:
    return {word.strip(".,?!").casefold() for word in text.replace("_", " ").split()}
