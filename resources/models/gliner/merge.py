"""Makes one answer of what several windows and passes found. Pure functions.

They lie here and not in retrico_assets because extractors need them and resources import nothing of retrico_assets.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable

from resources.models.base import RelationSpan, Span


def resolve_overlaps(spans: Iterable[Span], *, flat: bool = True, cut: Collection[Span] = ()) -> tuple[Span, ...]:
    """The spans that stay, in order of place. The order they are given in changes nothing.

    Greedy by score; of equal scores the longer span wins, then the earlier one, then by label. Spans in ``cut`` touch
    the cut side of a window, so that they may be half an entity: they stay only where no other span says better.
    ``flat``: no two spans overlap. Otherwise one may lie inside another, but a place has one label and spans never
    overlap in part. Every occurrence of a name is kept.
    """
    ordered = sorted(set(spans), key=lambda span: (span in cut, -span.score, span.start - span.end, span.start, span.label))
    widest = max((span.end - span.start for span in ordered), default=0)
    kept: list[tuple[int, int]] = []
    result: list[Span] = []
    for span in ordered:
        near = kept[bisect_left(kept, (span.start - widest,)) : bisect_left(kept, (span.end,))]
        if any(_collide((span.start, span.end), other, flat) for other in near):
            continue
        insort(kept, (span.start, span.end))
        result.append(span)
    return tuple(sorted(result, key=lambda span: (span.start, -span.end)))


def _collide(one: tuple[int, int], other: tuple[int, int], flat: bool) -> bool:
    if one[0] >= other[1] or other[0] >= one[1]:
        return False
    inside = (one[0] <= other[0] and other[1] <= one[1]) or (other[0] <= one[0] and one[1] <= other[1])
    return flat or one == other or not inside


def merge_relations(relations: Iterable[RelationSpan], entities: Collection[Span]) -> tuple[RelationSpan, ...]:
    """Each relation once with its best score, between entities that stayed, in order of place.

    Ends are matched by their place and become the very spans of ``entities``. A relation whose end is no entity, or
    whose two ends are the same place (a self loop), is dropped.
    """
    at = {(span.start, span.end): span for span in entities}
    best: dict[tuple[Span, Span, str], float] = {}
    for found in relations:
        head, tail = at.get((found.head.start, found.head.end)), at.get((found.tail.start, found.tail.end))
        if head is None or tail is None or head == tail:
            continue
        key = (head, tail, found.relation)
        best[key] = max(found.score, best.get(key, 0.0))
    merged = [RelationSpan(head, tail, relation, score) for (head, tail, relation), score in best.items()]
    return tuple(sorted(merged, key=lambda r: (r.head.start, r.head.end, r.tail.start, r.tail.end, r.relation)))
