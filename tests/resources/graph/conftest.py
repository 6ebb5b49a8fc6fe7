"""The graph store of each backend, empty."""

import pytest

from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.graph.memory import MemoryGraphStore


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """One FalkorDB for all tests that don't need a server of their own."""
    folder = tmp_path_factory.mktemp("graph")
    store = open_embedded(folder)
    yield store
    store.close()
    stop_embedded(folder)


@pytest.fixture
def falkordb(database):
    database.query("MATCH (n) DETACH DELETE n", read_only=False)
    return database


@pytest.fixture(params=["memory", "falkordb"])
def store(request):
    return MemoryGraphStore() if request.param == "memory" else request.getfixturevalue("falkordb")
