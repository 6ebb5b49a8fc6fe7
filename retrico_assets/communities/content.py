"""What a community is about: its best-connected members, the relations among them, and the chunks that state these."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from resources.records import Chunk, Community, Entity, Relation
from retrico_assets.communities.detect import relation_row

MEMBERS = 10
"""Members that stand for a community."""
_RELATIONS = 30
_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class Content:
    """One community. ``members`` by weighted degree inside, with that degree; ``relations`` the most telling first.

    ``chunk_ids`` first those that state most of the relations. ``parts`` are the communities of the level below, biggest first.
    """

    community: Community
    members: tuple[tuple[Entity, float], ...]
    relations: tuple[Relation, ...]
    chunk_ids: tuple[str, ...]
    parts: tuple[Community, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_connected(self) -> bool:
        """Whether any relation joins its members: else there is nothing to summarise."""
        return bool(self.relations)

    def sentences(self) -> Iterator[str]:
        """Its relations, read as sentences."""
        for relation in self.relations:
            yield f"{self.names[relation.head_id]} {relation.label} {self.names[relation.tail_id]}."

    def fingerprint(self, *more: str) -> str:
        """SHA-256 of all that a summary is made from. ``more``: what else decides about it."""
        told = (
            [(entity.label, entity.type) for entity, _ in self.members],
            list(self.sentences()),
            self.chunk_ids,
            len(self.community.member_ids),
            [(part.title, part.summary) for part in self.parts],
            more,
        )
        return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()


class Contents:
    """The contents of all communities of a graph, from one pass over its entities and relations.

    ``top_k`` members stand for a community.
    """

    def __init__(self, entities: Iterable[Entity], relations: Iterable[Relation], top_k: int = MEMBERS) -> None:
        self._entities = {entity.id: entity for entity in entities}
        self._top_k = top_k
        self._leaving: defaultdict[str, list[tuple[float, Relation]]] = defaultdict(list)
        for relation in relations:
            weight = relation_row(relation)[2] or 0.0
            if relation.head_id != relation.tail_id and weight > 0:
                self._leaving[relation.head_id].append((weight, relation))

    def of(self, community: Community, parts: Sequence[Community] = ()) -> Content:
        """What one community is about. Members that the graph no longer has are passed over."""
        members = [id_ for id_ in community.member_ids if id_ in self._entities]
        inside = set(members)
        degree: defaultdict[str, float] = defaultdict(float)
        found: list[tuple[float, Relation]] = []
        for id_ in members:
            for weight, relation in self._leaving.get(id_, ()):
                if relation.tail_id in inside:
                    degree[relation.head_id] += weight
                    degree[relation.tail_id] += weight
                    found.append((weight, relation))
        best = sorted(members, key=lambda id_: (-degree[id_], self._entities[id_].label, id_))[: self._top_k]
        top = set(best)
        # A relation between two central members tells most, then one of a central member, then a heavy one.
        found.sort(key=lambda one: (-sum(end in top for end in (one[1].head_id, one[1].tail_id)), -one[0], one[1].id))
        relations = tuple(relation for _, relation in found[:_RELATIONS])
        names = {end: self._entities[end].label for r in relations for end in (r.head_id, r.tail_id)}
        stated = Counter(chunk_id for relation in relations for chunk_id in relation.chunk_ids)
        chunk_ids = sorted(stated, key=lambda id_: (-stated[id_], id_))[:_CHUNKS]
        ordered = sorted(parts, key=lambda part: (-len(part.member_ids), part.id))
        return Content(
            community,
            tuple((self._entities[id_], degree[id_]) for id_ in best),
            relations,
            tuple(chunk_ids),
            tuple(ordered),
            names,
        )


def excerpts(content: Content, chunks: Mapping[str, Chunk]) -> list[Chunk]:
    """The chunks of a community that the text store has, each text once."""
    found = [chunks[id_] for id_ in content.chunk_ids if id_ in chunks]
    return list({chunk.text: chunk for chunk in found}.values())
