"""Looks up texts in a vector index by their meaning."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from resources.errors import IndexMismatchError, NotBuiltError
from resources.models.embedders.base import Embedder
from resources.records import Scored
from resources.vectors.base import VectorStore


def search_index(vectors: VectorStore, embedder: Embedder, index: str, texts: Sequence[str], k: int) -> list[list[Scored[str]]]:
    """For each text the ``k`` nearest items of an index by cosine similarity: their ids and scores, best first.

    NotBuiltError when the index does not exist, IndexMismatchError when another model made it.
    """
    known = vectors.describe(index)
    if known is None:
        raise NotBuiltError(f"there is no vector index {index!r}: build {index} first (retrico build)")
    if known.model != embedder.name:
        raise IndexMismatchError(
            f"the vector index {index!r} was made by {known.model!r}, the embedder is {embedder.name!r}; "
            f"set the embedder back, or build {index} again"
        )
    return vectors.search(index, embed_texts(embedder, texts), k)


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """Vectors (n, dimension), float32. Several strategies ask for the same question: its vector is made once."""
    return np.stack([_embedded(embedder, text) for text in texts])


@lru_cache(maxsize=64)
def _embedded(embedder: Embedder, text: str) -> np.ndarray:
    return embedder.embed([text])[0]
