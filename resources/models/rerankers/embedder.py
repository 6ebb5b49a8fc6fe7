"""Reranks with the project's embedder."""

from collections.abc import Sequence
from typing import Any, Self

from resources.models.embedders.base import Embedder
from resources.models.rerankers.base import Reranker


class EmbedderReranker(Reranker):
    """score = cosine(embedding of the question, embedding of the text). Needs no other model than the embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @classmethod
    def create(cls, options: Any, embedder: Embedder) -> Self:
        return cls(embedder)

    @property
    def name(self) -> str:
        return self._embedder.name

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        vectors = self._embedder.embed([question, *texts])
        return [float(score) for score in vectors[1:] @ vectors[0]]
