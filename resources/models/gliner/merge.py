"""Merges what several windows and passes found. Pure functions."""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable

from resources.models.base import RelationSpan, Span


def resolve_overlaps(spans: Iterable[Span], *, flat: bool = True, cut: Collection[Span] = ()) -> tuple[Span, ...]:
    """The spans that stay, in order of place. The order of the input does not matter.

    Greedy by score; of equal scores the longer span wins, then the earlier one, then by label. Spans in ``cut`` touch
    the cut side of a window and may be half an entity: they stay only where no other span overlaps them. With ``flat``
    no two spans overlap; without it one may lie inside another, but a place has one label and spans never overlap in
    part. Every occurrence of a name is kept.
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


def _collide(first: tuple[int, int], second: tuple[int, int], flat: bool) -> bool:
    if first[0] >= second[1] or second[0] >= first[1]:
        return False
    first_holds_second = first[0] <= second[0] and second[1] <= first[1]
    second_holds_first = second[0] <= first[0] and first[1] <= second[1]
    return flat or first == second or not (first_holds_second or second_holds_first)


def merge_relations(relations: Iterable[RelationSpan], entities: Collection[Span]) -> tuple[RelationSpan, ...]:
    """Each relation once with its best score, between these entities, in order of place.

    Heads and tails are matched by their place and become the very spans of ``entities``. A relation whose head or tail is
    not among them, or whose head and tail are the same place (a self loop), is dropped.
    """
    by_place = {(span.start, span.end): span for span in entities}
    best: dict[tuple[Span, Span, str], float] = {}
    for relation in relations:
        head = by_place.get((relation.head.start, relation.head.end))
        tail = by_place.get((relation.tail.start, relation.tail.end))
        if head is None or tail is None or head == tail:
            continue
        key = (head, tail, relation.relation)
        best[key] = max(relation.score, best.get(key, 0.0))
    merged = [RelationSpan(head, tail, relation, score) for (head, tail, relation), score in best.items()]
    return tuple(sorted(merged, key=lambda r: (r.head.start, r.head.end, r.tail.start, r.tail.end, r.relation)))
