"""What every extractor can do. tests/resources/test_gliner.py says what each promise means."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place where a text names an entity: code points of the given text, half-open; ``given[start:end] == text``.

    ``linked_id``: a knowledge base's id, where a linker gave one.
    """

    start: int
    end: int
    text: str
    label: str
    score: float
    linked_id: str | None = None


@dataclass(frozen=True, slots=True)
class RelationSpan:
    """A relation that a text states between two of its spans, which are never the same place."""

    head: Span
    tail: Span
    relation: str
    score: float
    start_date: str | None = None
    end_date: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in one text, in order of place.

    ``error`` says why the text could not be read. ``words_not_read`` counts words the model cut off all the same;
    ``entities_dropped`` counts entities between which no relation was looked for, because their window held too many
    or no window held them whole.
    """

    entities: tuple[Span, ...] = ()
    relations: tuple[RelationSpan, ...] = ()
    error: str | None = None
    words_not_read: int = 0
    entities_dropped: int = 0


OnResult = Callable[[int, Extraction], None]


class Extractor(ABC):
    """What entity and relation extractors share."""

    calls: int
    """Windows sent to the model so far; a window that needs several passes counts once a pass."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that changes results. Equal fingerprints promise equal results for equal texts.

        Raises ExtractionError when the model is a folder that isn't there.
        """


class EntityExtractor(Extractor):
    @abstractmethod
    def extract(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        """Entities of each text, in the order of the texts.

        A text that can't be read gives an Extraction with ``error`` and the others go on; a blank text costs no call.
        ``on_result`` is called with the index of a text as soon as that text is done, in any order.
        Raises ExtractionError when the model can't be loaded.
        """


class RelationExtractor(Extractor):
    @abstractmethod
    def extract(
        self, texts: Sequence[str], entities: Sequence[Sequence[Span]], on_result: OnResult | None = None
    ) -> list[Extraction]:
        """Relations of each text between the given entities of that text; heads and tails are these very spans.

        Otherwise as EntityExtractor.extract. No entities are looked for: a text with fewer than two costs no call.
        """

    def joins(self, extractor: EntityExtractor) -> bool:
        """True when one pass of the same model gives that extractor's entities as well: see ``extract_jointly``."""
        return False

    def extract_jointly(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        """Entities and the relations between them. Only for an extractor that ``joins`` another."""
        raise NotImplementedError(f"{type(self).__name__} does not extract entities")
