"""Graph stores: where entities, relations and their provenance live."""

import threading
from pathlib import Path

from resources.errors import StoreError
from resources.graph.base import GraphStore

_memory: dict[Path, GraphStore] = {}
_memory_lock = threading.Lock()


def open_graph_store(backend: str, folder: Path) -> GraphStore:
    """Open the graph store of a project.

    ``falkordb_embedded`` keeps its files in ``folder`` and starts a server when none runs there; ``memory`` is one shared store a
    folder, gone with the process. Raises StoreError for another name, or when the server can't be started.
    """
    if backend == "falkordb_embedded":
        from resources.graph.falkordb.embedded import open_embedded

        return open_embedded(folder)
    if backend == "memory":
        from resources.graph.memory import MemoryGraphStore

        with _memory_lock:
            return _memory.setdefault(Path(folder).resolve(), MemoryGraphStore())
    raise StoreError(f"There is no graph store {backend!r}. Choose falkordb_embedded or memory (stores.graph.backend).")
