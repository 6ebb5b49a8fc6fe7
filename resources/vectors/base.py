"""What every vector store can do. ``resources.testing.vector_store`` holds these promises as tests."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resources.records import Scored
from resources.store import Store


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index remembers of the vectors in it. The metric is always cosine similarity, from -1 to 1."""

    name: str
    model: str
    dimension: int
    count: int


class VectorStore(Store):
    """Named indexes of vectors, by item id."""

    @abstractmethod
    def open_index(self, name: str, *, model: str, dimension: int) -> IndexInfo:
        """Make the index, or check that the one there was made by the same model with the same dimension.

        Raises IndexMismatchError, naming both models and sizes and the way out, before anything is written; an empty
        index is checked too.
        """

    @abstractmethod
    def describe(self, name: str) -> IndexInfo | None:
        """What is known of an index; None if there is none."""

    @abstractmethod
    def hashes(self, name: str) -> dict[str, str]:
        """For each item id the hash of the text that its vector was made from."""

    @abstractmethod
    def upsert(self, name: str, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]) -> int:
        """Insert or replace vectors (n, dimension), float32, all or none; the last of a repeated id holds. Returns rows written.

        Raises StoreError for another dimension, for a zero, NaN or infinite vector (naming the ids), and an unknown index.
        """

    @abstractmethod
    def delete(self, name: str, ids: Sequence[str]) -> int:
        """Delete by id; unknown ids are passed over. Returns how many went."""

    @abstractmethod
    def get(self, name: str, ids: Sequence[str]) -> dict[str, np.ndarray]:
        """The vectors (dimension,) of the known ones among these, of unit length."""

    @abstractmethod
    def search(self, name: str, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        """For each query (q, dimension) at most ``k`` item ids by cosine similarity, best first, then by id.

        A zero query gives an empty list; a query of another dimension, NaN or an unknown index raises StoreError.
        """

    @abstractmethod
    def drop_index(self, name: str) -> None:
        """Delete an index; unknown names are passed over."""
