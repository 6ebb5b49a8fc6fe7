"""Vector stores by the name of their backend."""

from pathlib import Path

from resources.plugins import open_store
from resources.vectors.base import VectorStore


def open_vector_store(backend: str, folder: Path) -> VectorStore:
    """Open the vector store of a project with the default options of its backend.

    Args:
        backend: a registered name (entry points ``retrico.vector_stores``) or "module:Class".
        folder: where the store keeps its files.

    Raises:
        SettingsError: the backend is unknown, or a package that it needs is not installed.
        StoreError: the store can't be opened.
    """
    return open_store("vector_stores", VectorStore, backend, folder)  # type: ignore[type-abstract]
