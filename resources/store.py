"""What every store has in common."""

from abc import ABC, abstractmethod
from typing import Self


class Store(ABC):
    """Something that is opened, used in a ``with`` block, and let go."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store. A closed store is not used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
