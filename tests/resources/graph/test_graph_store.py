"""The promises of every graph store, kept by the memory store and by FalkorDB; tests/services/ has Neo4j."""

from pathlib import Path

import pytest

from resources.errors import SettingsError, StoreError
from resources.graph import open_graph_store
from resources.graph.base import GraphStore
from resources.graph.memory import MemoryGraphStore
from resources.testing.graph_store import GraphStoreConformance
from resources.testing.graphs import pair


class TestMemory(GraphStoreConformance):
    @pytest.fixture
    def store(self) -> MemoryGraphStore:
        return MemoryGraphStore()

    def count_edges(self, store: GraphStore, pattern: str) -> None:
        return None

    def vectors_on_nodes(self, store: MemoryGraphStore) -> dict[str, list[float]]:
        return store.entity_vectors()


class TestFalkorDB(GraphStoreConformance):
    @pytest.fixture
    def store(self, falkordb: GraphStore) -> GraphStore:
        return falkordb


def test_the_memory_store_is_shared_by_folder_and_has_no_language(tmp_path: Path) -> None:
    one, other = open_graph_store("memory", tmp_path), open_graph_store("memory", tmp_path / ".")
    one.replace_documents([pair("d", "Ana", "likes", "Bo")])
    assert other.stats().documents == 1
    assert open_graph_store("memory", tmp_path / "else").stats().documents == 0
    with pytest.raises(StoreError, match="no query language"):
        one.query("RETURN 1")


def test_an_unknown_backend_is_an_error_that_names_the_choices(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'neo5j'.*falkordb_embedded, memory, neo4j"):
        open_graph_store("neo5j", tmp_path)
