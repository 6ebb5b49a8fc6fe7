"""Strategy "path": how the entities that the question names hang together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import ClassVar, Literal

from pydantic import Field

from resources.options import Options
from resources.records import Chunk, Entity, Path, Relation, Scored, Subgraph
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.retrievers.entity import EntityOptions, EntityRetriever
from retrico_assets.query.retrievers.ranking import Item, RelationScorer, once, unit, with_ends
from retrico_assets.query.sources import Need

_MENTION_WEIGHT = 0.1
_MOST_JOINED = 100


class PathOptions(Options):
    """How many pairs of entities are joined, by how many paths each and how long, and where the chunks come from.

    ``chunk_source``: those that state the relations of a path, those that mention its entities, or both.
    """

    max_pairs: int = Field(default=10, ge=1, le=100)
    max_length: int = Field(default=5, ge=1, le=10)
    paths: int = Field(default=3, ge=1, le=20)
    chunk_source: Literal["relation", "entity", "both"] = "relation"


@dataclass(frozen=True, slots=True)
class _ScoredPath:
    """A path, and for each of its steps every relation that joins the two entities, best first, with its score."""

    entities: tuple[Entity, ...]
    steps: tuple[tuple[Scored[Relation], ...], ...]
    score: float


class PathRetriever(Retriever):
    """Shortest paths between the named entities, found whichever way relations point, which are given as they truly point.

    Pairs go by the surest links, then by place; namesakes are not joined with each other. A path of n relations scores the
    product of its ends' link scores / (n + 1 - fit), the fit being the mean of what RelationScorer says of its relations, so
    that shorter paths come first and among equals those that the question asks for. Entities and relations score as their
    best path, in its order; of parallel relations the best does, the others in proportion. The n-th chunk of a relation
    counts 1/n of it; the n-th of an entity a tenth of that, times the score of its mention.

    A question that names one entity gets what is one hop around it, as the strategy "entity" does.
    """

    name: ClassVar[str] = "path"
    needs: ClassVar[frozenset[Need]] = frozenset(("names", "graph", "texts"))
    options = PathOptions
    config: PathOptions

    def search(self, question: Question, k: int) -> Subgraph:
        pairs = _pairs(question, self.config.max_pairs)
        if not pairs:
            return EntityRetriever(self.sources, EntityOptions(hops=1)).retrieve(question, k)
        paths = self._paths(question, pairs)
        relations = _best_first(relation for path in paths for step in path.steps for relation in step)[:k]
        entities = _best_first(Scored(entity, path.score) for path in paths for entity in path.entities)
        return Subgraph(with_ends(entities, relations, k), tuple(relations), self._chunks(paths, k))

    def _paths(self, question: Question, pairs: Sequence[tuple[str, str]]) -> list[_ScoredPath]:
        found = [p for some in self.graph.shortest_paths(pairs, self.config.max_length, self.config.paths) for p in some]
        if not found:
            return []
        on_paths = sorted({entity.id for path in found for entity in path.entities})
        among = self.graph.neighbourhood(on_paths, 0, limit=len(on_paths)).relations
        joining: dict[frozenset[str], dict[str, Relation]] = {}
        for relation in (*among, *(relation for path in found for relation in path.relations)):
            joining.setdefault(frozenset((relation.head_id, relation.tail_id)), {})[relation.id] = relation
        fit = RelationScorer(question.text)
        scored = [_scored(path, joining, fit, question) for path in found]
        return sorted(scored, key=lambda path: (-path.score, len(path.steps)))

    def _chunks(self, paths: Sequence[_ScoredPath], k: int) -> tuple[Scored[Chunk], ...]:
        best: dict[str, float] = {}
        if self.config.chunk_source != "entity":
            _raise(best, _stating(paths))
        if self.config.chunk_source != "relation":
            _raise(best, self._mentioning(paths, k))
        ids = sorted(best, key=lambda id: -best[id])[:k]  # equal ones stay in the order of the path
        stored = self.texts.get_chunks(ids) if ids else {}
        return tuple(Scored(stored[id], best[id]) for id in ids if id in stored)

    def _mentioning(self, paths: Sequence[_ScoredPath], k: int) -> Iterator[tuple[str, float]]:
        scores: dict[str, float] = {}
        _raise(scores, ((entity.id, path.score) for path in paths for entity in path.entities))
        for entity_id, chunks in self.graph.chunks_of(list(scores), limit=k).items():
            for place, found in enumerate(chunks, 1):
                yield found.record.id, _MENTION_WEIGHT * scores[entity_id] * unit(found.score) / place


def _pairs(question: Question, most: int) -> list[tuple[str, str]]:
    def sureness(entity: Entity) -> float:
        return question.link_score(entity.id)

    surest = sorted(question.entities, key=lambda entity: -sureness(entity))[:_MOST_JOINED]
    pairs = [(one, other) for one, other in combinations(surest, 2) if one.key != other.key]
    pairs.sort(key=lambda pair: -sureness(pair[0]) * sureness(pair[1]))
    return [(one.id, other.id) for one, other in pairs[:most]]


def _scored(
    path: Path, joining: Mapping[frozenset[str], Mapping[str, Relation]], fit: RelationScorer, question: Question
) -> _ScoredPath:
    steps = []
    for one, other in pairwise(path.entities):
        fits = [Scored(relation, fit(relation, 1.0)) for relation in joining[frozenset((one.id, other.id))].values()]
        steps.append(sorted(fits, key=lambda found: (-found.score, found.record.id)))
    mean = sum(step[0].score for step in steps) / len(steps)
    sure = question.link_score(path.entities[0].id) * question.link_score(path.entities[-1].id)
    score = sure / (len(steps) + 1 - mean)
    return _ScoredPath(path.entities, tuple(_in_proportion(step, score) for step in steps), score)


def _in_proportion(step: Sequence[Scored[Relation]], score: float) -> tuple[Scored[Relation], ...]:
    best = step[0].score
    return tuple(Scored(found.record, score * found.score / best if best else score) for found in step)


def _stating(paths: Sequence[_ScoredPath]) -> Iterator[tuple[str, float]]:
    for relation in (relation for path in paths for step in path.steps for relation in step):
        for place, chunk_id in enumerate(relation.record.chunk_ids, 1):
            yield chunk_id, relation.score / place


def _raise(best: dict[str, float], scores: Iterable[tuple[str, float]]) -> None:
    """Keep the greatest score of each id."""
    for id, score in scores:
        best[id] = max(score, best.get(id, 0.0))


def _best_first(found: Iterable[Scored[Item]]) -> list[Scored[Item]]:
    """Each item with its greatest score; equal ones as they came."""
    return list(once(sorted(found, key=lambda one: -one.score)))
