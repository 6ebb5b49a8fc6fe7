"""Short ways to say what a document says, for tests of graph stores."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.graph.base import GraphStore
from resources.records import Chunk, Document, DocumentGraph, Mention, ResolvedMention, ResolvedRelation


@dataclass(frozen=True)
class Says:
    """A chunk: its text, mentions (surface, label, score, properties?), relations (head, label, tail, score, properties?)."""

    text: str = "some text"
    mentions: Sequence[tuple[Any, ...]] = ()
    relations: Sequence[tuple[Any, ...]] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def entity_id(surface: str) -> str:
    return f"e-{surface.casefold()}"


def relation_id(head: str, label: str, tail: str) -> str:
    return hashlib.sha256(f"{head}|{label}|{tail}".casefold().encode("utf-8", "replace")).hexdigest()[:16]


def document(id_: str, *chunks: Says) -> DocumentGraph:
    """A document graph. Chunk ids are the document's id and a number."""
    made, mentions, relations, offset = [], [], [], 0
    for index, said in enumerate(chunks):
        chunk_id = f"{id_}/{index}"
        made.append(Chunk(chunk_id, id_, index, said.text, offset, offset + len(said.text), said.metadata))
        offset += len(said.text)
        for place, (surface, label, score, *more) in enumerate(said.mentions):
            mention = Mention(chunk_id, id_, place, place + len(surface), surface, label, score, None, *more)
            mentions.append(ResolvedMention(entity_id(surface), surface.casefold(), mention))
        for head, label, tail, score, *more in said.relations:
            ids = relation_id(head, label, tail), entity_id(head), label, entity_id(tail)
            relations.append(ResolvedRelation(*ids, chunk_id, score, None, None, *more))
    text = "".join(said.text for said in chunks)
    text_hash = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    fingerprint = hashlib.sha256(repr((id_, chunks)).encode("utf-8", "replace")).hexdigest()
    return DocumentGraph(
        Document(id_, f"{id_}.txt", id_, text, text_hash), tuple(made), tuple(mentions), tuple(relations), fingerprint
    )


def pair(id_: str, head: str, label: str, tail: str, score: float = 0.5, **properties: Any) -> DocumentGraph:
    """A document with one chunk that states one relation."""
    mentions = [(head, "person", 0.9), (tail, "person", 0.8)]
    return document(id_, Says(f"{head} {label} {tail}", mentions, [(head, label, tail, score, properties)]))


def everything(store: GraphStore) -> dict[str, Any]:
    """All that a store tells, in a form that can be compared."""
    entities = list(store.entities())
    ids = [entity.id for entity in entities]
    return {
        "stats": store.stats(),
        "entities": entities,
        "relations": list(store.relations()),
        "chunks": store.chunks_of(ids, limit=10_000),
        "fingerprints": store.document_fingerprints(),
        "neighbourhood": store.neighbourhood(ids, 1, limit=100_000),
    }


def labels(entities: Iterable[Any]) -> set[str]:
    return {entity.label for entity in entities}
