"""What a write means, whatever the backend: checks, and how mentions make an entity and evidence makes a relation."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.errors import StoreError
from resources.graph.encoding import clean_text, decode_properties, edge_type, encode_properties, stored_float
from resources.records import DocumentGraph, Entity, Relation, ResolvedMention, ResolvedRelation

_LONGEST_ID = 500
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def check_documents(documents: Sequence[DocumentGraph]) -> None:
    """Raise StoreError for what no store may write, before anything is written.

    Ids must be text that is not blank, and chunk ids unique; mentions and relations must lie in their document's own chunks, with
    finite scores; a relation has a label and both its ends are mentioned by its own document.
    """
    _check_unique("document", (graph.document.id for graph in documents))
    _check_unique("chunk", (chunk.id for graph in documents for chunk in graph.chunks))
    for graph in documents:
        _check_document(graph)


def _check_unique(kind: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for row, id_ in enumerate(ids):
        _check_id(kind, row, id_)
        if id_ in seen:
            raise StoreError(f"The {kind} id {id_!r} comes twice (again in row {row}). Ids must be unique over all documents.")
        seen.add(id_)


def is_id(id_: Any) -> bool:
    """Whether this can be an id: the index passes over outer blanks and control characters, and doesn't find very long texts."""
    return isinstance(id_, str) and id_ == id_.strip() and 0 < len(id_) <= _LONGEST_ID and not _CONTROL.search(id_)


def _check_id(kind: str, row: int, id_: Any) -> None:
    if not is_id(id_):
        raise StoreError(
            f"Row {row} of the {kind}s has the id {id_!r:.100}. An id is text of 1 to {_LONGEST_ID} characters without"
            " blanks around it or control characters in it. Give the row one."
        )


def _check_document(graph: DocumentGraph) -> None:
    where = f"document {graph.document.id!r}"
    chunk_ids = {chunk.id for chunk in graph.chunks}
    if not isinstance(graph.fingerprint, str) or not graph.fingerprint:
        raise StoreError(f"{where} has no fingerprint. Give it one that identifies its content.")
    for chunk in graph.chunks:
        if chunk.document_id != graph.document.id:
            raise StoreError(f"Chunk {chunk.id!r} of {where} says that it belongs to {chunk.document_id!r}.")
    entity_ids: set[str] = set()
    for row, resolved in enumerate(graph.mentions):
        if resolved.entity_id not in entity_ids:
            _check_id("entity mention", row, resolved.entity_id)
            entity_ids.add(resolved.entity_id)
        _check_evidence("Mention", row, where, resolved.mention.chunk_id, chunk_ids, resolved.mention.score)
    for row, relation in enumerate(graph.relations):
        _check_id("relation", row, relation.relation_id)
        edge_type(relation.label)
        _check_evidence("Relation", row, where, relation.chunk_id, chunk_ids, relation.score)
        for end in (relation.head_id, relation.tail_id):
            if end not in entity_ids:
                raise StoreError(
                    f"Relation {row} of {where} ({relation.label!r}) has the end {end!r}, which no mention of the document names."
                    " Drop the relation or add the mention."
                )


def _check_evidence(kind: str, row: int, where: str, chunk_id: str, chunk_ids: set[str], score: float) -> None:
    if chunk_id not in chunk_ids:
        raise StoreError(f"{kind} {row} of {where} lies in chunk {chunk_id!r}, which the document does not have.")
    if not isinstance(score, int | float) or not math.isfinite(score):
        raise StoreError(f"{kind} {row} of {where} has the score {score!r}. A score is a finite number.")


def row_count(graph: DocumentGraph) -> int:
    return 1 + len(graph.chunks) + len(graph.mentions) + len(graph.relations)


def batches(documents: Sequence[DocumentGraph], rows: int) -> Iterator[list[DocumentGraph]]:
    """Runs of whole documents, each of at most ``rows`` rows, or of one larger document."""
    batch: list[DocumentGraph] = []
    size = 0
    for graph in documents:
        if batch and size + row_count(graph) > rows:
            yield batch
            batch, size = [], 0
        batch.append(graph)
        size += row_count(graph)
    if batch:
        yield batch


def mention_order(document_id: str, chunk_id: str, start: int, end: int, label: str, text: str) -> tuple[Any, ...]:
    """The order in which properties of mentions are merged: a later mention's value wins."""
    return (document_id, chunk_id, start, end, label, text)


def entity_of(entity_id: str, mentions: Iterable[ResolvedMention]) -> Entity:
    """The entity that these mentions make.

    The display name is the most frequent surface, the type the label with the greatest summed score (compared at 6 digits), both
    the alphabetically first of equals; the key is the alphabetically first of the mentions' keys.
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


def is_active(relation: Relation, active_after: str | None, active_before: str | None) -> bool:
    """Whether the relation lies in the window of dates of ``GraphStore``."""
    ended = active_after is not None and bool(relation.end_date) and str(relation.end_date) < active_after
    not_begun = active_before is not None and bool(relation.start_date) and str(relation.start_date) > active_before
    return not ended and not not_begun


def display_name(surfaces: Mapping[str, int]) -> str:
    """The most frequent surface, the alphabetically first of equals."""
    return min(surfaces, key=lambda text: (-surfaces[text], text))


def merged(properties: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Properties as they read back; where a key comes several times, the last value wins."""
    together: dict[str, Any] = {}
    for some in properties:
        together.update({key: value for key, value in some.items() if value is not None})
    return decode_properties(encode_properties(together)) if together else {}


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
    def place(self) -> tuple[str, str, str, str]:
        """Where its edge is found: edge type, head id, tail id, id."""
        return (edge_type(self.label), self.head_id, self.tail_id, self.id)

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
    """Relations by id. What one chunk says several times counts once, with its best score."""
    evidence: dict[str, dict[str, tuple[float, Mapping[str, Any]]]] = {}
    first: dict[str, ResolvedRelation] = {}
    for relation in relations:
        known = first.setdefault(relation.relation_id, relation)
        if (known.head_id, known.label, known.tail_id) != (relation.head_id, relation.label, relation.tail_id):
            raise StoreError(
                f"Relation id {relation.relation_id!r} stands for two different triples: {known!r} and {relation!r}."
            )
        chunks = evidence.setdefault(relation.relation_id, {})
        said = (stored_float(relation.score), relation.properties)
        if relation.chunk_id not in chunks or chunks[relation.chunk_id][0] < said[0]:
            chunks[relation.chunk_id] = said
    return {
        id_: RelationState(id_, r.head_id, clean_text(r.label), r.tail_id, r.start_date, r.end_date, evidence[id_])
        for id_, r in first.items()
    }


def combined(stored: RelationState | None, gone_chunks: set[str], said: RelationState | None) -> RelationState | None:
    """The relation after some chunks went away and others were added; None if no evidence is left."""
    base = said or stored
    if base is None:
        return None
    kept = {} if stored is None else {c: e for c, e in stored.evidence.items() if c not in gone_chunks}
    evidence = {**kept, **(said.evidence if said else {})}
    if not evidence:
        return None
    return RelationState(base.id, base.head_id, base.label, base.tail_id, base.start_date, base.end_date, evidence)
