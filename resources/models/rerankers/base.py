"""What every reranker can do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from resources.models.embedders.base import Embedder
from resources.options import Options


class Reranker(ABC):
    """Compares a question with texts, so that a short ranking can be put into a better order. A plug-in of "rerankers"."""

    options: ClassVar[type[Options]] = Options
    requires: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def create(cls, options: Any, embedder: Embedder) -> Self:
        """Make the reranker of a project. ``options`` is an instance of ``cls.options``. Loads no model.

        By default ``cls(options)``; override it to use the project's embedder.
        """
        return cls(options)  # type: ignore[call-arg]

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name, shown with results. Known without loading the model."""

    @abstractmethod
    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the question, in the order of the texts. Scores are finite; larger is better.

        Raises:
            RetricoError: the model can't be loaded or can't score these texts.
        """
