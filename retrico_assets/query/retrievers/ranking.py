"""Rules that the retrievers share: how well a relation fits the words of a question, and what surrounds ranked chunks."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from resources.graph.base import GraphStore
from resources.records import Chunk, Entity, Neighbourhood, Relation, Scored, Subgraph
from resources.text.names import identity_key
from resources.text.stopwords import FUNCTION_WORDS
from resources.texts.base import TextStore

Item = TypeVar("Item", Entity, Relation, Chunk)

_SHORTEST_STEM = 4
_UNFITTING = 0.25
_MENTION_WEIGHT = 0.1
_FAMILIES = (
    "birth born bear birthplace native",
    "death die died dead dies buried",
    "wife husband spouse married marry marriage wed",
    "child children son daughter father mother parent parents",
    "write wrote written writer author authored",
    "make made maker",
    "win won winner award awarded",
    "lead led leader head chief",
    "buy bought acquired acquire",
    "teach taught teacher",
    "live lived lives residence reside resides",
    "work works worked employer employed job",
)
_FAMILY = {word: number for number, family in enumerate(_FAMILIES) for word in family.split()}


def words_of(text: str) -> frozenset[str]:
    """The folded words of a text; underscores and hyphens of a label part words."""
    return frozenset(identity_key(text).split())


def fit(label: str, question_words: frozenset[str]) -> float:
    """How much of a relation's label the question says, 0 to 1: the share of its words that a word of the question matches.

    Words match when they are equal, of one family of forms ("born", "birth"), or begin alike: at least four letters, and
    half of the longer word ("located", "location"). Little words of the label ("in", "of") don't count beside others.
    """
    words = words_of(label)
    words = words - FUNCTION_WORDS or words
    if not words:
        return 0.0
    return sum(any(_alike(word, other) for other in question_words) for word in words) / len(words)


def _alike(one: str, other: str) -> bool:
    if one == other or (one in _FAMILY and _FAMILY[one] == _FAMILY.get(other)):
        return True
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common >= max(_SHORTEST_STEM, math.ceil(max(len(one), len(other)) / 2))


class RelationScorer:
    """Scores relations for one question; a label is compared with it once.

    Score = nearness x the relation's own score (0 to 1) x (1/4 + 3/4 of the label's fit), so a relation that the question
    asks for beats one of the same distance that it doesn't.
    """

    def __init__(self, question: str) -> None:
        self._words = words_of(question)
        self._fits: dict[str, float] = {}

    def __call__(self, relation: Relation, nearness: float) -> float:
        label_fit = self._fits.get(relation.label)
        if label_fit is None:
            label_fit = self._fits[relation.label] = fit(relation.label, self._words)
        return nearness * unit(relation.score) * (_UNFITTING + (1 - _UNFITTING) * label_fit)


def unit(score: float) -> float:
    """The score within 0 to 1; what is no number counts as 0."""
    return min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0


def ranked_relations(scores: Iterable[tuple[Relation, float]], k: int) -> tuple[Scored[Relation], ...]:
    """The best ``k`` relations, equal scores by id."""
    best = sorted(scores, key=lambda pair: (-pair[1], pair[0].id))[:k]
    return tuple(Scored(relation, score) for relation, score in best)


def with_ends(ranked: Sequence[Scored[Entity]], relations: Sequence[Scored[Relation]], k: int) -> tuple[Scored[Entity], ...]:
    """The first ``k`` entities, then those further down that are an end of one of the relations."""
    ends = {end for found in relations for end in (found.record.head_id, found.record.tail_id)}
    return (*ranked[:k], *(found for found in ranked[k:] if found.record.id in ends))


def around_chunks(question: str, chunks: Sequence[Scored[Chunk]], graph: GraphStore, k: int) -> Subgraph:
    """Ranked chunks with the entities that they mention and the relations that they state.

    An entity scores 1 / the rank of the best chunk that mentions it (then more chunks, then id come first); a relation as
    RelationScorer says, that being its nearness. Two round trips.
    """
    if not chunks:
        return Subgraph()
    rank = {found.record.id: place for place, found in enumerate(chunks, 1)}
    entities: dict[str, Entity] = {}
    mentioned: dict[str, list[int]] = {}
    for chunk_id, named in graph.entities_of(list(rank)).items():
        for entity in named:
            entities[entity.id] = entity
            mentioned.setdefault(entity.id, []).append(rank[chunk_id])
    if not entities:
        return Subgraph(chunks=tuple(chunks[:k]))
    ids = sorted(entities, key=lambda id: (min(mentioned[id]), -len(mentioned[id]), id))
    ranked = [Scored(entities[id], 1 / min(mentioned[id])) for id in ids]
    relations = _stated(graph.neighbourhood(ids, 0, limit=len(ids)).relations, rank, RelationScorer(question), k)
    return Subgraph(with_ends(ranked, relations, k), relations, tuple(chunks[:k]))


def _stated(
    relations: Sequence[Relation], rank: Mapping[str, int], score: RelationScorer, k: int
) -> tuple[Scored[Relation], ...]:
    scores = []
    for relation in relations:
        places = [rank[chunk_id] for chunk_id in relation.chunk_ids if chunk_id in rank]
        if places:
            scores.append((relation, score(relation, 1 / min(places))))
    return ranked_relations(scores, k)


def around_entities(
    question: str, seeds: Mapping[str, float], around: Neighbourhood, texts: TextStore, graph: GraphStore, k: int
) -> Subgraph:
    """Entities that score 0 to 1, what is around them, and the chunks that state or mention it.

    Each hop away from a seed halves its score; an entity has the best that reaches it, equals being ordered by the best of
    their relations, then by id. A relation scores as RelationScorer says, its nearness being the geometric mean of its ends;
    chunks as stating_chunks says, for the best ``k`` seeds.
    """
    scores = _spread(seeds, around)
    score = RelationScorer(question)
    found = [(r, score(r, math.sqrt(scores[r.head_id] * scores[r.tail_id]))) for r in around.relations]
    best: dict[str, float] = {}
    for relation, value in found:
        for end in (relation.head_id, relation.tail_id):
            best[end] = max(best.get(end, 0.0), value)
    order = sorted((entity for entity, _ in around.entities), key=lambda e: (-scores[e.id], -best.get(e.id, 0.0), e.id))
    relations = ranked_relations(found, k)
    entities = with_ends([Scored(entity, scores[entity.id]) for entity in order], relations, k)
    first = {entity.id: seeds[entity.id] for entity in order if entity.id in seeds}
    return Subgraph(entities, relations, stating_chunks(relations, dict(islice(first.items(), k)), texts, graph, k))


def stating_chunks(
    relations: Sequence[Scored[Relation]], seeds: Mapping[str, float], texts: TextStore, graph: GraphStore, k: int
) -> tuple[Scored[Chunk], ...]:
    """The best ``k`` chunks: the best score of the relations that one states, plus a little for mentioning the seeds.

    That little is a tenth of the mean over the seeds of their score x the score of the mention.
    """
    best: dict[str, float] = {}
    for found in relations:
        for chunk_id in found.record.chunk_ids:
            best[chunk_id] = max(best.get(chunk_id, 0.0), found.score)
    for entity_id, mentions in (graph.chunks_of(list(seeds), limit=5 * k) if seeds else {}).items():
        for mention in mentions:
            share = _MENTION_WEIGHT * seeds[entity_id] * unit(mention.score) / len(seeds)
            best[mention.record.id] = best.get(mention.record.id, 0.0) + share
    ids = sorted(best, key=lambda id: (-best[id], id))[:k]
    stored = texts.get_chunks(ids) if ids else {}
    return tuple(Scored(stored[id], best[id]) for id in ids if id in stored)


def _spread(seeds: Mapping[str, float], around: Neighbourhood) -> dict[str, float]:
    scores = {entity.id: seeds.get(entity.id, 0.0) for entity, _ in around.entities}
    for _ in range(max((hop for _, hop in around.entities), default=0)):
        before = dict(scores)
        for relation in around.relations:
            for this, that in ((relation.head_id, relation.tail_id), (relation.tail_id, relation.head_id)):
                scores[that] = max(scores[that], before[this] / 2)
    return scores


def once(ranking: Iterable[Scored[Item]]) -> Iterator[Scored[Item]]:
    """Each item where it stands first, by id."""
    seen: set[str] = set()
    for found in ranking:
        if found.record.id not in seen:
            seen.add(found.record.id)
            yield found
