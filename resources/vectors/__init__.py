"""Vector stores by the name of their backend."""

from pathlib import Path

from resources.errors import SettingsError
from resources.vectors.base import VectorStore
from resources.vectors.memory import MemoryVectorStore

BACKENDS = ("faiss", "memory")
_in_memory: dict[Path, MemoryVectorStore] = {}


def open_vector_store(backend: str, folder: Path) -> VectorStore:
    """The vector store of a project: ``faiss`` keeps it in the folder, ``memory`` in this process, one store a folder."""
    if backend == "faiss":
        from resources.vectors.faiss import FaissVectorStore

        return FaissVectorStore(Path(folder))
    if backend == "memory":
        return _in_memory.setdefault(Path(folder).resolve(), MemoryVectorStore())
    raise SettingsError(f"stores.vectors.backend is {backend!r}; known vector stores: {', '.join(BACKENDS)}")
