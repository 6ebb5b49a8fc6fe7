"""What differs between databases that speak Cypher."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Rows = list[list[Any]]
Statements = list[tuple[str, Mapping[str, Any]]]
"""Statements with their parameters, in the order in which they run."""

INDEXED = (
    ("Entity", "id"),
    ("Entity", "key"),
    ("Chunk", "id"),
    ("Document", "id"),
    ("Chunk", "document_id"),
    ("Community", "id"),
)
"""Label and property of each index that reading and writing need."""
SEARCHED = (("Entity", "label"), ("Chunk", "text"))
"""Labels that full-text search covers, and the property that their ``search_text`` is made from."""


class Dialect(ABC):
    """How one database says what each says in its own way. All other Cypher of this package is common.

    Every method returns a piece of a statement, but ``split``, which reads what ``joined`` made. Labels and property names
    are constants of this package; values travel as parameters.
    """

    database: ClassVar[str]
    """The database's name, for messages."""

    @abstractmethod
    def property_index(self, label: str, key: str) -> str:
        """A statement that makes an index. It does nothing, or fails with ``index_exists``, when there is one."""

    @abstractmethod
    def full_text_index(self, label: str) -> str:
        """A statement that indexes ``search_text``: words are cut at blanks only, and kept as they are."""

    @abstractmethod
    def full_text_hits(self, label: str, query: str) -> str:
        """A clause that yields ``node`` and ``score`` for each hit. ``query`` is an expression: a phrase in double quotes."""

    @abstractmethod
    def all_phrases(self, phrases: Sequence[str]) -> str:
        """The full-text query that finds what holds every one of these phrases."""

    @abstractmethod
    def set_vector(self, node: str, key: str, numbers: str) -> str:
        """A clause that gives a node a property of 32-bit floats."""

    @abstractmethod
    def joined(self, texts: str) -> str:
        """An aggregate of all values of an expression that are ids, in whichever form the client reads fastest."""

    @abstractmethod
    def split(self, joined: Any) -> list[str]:
        """The ids that ``joined`` brought together."""


@dataclass(frozen=True)
class Reader:
    """Runs statements that read. Call it with a statement and its parameters."""

    dialect: Dialect
    run: Callable[[str, Mapping[str, Any]], Rows]

    def __call__(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        return self.run(statement, parameters or {})
