"""The question as every later step sees it: its text, the mentions in it and the entities it names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources.models.base import EntityExtractor, Span
from resources.models.llm.client import mask_secrets
from resources.records import Entity
from retrico_assets.query.failures import Failure, explain

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


def parse(text: str, extractor: EntityExtractor | None) -> tuple[Question, tuple[Failure, ...]]:
    """Find the mentions of a question. Without an extractor, or when it fails (which is reported), there are none.

    Lone surrogates and NUL, which no store takes, become U+FFFD; what is longer than LONGEST_QUESTION is cut, and reported.
    """
    clean = "".join("\ufffd" if character == "\0" or "\ud800" <= character <= "\udfff" else character for character in text)
    failures = []
    if len(clean) > LONGEST_QUESTION:
        failures.append(Failure("parse", f"the question has {len(clean)} characters: the first {LONGEST_QUESTION} are asked"))
        clean = clean[:LONGEST_QUESTION]
    mentions: tuple[Span, ...] = ()
    if extractor is not None and clean.strip():
        try:
            found = extractor.extract([clean])[0]
            mentions = found.entities
            if found.error is not None:
                failures.append(Failure("parse", f"the entity extractor failed: {mask_secrets(found.error)}"))
        except Exception as error:  # whatever a model raises: the graph's own names still work
            failures.append(Failure("parse", f"the entity extractor failed: {explain(error)}"))
    return Question(clean, mentions), tuple(failures)
