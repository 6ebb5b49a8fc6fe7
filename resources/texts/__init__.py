"""Text stores by the name of their backend."""

from pathlib import Path

from resources.plugins import open_store
from resources.texts.base import TextStore


def open_text_store(backend: str, folder: Path) -> TextStore:
    """Open the text store of a project with the default options of its backend.

    Args:
        backend: a registered name (entry points ``retrico.text_stores``) or "module:Class".
        folder: where the store keeps its files.

    Raises:
        SettingsError: the backend is unknown, or a package that it needs is not installed.
        StoreError: the store can't be opened.
    """
    return open_store("text_stores", TextStore, backend, folder)  # type: ignore[type-abstract]
