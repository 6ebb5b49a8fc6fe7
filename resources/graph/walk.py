"""Walking a graph, whatever the backend: the window of dates, and breadth-first expansion."""

from collections.abc import Callable, Iterable, Sequence

from resources.records import Relation

Near = Callable[[Sequence[str], int], Iterable[str]]
"""Ids of the entities next to these, ordered; at least the first so many of them."""


def breadth_first(seeds: Iterable[str], hops: int, limit: int, near: Near) -> dict[str, int]:
    """Distances in hops from the seeds, nearest first, then by id.

    Seeds are always kept. Other entities are added until there are ``limit`` entities.
    """
    distances = dict.fromkeys(sorted(set(seeds)), 0)
    frontier = list(distances)
    for hop in range(1, hops + 1):
        room = limit - len(distances)
        if not frontier or room < 1:
            break
        # Some of those that are near are known already, at most all of them.
        frontier = [id_ for id_ in near(frontier, limit + len(distances)) if id_ not in distances][:room]
        distances.update(dict.fromkeys(frontier, hop))
    return distances


def is_active(relation: Relation, active_after: str | None, active_before: str | None) -> bool:
    """Whether the relation lies in the window of dates of ``GraphStore``."""
    ended = active_after is not None and bool(relation.end_date) and str(relation.end_date) < active_after
    not_begun = active_before is not None and bool(relation.start_date) and str(relation.start_date) > active_before
    return not ended and not not_begun
