"""What extractors and their results are. tests/resources/models/test_gliner.py shows what each promise means."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resources.errors import SettingsError
from resources.models.labels import clean_labels
from resources.options import Options


@dataclass(frozen=True, slots=True)
class Span:
    """A mention of an entity in a text: code points of that text, half-open, so that ``text[start:end] == span.text``.

    ``linked_id`` is the id in a knowledge base, if a linker assigned one.
    """

    start: int
    end: int
    text: str
    label: str
    score: float
    linked_id: str | None = None


@dataclass(frozen=True, slots=True)
class RelationSpan:
    """A relation that a text states between two of its spans, which are never at the same place."""

    head: Span
    tail: Span
    relation: str
    score: float
    start_date: str | None = None
    end_date: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities and relations of one text, in order of place.

    ``error`` is the reason if the text could not be read. ``words_not_read`` counts the words that the model cut off.
    ``entities_dropped`` counts entities that were not compared with others, because their window held too many or no
    window held them whole.
    """

    entities: tuple[Span, ...] = ()
    relations: tuple[RelationSpan, ...] = ()
    error: str | None = None
    words_not_read: int = 0
    entities_dropped: int = 0


OnResult = Callable[[int, Extraction], None]


class Extractor:
    """What entity and relation extractors share.

    options: the settings of the extractor. labels: entity labels. relation_labels: empty for an entity extractor.
    calls: windows sent to the model so far; a window that needs several passes counts once for each.
    """

    def __init__(self, options: Options, labels: Sequence[str], relation_labels: Sequence[str] = ()) -> None:
        self.options = options
        self.labels = tuple(clean_labels(labels))
        self.relation_labels = tuple(clean_labels(relation_labels))
        self.calls = 0

    @property
    def fingerprint(self) -> str:
        """Hash of everything that changes results: equal fingerprints promise equal results for equal texts.

        The cache of extractions is keyed by it. By default: the class, all options and all labels. Override it to leave
        out what does not change results (a batch size), or to add what does (the content of a model's folder).
        """
        return fingerprint_of(self, self.options.model_dump(mode="json"), self.labels, self.relation_labels)


class EntityExtractor(Extractor, ABC):
    """Finds entities in texts."""

    @abstractmethod
    def extract(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        """Find the entities of each text. Results are in the order of the texts.

        A text that can't be read gives an Extraction with ``error``, and the others are read. A blank text costs no call.
        ``on_result`` is called with the index of a text and its result as soon as that text is done, in any order.

        Raises:
            ExtractionError: the model can't be loaded.
        """


class RelationExtractor(Extractor, ABC):
    """Finds relations between the known entities of a text."""

    @abstractmethod
    def extract(
        self, texts: Sequence[str], entities: Sequence[Sequence[Span]], on_result: OnResult | None = None
    ) -> list[Extraction]:
        """Find the relations of each text between the given entities of that text. Heads and tails are these very spans.

        Otherwise as EntityExtractor.extract. No entities are searched: a text with fewer than two costs no call.
        """

    def joins(self, extractor: EntityExtractor) -> bool:
        """Whether one pass of the same model gives that extractor's entities too: see ``extract_jointly``."""
        return False

    def extract_jointly(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        """Find entities and the relations between them. Only for an extractor that ``joins`` another."""
        raise NotImplementedError(f"{type(self).__name__} does not extract entities")


class ExtractorBackend:
    """A kind of model that extracts entities, relations or both: a plug-in of the kind "extractors".

    ``entity_options`` and ``relation_options`` are the classes of its options in project.yaml (``models.entities`` and
    ``models.relations``), None for what it can't extract. ``requires`` lists modules of other packages it needs.
    """

    entity_options: ClassVar[type[Options] | None] = None
    relation_options: ClassVar[type[Options] | None] = None
    requires: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def entity_extractor(cls, options: Any, labels: Sequence[str]) -> EntityExtractor:
        """An extractor of entities with these labels. ``options`` is an instance of ``entity_options``. Loads no model."""
        raise SettingsError(f"{cls.__module__}:{cls.__name__} does not extract entities.")

    @classmethod
    def relation_extractor(
        cls, options: Any, entity_labels: Sequence[str], relation_labels: Sequence[str], entity_options: Any = None
    ) -> RelationExtractor:
        """An extractor of relations with these labels. ``options`` is an instance of ``relation_options``. Loads no model.

        ``entity_options`` are the options of the entities' extractor if the same backend extracts them, else None: an
        extractor that can find both in one pass must read the text in the same way.
        """
        raise SettingsError(f"{cls.__module__}:{cls.__name__} does not extract relations.")


def fingerprint_of(extractor: Extractor, *parts: Any) -> str:
    """Hash of the extractor's class and of these parts (JSON values)."""
    name = f"{type(extractor).__module__}:{type(extractor).__qualname__}"
    return hashlib.sha256(json.dumps([name, *parts]).encode()).hexdigest()
