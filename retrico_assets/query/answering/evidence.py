"""The records of an answer: its evidence, what the language model wrote, and the result of a question."""

from dataclasses import dataclass, field
from typing import Literal

from resources.models.llm.client import UsageTotals
from resources.records import Chunk, Entity, Relation, Scored
from retrico_assets.query.failures import Failure

AnswerState = Literal["answered", "not_in_sources", "cut", "none"]
"""``cut``: the model reached its token limit, so the answer may be incomplete. ``none``: no answer was written."""
NOT_IN_SOURCES = "not in the sources"
Spending = UsageTotals
"""The requests, tokens and cost of one answer."""


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk, the document that it comes from, and its score."""

    chunk: Chunk
    source: str
    title: str
    score: float

    @property
    def page(self) -> int | str | None:
        """The page of the chunk, for documents that have pages."""
        page = self.chunk.metadata.get("page")
        return page if isinstance(page, int | str) else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer rests on. Each tuple is ranked, best first, and contains an item once."""

    entities: tuple[Scored[Entity], ...] = ()
    relations: tuple[Scored[Relation], ...] = ()
    chunks: tuple[SourceChunk, ...] = ()

    def triples(self) -> list[tuple[str, str, str]]:
        """Display name of the head, relation label and display name of the tail, for each relation."""
        names = {entity.record.id: entity.record.label for entity in self.entities}
        relations = [scored.record for scored in self.relations]
        return [(names.get(r.head_id, r.head_id), r.label, names.get(r.tail_id, r.tail_id)) for r in relations]


@dataclass(frozen=True, slots=True)
class InferredRelation:
    """A relation that the model inferred from the evidence. An id is None when the evidence has no entity of that name."""

    head: str
    relation: str
    tail: str
    head_id: str | None = None
    tail_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the language model wrote. ``text`` cites chunks by id in square brackets; it is None if there is no answer.

    ``failures`` say why there is no answer, ``notes`` what to know about the answer.
    """

    text: str | None = None
    state: AnswerState = "none"
    inferred: tuple[InferredRelation, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Spending = field(default_factory=Spending)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A question, its answer (None without a language model, or if it wrote none) and the evidence.

    The answer cites chunks by id in square brackets. ``failures`` are the steps and strategies that failed. ``state``,
    ``inferred``, ``notes`` and ``usage`` are those of ``Answer``.
    """

    question: str
    strategies: tuple[str, ...]
    answer: str | None
    evidence: Evidence
    failures: tuple[Failure, ...] = ()
    state: AnswerState = "none"
    inferred: tuple[InferredRelation, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Spending = field(default_factory=Spending)

    @property
    def all_failed(self) -> bool:
        """Whether every strategy failed."""
        return {failure.strategy for failure in self.failures} >= set(self.strategies)


def is_predicted(relation: Relation) -> bool:
    """Whether the relation is a prediction of the KG model, which no chunk states."""
    return relation.properties.get("predicted") is True
