"""Graph stores: where entities, relations and their provenance live."""

from pathlib import Path

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.options import Options
from resources.plugins import missing_packages, plugin


def open_graph_store(backend: str, folder: Path, options: Options | None = None) -> GraphStore:
    """Open the graph store of a project.

    Args:
        backend: a registered name (entry points ``retrico.graph_stores``) or "module:Class".
        folder: where an embedded database keeps its files.
        options: an instance of the backend's own options class. None means its defaults.

    Raises:
        SettingsError: the backend is unknown, or a package that it needs is not installed.
        StoreError: the store can't be opened.
    """
    store: type[GraphStore] = plugin("graph_stores", backend, GraphStore)  # type: ignore[type-abstract]
    if missing := missing_packages(store):
        raise SettingsError(f"The graph store {backend!r} needs the package {' and '.join(missing)}. Install it.")
    return store.open(store.options() if options is None else options, Path(folder))
