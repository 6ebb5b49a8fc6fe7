"""Strategy "entity": the entities that the question names, and what is around them in the graph."""

from collections.abc import Sequence
from typing import ClassVar, Self

from pydantic import Field

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.records import Chunk, Entity, Neighbourhood, Relation, Scored, Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.parse import Question
from retrico_assets.query.ranking import RelationScorer, ranked_relations, unit, with_ends
from retrico_assets.query.retriever import MOST_HOPS, Need, Options, Retriever, Sources

_MENTION_WEIGHT = 0.1


class EntityOptions(Options):
    hops: int = Field(default=2, ge=0, le=MOST_HOPS)


class EntityRetriever(Retriever):
    """Walks ``hops`` relations out from the named entities, ``limit`` entities at most.

    Entities score 1 / (1 + hop); those of one hop are ordered by the best of their relations, then by how many they have
    to entities as near or nearer, then by id. Relations score as RelationScorer says, the nearness being 1 / (1 + the sum
    of their ends' hops). A chunk scores as the best relation kept that it states, plus a tenth of the mean score with which
    it mentions the named entities.
    """

    name: ClassVar[str] = "entity"
    needs: ClassVar[frozenset[Need]] = frozenset(("names", "graph", "texts"))
    options = EntityOptions

    def __init__(self, graph: GraphStore, texts: TextStore, *, hops: int = 2, limit: int = 1000) -> None:
        self._graph = graph
        self._texts = texts
        self._hops = hops
        self._limit = limit

    @classmethod
    def from_sources(cls, sources: Sources, options: EntityOptions) -> Self:
        assert sources.graph is not None
        assert sources.texts is not None
        return cls(sources.graph, sources.texts, hops=options.hops)

    def retrieve(self, question: Question, k: int) -> Subgraph:
        if question.fault is not None:
            raise StoreError(question.fault)
        seeds = [entity.id for entity in question.entities]
        if not seeds:
            return Subgraph()
        around = self._graph.neighbourhood(seeds, self._hops, limit=self._limit)
        hop = {entity.id: distance for entity, distance in around.entities}
        score = RelationScorer(question.text)
        scores = [(r, score(r, 1 / (1 + hop[r.head_id] + hop[r.tail_id]))) for r in around.relations]
        relations = ranked_relations(scores, k)
        entities = with_ends(_ranked_entities(around, hop, scores), relations, k)
        return Subgraph(entities, relations, self._chunks(seeds, relations, k))

    def _chunks(self, seeds: Sequence[str], relations: Sequence[Scored[Relation]], k: int) -> tuple[Scored[Chunk], ...]:
        best: dict[str, float] = {}
        for found in relations:
            for chunk_id in found.record.chunk_ids:
                best[chunk_id] = max(best.get(chunk_id, 0.0), found.score)
        for mentions in self._graph.chunks_of(seeds, limit=5 * k).values():
            for mention in mentions:
                share = _MENTION_WEIGHT * unit(mention.score) / len(seeds)
                best[mention.record.id] = best.get(mention.record.id, 0.0) + share
        ids = sorted(best, key=lambda id: (-best[id], id))[:k]
        stored = self._texts.get_chunks(ids)
        return tuple(Scored(stored[id], best[id]) for id in ids if id in stored)


def _ranked_entities(
    around: Neighbourhood, hop: dict[str, int], scores: Sequence[tuple[Relation, float]]
) -> list[Scored[Entity]]:
    best: dict[str, float] = {}
    inward: dict[str, int] = {}
    for relation, score in scores:
        for this, that in ((relation.head_id, relation.tail_id), (relation.tail_id, relation.head_id)):
            best[this] = max(best.get(this, 0.0), score)
            inward[this] = inward.get(this, 0) + (hop[that] <= hop[this])
    order = sorted(around.entities, key=lambda e: (e[1], -best.get(e[0].id, 0.0), -inward.get(e[0].id, 0), e[0].id))
    return [Scored(entity, 1 / (1 + distance)) for entity, distance in order]
