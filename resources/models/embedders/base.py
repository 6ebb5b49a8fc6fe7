"""What every embedder can do. tests/resources/models/test_embedder.py shows what each promise means."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from resources.options import Options

Vectors = np.ndarray[Any, np.dtype[np.float32]]


class Embedder(ABC):
    """Turns texts into vectors. A plug-in of the kind "embedders", made as ``cls(options)``.

    calls: texts sent to the model so far.
    """

    options: ClassVar[type[Options]] = Options
    requires: ClassVar[tuple[str, ...]] = ()

    calls: int

    @property
    @abstractmethod
    def name(self) -> str:
        """The name an index remembers: equal names promise comparable vectors. Known without loading the model."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Numbers in a vector. May load the model."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors (n, dimension), float32, of unit length, in the order of the texts.

        The whole text counts, however long it is.

        Raises:
            RetricoError: a text is blank.
            ExtractionError: the model can't be loaded.
        """
