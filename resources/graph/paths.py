"""Shortest paths between entities, whatever the backend: it only has to say who is next to whom."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from resources.records import Entity, Path, Relation

Neighbours = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""For each of these entity ids the ids of the entities next to it, in order."""
Steps = Callable[[Sequence[tuple[str, str]]], Iterable[Relation]]
"""All relations, in either direction, between the two entities of each pair."""

WIDEST_FRONTIER = 5_000
_MOST_CANDIDATES = 500
_MOST_STEPS = 10_000
_FAR = 1_000_000


def shortest_paths(
    pairs: Sequence[tuple[str, str]],
    max_length: int,
    limit: int,
    neighbours: Neighbours,
    steps: Steps,
    entities_by_id: Callable[[Sequence[str]], Mapping[str, Entity]],
) -> list[list[Path]]:
    """What ``GraphStore.shortest_paths`` promises.

    Both ends of all pairs grow at once, breadth-first, one call of ``neighbours`` a level, until every pair has ``limit``
    paths or the two sides of a path of ``max_length`` have met.
    """
    ways = _ways(pairs, max_length, limit, neighbours)
    best: dict[frozenset[str], Relation] = {}
    for relation in steps(sorted({(a, b) if a < b else (b, a) for some in ways for way in some for a, b in pairwise(way)})):
        step = frozenset((relation.head_id, relation.tail_id))
        if step not in best or (-relation.score, relation.id) < (-best[step].score, best[step].id):
            best[step] = relation

    chosen: list[list[tuple[str, ...]]] = []
    for some in ways:
        # what another writer took away since the ways were found is left out
        ranked = [
            (len(way), -min(best[frozenset(step)].score for step in pairwise(way)), way)
            for way in some
            if all(frozenset(step) in best for step in pairwise(way))
        ]
        chosen.append([way for _, _, way in sorted(ranked)[:limit]])
    entities = entities_by_id(sorted({id_ for some in chosen for way in some for id_ in way}))
    return [
        [
            Path(tuple(entities[id_] for id_ in way), tuple(best[frozenset(step)] for step in pairwise(way)))
            for way in some
            if entities.keys() >= set(way)
        ]
        for some in chosen
    ]


def _ways(pairs: Sequence[tuple[str, str]], max_length: int, limit: int, neighbours: Neighbours) -> list[list[tuple[str, ...]]]:
    """For each pair the shortest ways, as entity ids: all of each length that is needed for ``limit`` of them."""
    explored = _Explored(neighbours)
    found: list[list[tuple[str, ...]]] = [[] for _ in pairs]
    wanted = {n: pair for n, pair in enumerate(pairs) if pair[0] != pair[1] and limit > 0}
    while wanted:
        before = {n: explored.reach(*pair) for n, pair in wanted.items()}
        explored.grow({id_ for n, pair in wanted.items() for id_ in explored.smaller(*pair, max_length - before[n])})
        for n, pair in list(wanted.items()):
            reach = min(explored.reach(*pair), max_length)
            if reach > before[n]:
                found[n] = explored.ways(*pair, reach, limit)
            if reach in (before[n], max_length) or len(found[n]) >= limit:
                del wanted[n]
    return found


class _Explored:
    """The part of the graph that is known: a ball around each end of a path, and the links that were met."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._links: dict[str, set[str]] = {}
        self._asked: set[str] = set()
        self._balls: dict[str, _Ball] = {}

    def _ball(self, id_: str) -> "_Ball":
        return self._balls.setdefault(id_, _Ball(id_))

    def reach(self, start: str, end: str) -> int:
        """Up to which length every way between the two lies in what is known."""
        one, other = self._ball(start), self._ball(end)
        return _FAR if not one.frontier or not other.frontier else one.depth + other.depth

    def smaller(self, start: str, end: str, missing: int) -> list[str]:
        """Which of the ends should grow: both, or for the last step the cheaper one."""
        ends = sorted((start, end), key=lambda id_: len(self._ball(id_).frontier))
        return ends[: max(0, min(missing, 2))]

    def grow(self, starts: set[str]) -> None:
        """Look one level farther around these."""
        balls = [self._ball(id_) for id_ in sorted(starts)]
        ask = sorted({id_ for ball in balls for id_ in ball.frontier} - self._asked)
        if ask:
            for id_, others in self._neighbours(ask).items():
                self._links.setdefault(id_, set()).update(others)
                for other in others:
                    self._links.setdefault(other, set()).add(id_)
            self._asked.update(ask)
        for ball in balls:
            ball.grow(self._links, WIDEST_FRONTIER)

    def ways(self, start: str, end: str, longest: int, limit: int) -> list[tuple[str, ...]]:
        """Ways of at most ``longest`` links, shortest first, of each length all (or the first 500), until there are ``limit``."""
        if self._ball(start).hops.keys().isdisjoint(self._ball(end).hops):
            return []
        to_end = _Ball(end)
        while to_end.frontier and to_end.depth < longest:
            to_end.grow(self._links)
        if start not in to_end.hops:
            return []
        found: list[tuple[str, ...]] = []
        for length in range(to_end.hops[start], longest + 1):
            found += islice(_of_length(length, start, to_end.hops, self._links), _MOST_CANDIDATES)
            if len(found) >= limit:
                break
        return found


class _Ball:
    """Entities around a start with their hops; ``frontier`` are the outermost, whose neighbours were not looked at yet."""

    def __init__(self, start: str) -> None:
        self.hops = {start: 0}
        self.frontier = [start]
        self.depth = 0

    def grow(self, links: Mapping[str, set[str]], widest: int | None = None) -> None:
        near = {other for id_ in self.frontier for other in links.get(id_, ())}
        self.frontier = sorted(near - self.hops.keys())[:widest]
        self.depth += 1
        self.hops.update(dict.fromkeys(self.frontier, self.depth))


def _of_length(length: int, start: str, to_end: Mapping[str, int], links: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Ways of exactly this many links without a repeated entity, by their ids; gives up after _MOST_STEPS."""
    way = [start]
    open_ = [_next(start, length, to_end, links)]
    for _ in range(_MOST_STEPS):
        if not open_:
            return
        id_ = next(open_[-1], None)
        if id_ is None:
            open_.pop()
            way.pop()
        elif id_ in way:
            continue
        elif len(way) == length:
            yield (*way, id_)
        else:
            way.append(id_)
            open_.append(_next(id_, length + 1 - len(way), to_end, links))


def _next(id_: str, left: int, to_end: Mapping[str, int], links: Mapping[str, set[str]]) -> Iterator[str]:
    """Neighbours from which the end can be met with one link less than ``left``."""
    if left == 1:
        return iter([other for other in links[id_] if to_end.get(other) == 0])
    return iter(sorted(other for other in links[id_] if 0 < to_end.get(other, left) < left))
