"""Plug-ins: found by name, by "module:Class", and in another installed distribution."""

import importlib.metadata
import sys

import pytest

from resources.errors import SettingsError
from resources.options import Options
from resources.plugins import KINDS, Backend, known_plugins, plugin
from resources.store_sections import GraphStoreBackend, VectorStoreBackend
from resources.vectors.base import VectorStore
from resources.vectors.memory import MemoryVectorStore


@pytest.fixture
def other_distribution(tmp_path, monkeypatch):
    """An installed distribution of another author, with a vector store."""
    (tmp_path / "other_store.py").write_text(
        "from resources.vectors.memory import MemoryVectorStore\n"
        "from resources.options import Options\n"
        "class OtherOptions(Options):\n    size: int = 1\n"
        "class OtherStore(MemoryVectorStore):\n    options = OtherOptions\n"
        "class Needy(MemoryVectorStore):\n    requires = ('no_such_package_here',)\n"
        "class NotAStore:\n    pass\n"
    )
    (tmp_path / "broken_store.py").write_text("raise RuntimeError('the driver is broken')\n")
    info = tmp_path / "other_store-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[retrico.vector_stores]\nother = other_store:OtherStore\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    known_plugins.cache_clear()
    yield
    known_plugins.cache_clear()
    sys.modules.pop("other_store", None)


def test_a_store_of_another_distribution_is_known_by_its_name(other_distribution, tmp_path):
    assert "other" in known_plugins("vector_stores")
    section = VectorStoreBackend.parse({"backend": "other", "size": 4})
    assert section.options.size == 4
    assert section.changed_options() == {"size": 4}
    with section.open(tmp_path) as store:
        assert type(store).__name__ == "OtherStore"


def test_a_class_is_found_by_its_module(other_distribution):
    assert VectorStoreBackend.parse({"backend": "other_store:OtherStore"}).plugin_class.__name__ == "OtherStore"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"backend": "paper"}, "backend: 'paper' is not one of the known vector stores. Known: faiss, memory, other."),
        ({"backend": "no_such_module:Store"}, "'no_such_module:Store' can't be imported: No module named 'no_such_module'."),
        ({"backend": "other_store:Missing"}, "'other_store:Missing' can't be imported"),
        ({"backend": "broken_store:Store"}, "'broken_store:Store' can't be imported: the driver is broken."),
        ({"backend": "other_store:NotAStore"}, "is not a subclass of resources.vectors.base:VectorStore. Extend that class."),
        ({"backend": "other_store:Needy"}, "'other_store:Needy' needs the package no_such_package_here. Install it."),
        ({"backend": 3}, "backend is missing."),
        ({"backend": "other", "size": "big"}, "stores.vectors.size is 'big'. It must be a whole number."),
        ({"backend": "other", "sise": 1}, "stores.vectors.sise is an unknown key. Known keys: size."),
        ({"size": 1}, "stores.vectors.size is an unknown key."),
    ],
)
def test_a_wrong_backend_or_option_is_named(other_distribution, values, message):
    with pytest.raises(SettingsError) as error:
        VectorStoreBackend.parse(values, "stores.vectors")
    assert message in str(error.value)
    assert str(error.value).startswith("stores.vectors.")


def test_the_built_in_plugins_are_registered_and_can_be_imported():
    assert {"falkordb_embedded", "memory"} <= set(known_plugins("graph_stores"))
    for kind in KINDS:
        for name in known_plugins(kind):
            assert plugin(kind, name, object).__name__


def test_sections_keep_their_choice_when_options_are_replaced():
    class Parent(Options):
        graph: GraphStoreBackend = GraphStoreBackend.of("memory")
        number: int = 1

    changed = Parent().replace({"number": 2})
    assert (changed.graph.backend, changed.number) == ("memory", 2)


def test_a_backend_is_the_class_of_its_section():
    assert issubclass(VectorStoreBackend, Backend)
    assert plugin("vector_stores", "memory", VectorStore) is MemoryVectorStore
    assert importlib.metadata.entry_points(group="retrico.vector_stores")
