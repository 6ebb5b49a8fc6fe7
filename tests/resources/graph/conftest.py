"""A FalkorDB graph, empty for each test."""

import pytest

from resources.graph.falkordb.embedded import open_embedded, stop_embedded


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
