"""What the memory graph store holds, and how it changes with the documents."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx

from resources.errors import StoreError
from resources.graph.changes import RelationState, combined, entity_of
from resources.graph.encoding import clean_text, plain_value, stored_float
from resources.graph.fulltext import WordIndex
from resources.records import Chunk, Community, DocumentGraph, ResolvedMention


class MemoryState:
    """Documents as they were given, and a multigraph of entities and relations that follows them."""

    def __init__(self) -> None:
        self.documents: dict[str, DocumentGraph] = {}
        self.chunks: dict[str, Chunk] = {}
        self.mentions: dict[str, dict[str, list[ResolvedMention]]] = {}
        """Mentions by entity id and document id."""
        self.graph: Any = nx.MultiDiGraph()
        """Nodes are entity ids with their record and vector, edges relation ids with their record."""
        self.communities: dict[str, Community] = {}
        self.labels, self.texts = WordIndex(), WordIndex()
        self.revision = uuid.uuid4().hex
        self._relations: dict[str, RelationState] = {}

    def refuse_foreign_chunks(self, new: Sequence[DocumentGraph]) -> None:
        """Raise StoreError for a chunk whose id another document's chunk has."""
        for chunk in (chunk for graph in new for chunk in graph.chunks):
            stored = self.chunks.get(chunk.id)
            if stored is not None and stored.document_id != chunk.document_id:
                raise StoreError(
                    f"Chunk {chunk.id!r} already belongs to document {stored.document_id!r}."
                    " Chunk ids must be unique over all documents."
                )

    def replace(self, document_ids: Iterable[str], new: Sequence[DocumentGraph], states: Mapping[str, RelationState]) -> None:
        """Take documents away and add others. ``states`` are the new relations, by id."""
        old = [self.documents.pop(id_) for id_ in document_ids if id_ in self.documents]
        if not old and not new:
            return
        self.revision = uuid.uuid4().hex
        for graph in old:
            self._remove(graph)
        for graph in new:
            self._add(graph)
        gone_chunks = {chunk.id for graph in old for chunk in graph.chunks}
        for entity_id in {m.entity_id: None for graph in (*old, *new) for m in graph.mentions}:
            self._refresh_entity(entity_id)
        for relation_id in {r.relation_id: None for graph in (*old, *new) for r in graph.relations}:
            state = combined(self._relations.get(relation_id), gone_chunks, states.get(relation_id))
            self._refresh_relation(relation_id, state)

    def _remove(self, graph: DocumentGraph) -> None:
        for chunk in graph.chunks:
            del self.chunks[chunk.id]
            self.texts.remove(chunk.id)
        for resolved in graph.mentions:
            self.mentions[resolved.entity_id].pop(graph.document.id, None)

    def _add(self, graph: DocumentGraph) -> None:
        self.documents[graph.document.id] = graph
        for chunk in graph.chunks:
            self.chunks[chunk.id] = chunk
            self.texts.put(chunk.id, chunk.text)
        for resolved in graph.mentions:
            self.mentions.setdefault(resolved.entity_id, {}).setdefault(graph.document.id, []).append(resolved)

    def _refresh_entity(self, entity_id: str) -> None:
        mentions = [m for some in self.mentions[entity_id].values() for m in some]
        if mentions:
            entity = entity_of(entity_id, mentions)
            self.graph.add_node(entity_id, record=entity)
            self.labels.put(entity_id, entity.label)
            return
        del self.mentions[entity_id]
        self.labels.remove(entity_id)
        for community in self.communities.values():
            if entity_id in community.member_ids:
                left = tuple(id_ for id_ in community.member_ids if id_ != entity_id)
                self.communities[community.id] = replace(community, member_ids=left)
        self.graph.remove_node(entity_id)  # and its edges: their evidence was in the same documents

    def _refresh_relation(self, relation_id: str, state: RelationState | None) -> None:
        if state is not None:
            self._relations[relation_id] = state
            self.graph.add_edge(state.head_id, state.tail_id, key=relation_id, record=state.record())
            return
        gone = self._relations.pop(relation_id)
        if self.graph.has_edge(gone.head_id, gone.tail_id, key=relation_id):
            self.graph.remove_edge(gone.head_id, gone.tail_id, key=relation_id)


def as_stored(graph: DocumentGraph) -> DocumentGraph:
    """The document graph as a database would give it back, so that all stores agree."""
    return replace(
        graph,
        chunks=tuple(replace(c, text=clean_text(c.text), metadata=plain_value(c.metadata)) for c in graph.chunks),
        mentions=tuple(_mention_as_stored(mention) for mention in graph.mentions),
    )


def _mention_as_stored(resolved: ResolvedMention) -> ResolvedMention:
    mention = resolved.mention
    stored = replace(mention, text=clean_text(mention.text), score=stored_float(mention.score))
    return replace(resolved, key=clean_text(resolved.key), mention=stored)
