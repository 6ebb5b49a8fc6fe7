"""Text stores by the name of their backend."""

from pathlib import Path

from resources.errors import SettingsError
from resources.texts.base import TextStore

BACKENDS = ("sqlite",)


def open_text_store(backend: str, folder: Path) -> TextStore:
    """The text store of a project: ``sqlite`` keeps it in ``texts.db`` in the folder, which is made if needed."""
    if backend == "sqlite":
        from resources.texts.sqlite import SqliteTextStore

        return SqliteTextStore(Path(folder) / "texts.db")
    raise SettingsError(f"stores.texts.backend is {backend!r}; known text stores: {', '.join(BACKENDS)}")
