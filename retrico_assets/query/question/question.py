"""The question as every later step sees it: its text, the mentions in it and the entities it names."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from resources.errors import ExtractionError
from resources.models.base import EntityExtractor, Span
from resources.records import Entity
from resources.text.characters import storable
from retrico_assets.query.failures import Failure

LONGEST_QUESTION = 2000
"""Characters of a question that are asked; that there are more is reported."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the spans the extractor found in it, and the entities it names in order of their place.

    ``fault`` says why entities could not be looked up; None when they were (or need not be). ``link_scores`` says by entity
    id how surely an entity is meant, above 0 to 1: one that isn't there counts 1.
    """

    text: str
    mentions: tuple[Span, ...] = ()
    entities: tuple[Entity, ...] = ()
    fault: str | None = None
    link_scores: Mapping[str, float] = field(default_factory=dict)

    def link_score(self, entity_id: str) -> float:
        """How surely the question means this entity: 1 by a linked id or an identity key, less by a part of its name."""
        return self.link_scores.get(entity_id, 1.0)


def read_question(text: str) -> tuple[Question, tuple[Failure, ...]]:
    """The question without what no store accepts, and a failure if it was cut.

    Lone surrogates and NUL become U+FFFD; what is longer than LONGEST_QUESTION is cut.
    """
    clean = storable(text, "\ufffd")
    if len(clean) <= LONGEST_QUESTION:
        return Question(clean), ()
    message = f"the question has {len(clean)} characters; only the first {LONGEST_QUESTION} are used. Shorten it."
    return Question(clean[:LONGEST_QUESTION]), (Failure("parse_question", message),)


def find_mentions(question: Question, extractor: EntityExtractor) -> Question:
    """The question with the spans that the extractor finds in it.

    Raises:
        ExtractionError: the extractor could not read the question.
    """
    extraction = extractor.extract([question.text])[0]
    if extraction.error is not None:
        raise ExtractionError(extraction.error)
    return replace(question, mentions=extraction.entities)
