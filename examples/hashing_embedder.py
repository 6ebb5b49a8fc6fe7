"""An embedder of your own: feature hashing of words, without a model.

    models:
      embedder: {backend: "examples.hashing_embedder:HashingEmbedder", dimension: 256}

Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

import zlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from resources.models.embedders.base import Embedder, Vectors
from resources.options import Options


class HashingOptions(Options):
    """The size of the vectors."""

    dimension: int = Field(default=256, ge=16, description="Numbers in a vector.")


class HashingEmbedder(Embedder):
    """Each word adds 1 at the place of its hash; vectors are divided by their length."""

    options: ClassVar[type[HashingOptions]] = HashingOptions

    def __init__(self, options: HashingOptions) -> None:
        self._dimension = options.dimension
        self.calls = 0

    @property
    def name(self) -> str:
        return f"hashing-{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.casefold().split():
                vector[zlib.crc32(word.strip(".,;:!?()").encode()) % self._dimension] += 1
        self.calls += len(texts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
