"""Strategy "entity": the entities that the question names, and what is around them in the graph."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from resources.options import Options
from resources.records import Entity, Neighbourhood, Relation, Scored, Subgraph
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import MOST_HOPS, Retriever
from retrico_assets.query.retrievers.ranking import RelationScorer, ranked_relations, stating_chunks, with_ends
from retrico_assets.query.sources import Need


def _as_text(value: Any) -> Any:
    """Years and dates as YAML reads them."""
    return value.isoformat() if isinstance(value, date) else str(value) if type(value) is int else value


def _iso_date(value: str) -> str:
    parts = re.fullmatch(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", value, re.ASCII)
    try:
        if parts is None:
            raise ValueError
        date(int(parts[1]), int(parts[2] or 1), int(parts[3] or 1))
    except ValueError:
        raise ValueError(f"{value!r} is no date; write it as 2020, 2020-05 or 2020-05-31") from None
    return value


IsoDate = Annotated[str, BeforeValidator(_as_text), AfterValidator(_iso_date)]
"""A year, month or day in ISO 8601."""


class EntityOptions(Options):
    """How far to look, within which dates (GraphStore says what a window of dates keeps), and at how many entities."""

    hops: int = Field(default=2, ge=0, le=MOST_HOPS)
    active_after: IsoDate | None = None
    active_before: IsoDate | None = None
    limit: int = Field(default=1000, ge=1, le=100_000)

    @model_validator(mode="after")
    def _window_in_order(self) -> Self:
        after, before = self.active_after, self.active_before
        if after is not None and before is not None and before < after:
            raise ValueError(f"active_before ({before}) is before active_after ({after}); exchange them")
        return self


class EntityRetriever(Retriever):
    """Walks ``hops`` relations out from the named entities, ``limit`` entities at most.

    Entities score the link score of the surest named entity at their distance / (1 + hop); equal ones are ordered by the best
    of their relations, then by how many they have to entities as near or nearer, then by id. Relations score as
    RelationScorer says, the nearness being the surer end's link score / (1 + the sum of the ends' hops); chunks as
    stating_chunks says, for the named entities.
    """

    name: ClassVar[str] = "entity"
    needs: ClassVar[frozenset[Need]] = frozenset(("names", "graph", "texts"))
    options = EntityOptions
    config: EntityOptions

    def search(self, question: Question, k: int) -> Subgraph:
        seeds = {entity.id: question.link_score(entity.id) for entity in question.entities}
        if not seeds:
            return Subgraph()
        around = self.graph.neighbourhood(
            list(seeds),
            self.config.hops,
            limit=self.config.limit,
            active_after=self.config.active_after,
            active_before=self.config.active_before,
        )
        hop = {entity.id: distance for entity, distance in around.entities}
        sure = _sureness(around, hop, seeds)
        score = RelationScorer(question.text)
        scores = [
            (r, score(r, max(sure[r.head_id], sure[r.tail_id]) / (1 + hop[r.head_id] + hop[r.tail_id]))) for r in around.relations
        ]
        relations = ranked_relations(scores, k)
        entities = with_ends(_ranked_entities(around, hop, sure, scores), relations, k)
        return Subgraph(entities, relations, stating_chunks(relations, seeds, self.texts, self.graph, k))


def _sureness(around: Neighbourhood, hop: Mapping[str, int], seeds: Mapping[str, float]) -> dict[str, float]:
    """For each entity the link score of the surest seed that a shortest way leads to."""
    sure = {entity.id: seeds.get(entity.id, 0.0) for entity, _ in around.entities}
    for relation in sorted(around.relations, key=lambda r: max(hop[r.head_id], hop[r.tail_id])):  # near ones are settled first
        near, far = sorted((relation.head_id, relation.tail_id), key=hop.__getitem__)
        if hop[near] < hop[far]:
            sure[far] = max(sure[far], sure[near])
    return sure


def _ranked_entities(
    around: Neighbourhood, hop: Mapping[str, int], sure: Mapping[str, float], scores: Sequence[tuple[Relation, float]]
) -> list[Scored[Entity]]:
    best: dict[str, float] = {}
    inward: dict[str, int] = {}
    for relation, score in scores:
        for this, that in ((relation.head_id, relation.tail_id), (relation.tail_id, relation.head_id)):
            best[this] = max(best.get(this, 0.0), score)
            inward[this] = inward.get(this, 0) + (hop[that] <= hop[this])
    ranked = [Scored(entity, sure[entity.id] / (1 + distance)) for entity, distance in around.entities]
    return sorted(ranked, key=lambda e: (-e.score, -best.get(e.record.id, 0.0), -inward.get(e.record.id, 0), e.record.id))
