"""What every store has in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from resources.options import Options


class Store(ABC):
    """Something that is opened, used in a ``with`` block, and closed."""

    options: ClassVar[type[Options]] = Options
    """The backend's own options: the keys beside ``backend`` in project.yaml. The default is none."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules of other packages that must be installed for it."""

    @classmethod
    @abstractmethod
    def open(cls, options: Any, folder: Path) -> Self:
        """Open the store of a project.

        Args:
            options: an instance of this class's ``options``.
            folder: where the store keeps its files. A backend with a server of its own ignores it.

        Raises:
            StoreError: the store can't be opened.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the store. A closed store is not used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
