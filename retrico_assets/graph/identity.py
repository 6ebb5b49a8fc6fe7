"""Which mentions name the same entity, and the ids of entities and relations.

Ids are deterministic, so that a rebuild writes nothing and two machines agree.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from resources.records import Mention, RelationMention, ResolvedMention, ResolvedRelation
from resources.text.characters import is_blank
from resources.text.names import identity_key

IdentityPolicy = Literal["name", "name_and_type"]

_NAMESPACE = uuid.UUID("7c1f0a52-95d5-5c3e-9a53-5a3d0c1d6b0e")


def entity_id(key: str, label: str, linked_id: str | None, policy: IdentityPolicy) -> str:
    """A knowledge base's id if there is one, else a UUID of the identity key (and the label, if that tells namesakes apart)."""
    if linked_id and not is_blank(linked_id):
        return linked_id.strip()
    return _uuid("entity", key, label.casefold() if policy == "name_and_type" else "")


def relation_id(head_id: str, label: str, tail_id: str, start_date: str | None, end_date: str | None) -> str:
    """UUID of the triple and its dates: one fact in two periods is two relations."""
    return _uuid("relation", head_id, label, tail_id, start_date or "", end_date or "")


def _uuid(*parts: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, json.dumps(parts, ensure_ascii=False)))


@dataclass(frozen=True)
class Resolution:
    """Mentions with their entities, relations with their ends, and what was left out, by reason."""

    mentions: tuple[ResolvedMention, ...] = ()
    relations: tuple[ResolvedRelation, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


def resolve(mentions: Sequence[Mention], relations: Iterable[RelationMention], policy: IdentityPolicy = "name") -> Resolution:
    """Find the entity of every mention and of both ends of every relation.

    An end is the mention at its place in the chunk, else a mention of the same name in the same document. These are dropped and
    counted: mentions without a letter or digit or with a blank label, relations with a blank label or with an end that no
    mention names, and self-loops (both ends are one entity).
    """
    dropped: Counter[str] = Counter()
    resolved = []
    for mention in mentions:
        key = identity_key(mention.text)
        if not key:
            dropped["mention without a name"] += 1
        elif is_blank(mention.label):
            dropped["mention without a label"] += 1
        else:
            resolved.append(ResolvedMention(entity_id(key, mention.label, mention.linked_id, policy), key, mention))
    finder = _EndFinder(resolved)
    edges: dict[tuple[str, str], ResolvedRelation] = {}
    for relation in relations:
        reason, edge = _resolve_relation(relation, finder)
        if edge is None:
            dropped[reason] += 1
            continue
        evidence = (edge.relation_id, edge.chunk_id)
        if evidence not in edges or edges[evidence].score < edge.score:
            edges[evidence] = edge
    return Resolution(tuple(resolved), tuple(edges.values()), dict(dropped))


class _EndFinder:
    """Mentions by place and by name. Where several labels share a place, the wanted label wins, else the best score."""

    def __init__(self, mentions: Iterable[ResolvedMention]) -> None:
        self._by_place: dict[tuple[str, int, int], dict[str, str]] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        for resolved in sorted(mentions, key=lambda m: -m.mention.score):
            mention = resolved.mention
            place = (mention.chunk_id, mention.start, mention.end)
            self._by_place.setdefault(place, {}).setdefault(mention.label, resolved.entity_id)
            self._by_name.setdefault((mention.document_id, resolved.key), resolved.entity_id)

    def entity(self, chunk_id: str, document_id: str, start: int, end: int, text: str, label: str) -> str | None:
        by_label = self._by_place.get((chunk_id, start, end))
        if by_label:
            return by_label.get(label) or next(iter(by_label.values()))
        return self._by_name.get((document_id, identity_key(text)))


def _resolve_relation(relation: RelationMention, finder: _EndFinder) -> tuple[str, ResolvedRelation | None]:
    label = (relation.relation or "").strip()
    if is_blank(label):
        return "relation without a label", None
    r = relation
    head = finder.entity(r.chunk_id, r.document_id, r.head_start, r.head_end, r.head_text, r.head_label)
    tail = finder.entity(r.chunk_id, r.document_id, r.tail_start, r.tail_end, r.tail_text, r.tail_label)
    if head is None or tail is None:
        return "relation whose head or tail no mention names", None
    if head == tail:
        return "self-loop", None
    edge = ResolvedRelation(
        relation_id=relation_id(head, label, tail, r.start_date, r.end_date),
        head_id=head,
        label=label,
        tail_id=tail,
        chunk_id=r.chunk_id,
        score=r.score,
        start_date=r.start_date,
        end_date=r.end_date,
        properties=r.properties,
    )
    return "", edge
