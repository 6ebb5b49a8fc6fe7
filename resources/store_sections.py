"""The sections of project.yaml that choose a store: ``stores.graph``, ``stores.vectors`` and ``stores.texts``."""

from pathlib import Path

from pydantic import Field

from resources.graph.base import GraphStore
from resources.options import Options
from resources.plugins import Backend
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore


class GraphStoreBackend(Backend):
    """Where the graph is stored."""

    kind = "graph_stores"
    base = GraphStore

    backend: str = Field(default="falkordb_embedded", min_length=1, description='A registered name, or "module:Class".')

    def open(self, folder: Path) -> GraphStore:
        """Open the store.

        Raises:
            StoreError: the store can't be opened.
        """
        store: GraphStore = self.plugin_class.open(self.options, folder)
        return store


class VectorStoreBackend(Backend):
    """Where the vectors are stored."""

    kind = "vector_stores"
    base = VectorStore

    backend: str = Field(default="faiss", min_length=1, description='A registered name, or "module:Class".')

    def open(self, folder: Path) -> VectorStore:
        """Open the store.

        Raises:
            StoreError: the store can't be opened.
        """
        store: VectorStore = self.plugin_class.open(self.options, folder)
        return store


class TextStoreBackend(Backend):
    """Where documents and chunks are stored, with full-text search."""

    kind = "text_stores"
    base = TextStore

    backend: str = Field(default="sqlite", min_length=1, description='A registered name, or "module:Class".')

    def open(self, folder: Path) -> TextStore:
        """Open the store.

        Raises:
            StoreError: the store can't be opened.
        """
        store: TextStore = self.plugin_class.open(self.options, folder)
        return store


class StoreOptions(Options):
    """The stores of a project."""

    graph: GraphStoreBackend = Field(default={}, validate_default=True, description="Where the graph is stored.")
    vectors: VectorStoreBackend = Field(default={}, validate_default=True, description="Where the vectors are stored.")
    texts: TextStoreBackend = Field(
        default={}, validate_default=True, description="Where documents and chunks are stored, with full-text search."
    )
