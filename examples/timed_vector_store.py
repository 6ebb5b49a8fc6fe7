"""A vector store of your own: FAISS that warns about slow searches.

stores:
  vectors: {backend: "examples.timed_vector_store:TimedVectorStore", slow_seconds: 0.05}
"""

import logging
import time
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from pydantic import Field

from resources.options import Options
from resources.records import Scored
from resources.vectors.faiss import FaissVectorStore

log = logging.getLogger(__name__)


class TimedOptions(Options):
    """When a search is slow."""

    slow_seconds: float = Field(default=0.1, ge=0, description="Searches that take longer are reported in the log.")


class TimedVectorStore(FaissVectorStore):
    """Measures each search."""

    options: ClassVar[type[TimedOptions]] = TimedOptions

    def __init__(self, folder: Path, options: TimedOptions) -> None:
        super().__init__(folder)
        self._slow_seconds = options.slow_seconds

    @classmethod
    def open(cls, options: TimedOptions, folder: Path) -> Self:
        return cls(folder, options)

    def search(self, name: str, queries: np.ndarray, k: int) -> list[list[Scored[str]]]:
        started = time.perf_counter()
        results = super().search(name, queries, k)
        seconds = time.perf_counter() - started
        if seconds > self._slow_seconds:
            log.warning("%d queries of the index %s took %.3f s", len(queries), name, seconds)
        return results
