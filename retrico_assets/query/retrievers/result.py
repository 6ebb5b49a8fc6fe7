"""The check of what a strategy returned: a custom one may return anything, and the other strategies must still answer."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from resources.errors import RetrievalError
from resources.records import Chunk, Entity, Relation, Scored, Subgraph

Record = Entity | Relation | Chunk

_TEXTS: dict[type[Record], tuple[str, ...]] = {
    Entity: ("id", "label"),
    Relation: ("id", "head_id", "label", "tail_id"),
    Chunk: ("id", "document_id", "text"),
}
"""What must be text in each record."""


def checked_result(found: Any, strategy: str) -> Subgraph:
    """The result of a strategy, if it is a ranking of records with ids and finite scores.

    Raises:
        RetrievalError: names the strategy and the first thing that is wrong with its result.
    """
    if not isinstance(found, Subgraph):
        raise RetrievalError(f"Strategy {strategy!r} returned {found!r:.80}. It must return a Subgraph.")
    rankings: tuple[tuple[Sequence[Any], type[Record]], ...] = (
        (found.entities, Entity),
        (found.relations, Relation),
        (found.chunks, Chunk),
    )
    for ranking, kind in rankings:
        for fault in _faults(ranking, kind):
            raise RetrievalError(f"Strategy {strategy!r} returned {fault}. Correct the strategy.")
    return found


def _faults(ranking: Sequence[Any], kind: type[Record]) -> Iterator[str]:
    """What is wrong with a ranking of records of this kind."""
    name = kind.__name__.lower()
    for place, hit in enumerate(ranking, 1):
        if not isinstance(hit, Scored) or not isinstance(hit.record, kind):
            yield f"{hit!r:.80} as {name} {place}, which is not a scored {name}"
            return
        for attribute in _TEXTS[kind]:
            value = getattr(hit.record, attribute)
            if not isinstance(value, str):
                yield f"{name} {place} with {attribute} {value!r:.80}, which is not text"
        if not hit.record.id:
            yield f"{name} {place} with an empty id"
        if not _is_finite(hit.score):
            yield f"{name} {hit.record.id!r:.80} with the score {hit.score!r:.80}, which is not a finite number"


def _is_finite(score: Any) -> bool:
    try:
        return math.isfinite(score)
    except TypeError:
        return False
