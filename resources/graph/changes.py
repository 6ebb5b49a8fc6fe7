"""What a write means, whatever the backend: how mentions make an entity, and evidence makes a relation."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from resources.errors import StoreError
from resources.graph.encoding import clean_text, decode_properties, edge_type, encode_properties, stored_float
from resources.records import Entity, Relation, ResolvedMention, ResolvedRelation


def mention_order(document_id: str, chunk_id: str, start: int, end: int, label: str, text: str) -> tuple[Any, ...]:
    """The sort key by which properties of mentions are merged: a later mention's value wins."""
    return (document_id, chunk_id, start, end, label, text)


def entity_of(entity_id: str, mentions: Iterable[ResolvedMention]) -> Entity:
    """Make the entity of these mentions.

    The display name is the most frequent surface. The type is the label with the greatest sum of scores, compared at 6
    digits. Ties go to the alphabetically first. The key is the alphabetically first of the mentions' keys.
    """
    surfaces: Counter[str] = Counter()
    types: dict[str, float] = defaultdict(float)
    keys = set()
    described = []
    for resolved in mentions:
        mention = resolved.mention
        surfaces[mention.text] += 1
        types[mention.label] += mention.score
        keys.add(resolved.key)
        if mention.properties:
            described.append(mention)
    described.sort(key=lambda m: mention_order(m.document_id, m.chunk_id, m.start, m.end, m.label, m.text))
    return Entity(
        id=entity_id,
        label=clean_text(display_name(surfaces)),
        key=clean_text(min(keys)),
        type=clean_text(min(types, key=lambda label: (-math.floor(types[label] * 1e6 + 0.5), label))),
        properties=merged(mention.properties for mention in described),
    )


def display_name(surfaces: Mapping[str, int]) -> str:
    """The most frequent surface; a tie goes to the alphabetically first."""
    return min(surfaces, key=lambda text: (-surfaces[text], text))


def merged(properties: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Properties as they read back; where a key comes several times, the last value wins."""
    together: dict[str, Any] = {}
    for some in properties:
        together.update({key: value for key, value in some.items() if value is not None})
    return decode_properties(encode_properties(together)) if together else {}


class Place(NamedTuple):
    """Where the edge of a relation is found."""

    edge_type: str
    head_id: str
    tail_id: str
    id: str


def relation_place(relation: ResolvedRelation) -> Place:
    return Place(edge_type(relation.label), relation.head_id, relation.tail_id, relation.relation_id)


@dataclass(frozen=True, slots=True)
class RelationState:
    """A relation with its evidence by chunk id: the score, and the properties that the chunk gives it."""

    id: str
    head_id: str
    label: str
    tail_id: str
    start_date: str | None
    end_date: str | None
    evidence: Mapping[str, tuple[float, Mapping[str, Any]]]

    @property
    def place(self) -> Place:
        return Place(edge_type(self.label), self.head_id, self.tail_id, self.id)

    def record(self) -> Relation:
        chunk_ids = tuple(sorted(self.evidence))
        return Relation(
            id=self.id,
            head_id=self.head_id,
            label=self.label,
            tail_id=self.tail_id,
            score=max(score for score, _ in self.evidence.values()),
            chunk_ids=chunk_ids,
            start_date=self.start_date,
            end_date=self.end_date,
            properties=merged(self.evidence[chunk_id][1] for chunk_id in chunk_ids),
        )


def relation_states(relations: Iterable[ResolvedRelation]) -> dict[str, RelationState]:
    """Collect the evidence of each relation, by id. Of several statements in one chunk the best-scored counts.

    Raises:
        StoreError: two different triples have the same relation id.
    """
    evidence: dict[str, dict[str, tuple[float, Mapping[str, Any]]]] = {}
    first: dict[str, ResolvedRelation] = {}
    for relation in relations:
        known = first.setdefault(relation.relation_id, relation)
        if _triple(known) != _triple(relation):
            raise StoreError(
                f"The relation id {relation.relation_id!r} belongs to two different triples: {_triple(known)} and"
                f" {_triple(relation)}. Relation ids must be unique."
            )
        chunks = evidence.setdefault(relation.relation_id, {})
        score = stored_float(relation.score)
        if relation.chunk_id not in chunks or chunks[relation.chunk_id][0] < score:
            chunks[relation.chunk_id] = (score, relation.properties)
    return {
        id_: RelationState(id_, r.head_id, clean_text(r.label), r.tail_id, r.start_date, r.end_date, evidence[id_])
        for id_, r in first.items()
    }


def _triple(relation: ResolvedRelation) -> tuple[str, str, str]:
    return (relation.head_id, relation.label, relation.tail_id)


def combined(stored: RelationState | None, gone_chunks: Set[str], new: RelationState | None) -> RelationState | None:
    """The relation after some chunks went away and new evidence came; None if no evidence is left."""
    base = new or stored
    if base is None:
        return None
    kept = {} if stored is None else {c: e for c, e in stored.evidence.items() if c not in gone_chunks}
    evidence = {**kept, **(new.evidence if new else {})}
    if not evidence:
        return None
    return RelationState(base.id, base.head_id, base.label, base.tail_id, base.start_date, base.end_date, evidence)
