"""Provider "neo4j": a graph of this project's schema in a Neo4j database. It is only read."""

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import ClassVar, Self

from resources.graph.base import GraphStore
from resources.graph.neo4j.options import Neo4jOptions
from resources.graph.neo4j.store import Neo4jGraphStore
from resources.records import Entity, Relation, Scored, Subgraph
from resources.secrets import mask_secrets
from resources.text.names import identity_key
from retrico_assets.query.providers.base import GraphProvider
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.question.names import candidate_names
from retrico_assets.query.question.question import LONGEST_QUESTION, Question
from retrico_assets.query.retrievers.ranking import RelationScorer, ranked_relations, unit, with_ends
from retrico_assets.query.sources import Sources

_MOST_ROWS = 1000
_MENTION_WEIGHT = 0.1


class Neo4jProvider(GraphProvider):
    """Claims when a Neo4j URI is set (``retrieval.neo4j.uri`` or NEO4J_URI) and the driver can be imported."""

    name: ClassVar[str] = "neo4j"

    def __init__(self, options: Neo4jOptions) -> None:
        """Nothing is connected yet. Without a password the login is anonymous."""
        self._options = options

    @classmethod
    def claims(cls, project: ProjectFacts) -> bool:
        address = project.retrieval.neo4j.address
        if address and find_spec("neo4j") is None:
            _warn_once(address)
            return False
        return bool(address)

    @classmethod
    def open(cls, project: ProjectFacts, sources: Sources) -> Self:
        return cls(project.retrieval.neo4j)

    def rank(self, question: Question, k: int) -> Subgraph:
        with Neo4jGraphStore(self._options, read_only=True) as store:
            return rank_named(store, question, k)


def rank_named(store: GraphStore, question: Question, k: int) -> Subgraph:
    """Rank what a graph holds one hop around the entities that the question names by identity key.

    Of names inside each other the longest counts. Named entities score 1, those around them 1/2. Relations score as
    RelationScorer says, with nearness 1/2. A chunk scores as the best kept relation that it states, plus 0.1 times the best
    score with which it mentions a named entity.
    """
    keys = name_keys(question)
    named = _longest(store.find_entities(keys=keys)) if keys else []
    if not named:
        return Subgraph()
    ids = [entity.id for entity in named]
    around = _relations_of(store, ids)
    score = RelationScorer(question.text)
    relations = ranked_relations([(relation, score(relation, 0.5)) for relation in around], k)
    chunk_scores = _mention_scores(store, ids)
    best: dict[str, float] = {}
    for scored in relations:
        for chunk_id in scored.record.chunk_ids:
            best[chunk_id] = max(best.get(chunk_id, 0.0), scored.score)
    for chunk_id, value in best.items():
        chunk_scores[chunk_id] = chunk_scores.get(chunk_id, 0.0) + value
    ranked = sorted(chunk_scores, key=lambda id_: (-chunk_scores[id_], id_))[:k]
    chunks = {chunk.id: chunk for chunk in store.find_chunks(ranked)}
    entities = with_ends(_scored_entities(store, named, around), relations, k)
    return Subgraph(entities, relations, tuple(Scored(chunks[id_], chunk_scores[id_]) for id_ in ranked if id_ in chunks))


def _relations_of(store: GraphStore, entity_ids: Sequence[str]) -> list[Relation]:
    """Relations that start or end at these entities, best score first, then by id."""
    starting = store.find_relations(head_ids=entity_ids, limit=_MOST_ROWS)
    ending = store.find_relations(tail_ids=entity_ids, limit=_MOST_ROWS)
    relations = {relation.id: relation for relation in (*starting, *ending)}
    return sorted(relations.values(), key=lambda relation: (-relation.score, relation.id))[:_MOST_ROWS]


def _mention_scores(store: GraphStore, entity_ids: Sequence[str]) -> dict[str, float]:
    """Weighted score of the best mention of one of these entities, by chunk id."""
    scores: dict[str, float] = {}
    for mentions in store.chunks_of(entity_ids, limit=_MOST_ROWS).values():
        for scored in mentions:
            value = _MENTION_WEIGHT * unit(scored.score)
            scores[scored.record.id] = max(value, scores.get(scored.record.id, value))
    return scores


def name_keys(question: Question) -> list[str]:
    """Identity keys of everything in the question that may be a name: its mentions, and runs of its words."""
    mentions = {identity_key(mention.text) for mention in question.mentions}
    candidates = candidate_names(question.text[:LONGEST_QUESTION])
    return sorted((mentions | {key for name in candidates for key in (name.key, name.singular)}) - {""})


def _longest(named: Iterable[Entity]) -> list[Entity]:
    """The entities whose name is not part of the name of another."""
    entities = list(named)
    keys = {entity.key for entity in entities}

    def is_part(key: str) -> bool:
        return any(key != other and (f" {key} " in f" {other} " or (not key.isascii() and key in other)) for other in keys)

    return [entity for entity in entities if not is_part(entity.key)]


def _scored_entities(store: GraphStore, named: Sequence[Entity], around: Iterable[Relation]) -> list[Scored[Entity]]:
    """The named entities, then those at the other ends of the relations; both by id."""
    known = {entity.id for entity in named}
    others = {end for relation in around for end in (relation.head_id, relation.tail_id)} - known
    return [
        *(Scored(entity, 1.0) for entity in sorted(named, key=lambda entity: entity.id)),
        *(Scored(entity, 0.5) for entity in store.find_entities(ids=sorted(others))),
    ]


@lru_cache
def _warn_once(address: str) -> None:
    logging.getLogger(__name__).warning(
        "A Neo4j URI is set (%s), but the package neo4j is not installed: Neo4j is not used. Install neo4j.",
        mask_secrets(address),
    )
