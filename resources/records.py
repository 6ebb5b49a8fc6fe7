"""What stores hold and rooms pass on.

Every offset is a code point in the document's stored text, half-open: ``document.text[r.start:r.end] == r.text``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A source text, decoded and cleaned. ``text_hash`` is the SHA-256 of the text in UTF-8."""

    id: str
    source: str
    title: str
    text: str
    text_hash: str
    metadata: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document. ``index`` counts from 0 inside the document."""

    id: str
    document_id: str
    index: int
    text: str
    start: int
    end: int
    metadata: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a chunk names an entity. ``label``: the type the extractor gave. ``linked_id``: a knowledge base's id."""

    chunk_id: str
    document_id: str
    start: int
    end: int
    text: str
    label: str
    score: float
    linked_id: str | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RelationMention:
    """A place where a chunk states a relation between two of its mentions."""

    chunk_id: str
    document_id: str
    head_start: int
    head_end: int
    head_text: str
    head_label: str
    tail_start: int
    tail_end: int
    tail_text: str
    tail_label: str
    relation: str
    score: float
    start_date: str | None = None
    end_date: str | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedMention:
    """A mention and the entity it names. ``key`` is the identity key of the entity's name."""

    entity_id: str
    key: str
    mention: Mention


@dataclass(frozen=True, slots=True)
class ResolvedRelation:
    """One chunk's evidence for a relation between two entities."""

    relation_id: str
    head_id: str
    label: str
    tail_id: str
    chunk_id: str
    score: float
    start_date: str | None = None
    end_date: str | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocumentGraph:
    """All that one document says, ready to be written.

    ``fingerprint`` identifies the content, so that a store which already holds it need not be written again.
    """

    document: Document
    chunks: tuple[Chunk, ...]
    mentions: tuple[ResolvedMention, ...]
    relations: tuple[ResolvedRelation, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph. ``label`` is the display name: its most frequent surface."""

    id: str
    label: str
    key: str
    type: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge between two entities, with every chunk that states it. ``score`` is the best of its evidence."""

    id: str
    head_id: str
    label: str
    tail_id: str
    score: float
    chunk_ids: tuple[str, ...]
    start_date: str | None = None
    end_date: str | None = None
    properties: Properties = field(default_factory=dict)


Record = TypeVar("Record", covariant=True)


@dataclass(frozen=True, slots=True)
class Scored(Generic[Record]):
    """A record and how well it answers. Scores are finite; larger is better."""

    record: Record
    score: float


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What a retriever finds: each tuple is ranked, best first."""

    entities: tuple[Scored[Entity], ...] = ()
    relations: tuple[Scored[Relation], ...] = ()
    chunks: tuple[Scored[Chunk], ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities within some hops of the seeds, each with its distance, and every relation among them."""

    entities: tuple[tuple[Entity, int], ...] = ()
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the graph: each relation joins one entity to the next, in whichever direction it truly points."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class Community:
    """Entities that belong together. ``level`` 0 is the finest; ``parent_id`` names the community above, if there is one."""

    id: str
    level: int
    member_ids: tuple[str, ...]
    parent_id: str | None = None
    title: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class GraphStats:
    documents: int
    chunks: int
    mentions: int
    entities: int
    relations: int
