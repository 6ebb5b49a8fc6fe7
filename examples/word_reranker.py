"""A reranker of your own: the share of the question's words that a chunk contains.

query:
  reranker: {backend: "examples.word_reranker:WordReranker"}
"""

from collections.abc import Sequence

from resources.models.rerankers.base import Reranker
from resources.options import Options


class WordReranker(Reranker):
    """score = words of the question that the text contains / words of the question."""

    def __init__(self, options: Options) -> None:
        pass

    @property
    def name(self) -> str:
        return "words"

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        asked = _words(question)
        return [len(asked & _words(text)) / len(asked) if asked else 0.0 for text in texts]


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?()").casefold() for word in text.split()}
