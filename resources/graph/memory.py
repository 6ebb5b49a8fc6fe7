"""A graph store inside the process, on networkx: for tests and small corpora. Gone when the process ends."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.changes import RelationState, check_documents, combined, entity_of, relation_states, row_count
from resources.graph.encoding import clean_text, plain_value, stored_float
from resources.records import Chunk, DocumentGraph, Entity, GraphStats, Neighbourhood, Relation, ResolvedMention, Scored


class MemoryGraphStore(GraphStore):
    """Documents as they were given, and a multigraph of entities and relations that follows them. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._documents: dict[str, DocumentGraph] = {}
        self._chunks: dict[str, Chunk] = {}
        self._mentions: dict[str, dict[str, list[ResolvedMention]]] = {}  # entity id -> document id -> mentions
        self._states: dict[str, RelationState] = {}
        self._graph = nx.MultiDiGraph()  # nodes: entity ids with their record; edges: relation ids with theirs

    def close(self) -> None:
        """Nothing to let go of."""

    def document_fingerprints(self) -> dict[str, str]:
        with self._lock:
            return {id_: graph.fingerprint for id_, graph in sorted(self._documents.items())}

    def replace_documents(self, documents: Sequence[DocumentGraph]) -> int:
        check_documents(documents)
        new = [_normalised(graph) for graph in documents]
        said = relation_states(relation for graph in new for relation in graph.relations)
        with self._lock:
            for graph in new:
                for chunk in graph.chunks:
                    owner = self._chunks[chunk.id].document_id if chunk.id in self._chunks else chunk.document_id
                    if owner != chunk.document_id:
                        raise StoreError(f"Chunk {chunk.id!r} of document {chunk.document_id!r} already belongs to {owner!r}.")
            self._change([graph.document.id for graph in new], new, said)
        return sum(map(row_count, new))

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        with self._lock:
            known = [id_ for id_ in dict.fromkeys(document_ids) if id_ in self._documents]
            self._change(known, [], {})
        return len(known)

    def _change(self, replaced: Iterable[str], new: Sequence[DocumentGraph], said: Mapping[str, RelationState]) -> None:
        old = [self._documents.pop(id_) for id_ in replaced if id_ in self._documents]
        gone_chunks = {chunk.id for graph in old for chunk in graph.chunks}
        touched = {m.entity_id: None for graph in (*old, *new) for m in graph.mentions}
        relations = {r.relation_id: None for graph in (*old, *new) for r in graph.relations}
        for graph in old:
            for chunk in graph.chunks:
                del self._chunks[chunk.id]
            for resolved in graph.mentions:
                self._mentions[resolved.entity_id].pop(graph.document.id, None)
        for graph in new:
            self._documents[graph.document.id] = graph
            self._chunks.update((chunk.id, chunk) for chunk in graph.chunks)
            for resolved in graph.mentions:
                self._mentions.setdefault(resolved.entity_id, {}).setdefault(graph.document.id, []).append(resolved)
        for entity_id in touched:
            self._refresh_entity(entity_id)
        for relation_id in relations:
            self._refresh_relation(relation_id, combined(self._states.get(relation_id), gone_chunks, said.get(relation_id)))

    def _refresh_entity(self, entity_id: str) -> None:
        mentions = [m for some in self._mentions[entity_id].values() for m in some]
        if mentions:
            self._graph.add_node(entity_id, record=entity_of(entity_id, mentions))
            return
        del self._mentions[entity_id]
        self._graph.remove_node(entity_id)  # and its edges: their evidence lay in the same documents

    def _refresh_relation(self, relation_id: str, state: RelationState | None) -> None:
        if state is not None:
            self._states[relation_id] = state
            self._graph.add_edge(state.head_id, state.tail_id, key=relation_id, record=state.record())
            return
        gone = self._states.pop(relation_id)
        if self._graph.has_edge(gone.head_id, gone.tail_id, key=relation_id):
            self._graph.remove_edge(gone.head_id, gone.tail_id, key=relation_id)

    def find_entities(self, *, ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Entity]:
        with self._lock:
            wanted = {id_ for id_ in ids if id_ in self._graph}
            if keys:
                asked = set(keys)
                wanted.update(id_ for id_, record in self._graph.nodes(data="record") if record.key in asked)
            return [self._entity(id_) for id_ in sorted(wanted)]

    def _entity(self, entity_id: str) -> Entity:
        return self._graph.nodes[entity_id]["record"]

    def neighbourhood(self, entity_ids: Sequence[str], hops: int, limit: int = 1000) -> Neighbourhood:
        with self._lock:
            distances = {id_: 0 for id_ in sorted(set(entity_ids)) if id_ in self._graph}
            frontier = list(distances)
            for hop in range(1, hops + 1):
                near = {other for id_ in frontier for other in nx.all_neighbors(self._graph, id_)} - distances.keys()
                frontier = sorted(near)[: max(0, limit - len(distances))]
                distances.update(dict.fromkeys(frontier, hop))
            edges = self._graph.subgraph(distances).edges(data="record")
            relations = sorted((record for _, _, record in edges), key=lambda relation: relation.id)
            return Neighbourhood(tuple((self._entity(id_), hop) for id_, hop in distances.items()), tuple(relations))

    def chunks_of(self, entity_ids: Sequence[str], limit: int = 1000) -> dict[str, list[Scored[Chunk]]]:
        with self._lock:
            found = {}
            for entity_id in dict.fromkeys(entity_ids):
                best: dict[str, float] = {}
                for resolved in (m for some in self._mentions.get(entity_id, {}).values() for m in some):
                    chunk_id, score = resolved.mention.chunk_id, resolved.mention.score
                    best[chunk_id] = max(score, best.get(chunk_id, score))
                ranked = sorted(best, key=lambda chunk_id: (-best[chunk_id], chunk_id))[:limit]
                if ranked:
                    found[entity_id] = [Scored(self._chunks[chunk_id], best[chunk_id]) for chunk_id in ranked]
            return found

    def entities_of(self, chunk_ids: Sequence[str]) -> dict[str, list[Entity]]:
        with self._lock:
            asked = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in self._chunks]
            documents = {self._chunks[chunk_id].document_id for chunk_id in asked}
            mentioned: dict[str, set[str]] = defaultdict(set)
            for resolved in (m for id_ in documents for m in self._documents[id_].mentions):
                mentioned[resolved.mention.chunk_id].add(resolved.entity_id)
            return {id_: [self._entity(entity) for entity in sorted(mentioned[id_])] for id_ in asked if mentioned[id_]}

    def entities(self, page_size: int = 5000) -> Iterator[Entity]:
        with self._lock:
            everything = [self._entity(id_) for id_ in sorted(self._graph)]
        yield from everything

    def relations(self, page_size: int = 5000) -> Iterator[Relation]:
        with self._lock:
            everything = sorted((record for _, _, record in self._graph.edges(data="record")), key=lambda r: (r.head_id, r.id))
        yield from everything

    def stats(self) -> GraphStats:
        with self._lock:
            return GraphStats(
                documents=len(self._documents),
                chunks=len(self._chunks),
                mentions=sum(len(graph.mentions) for graph in self._documents.values()),
                entities=self._graph.number_of_nodes(),
                relations=self._graph.number_of_edges(),
            )

    def query(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, read_only: bool = True
    ) -> list[dict[str, Any]]:
        raise StoreError("The memory graph store has no query language. Choose falkordb_embedded (stores.graph.backend).")


def _normalised(graph: DocumentGraph) -> DocumentGraph:
    """The document graph as a database would give it back, so that both kinds of store say the same."""
    return replace(
        graph,
        chunks=tuple(replace(c, text=clean_text(c.text), metadata=plain_value(c.metadata)) for c in graph.chunks),
        mentions=tuple(
            replace(
                m,
                key=clean_text(m.key),
                mention=replace(m.mention, text=clean_text(m.mention.text), score=stored_float(m.mention.score)),
            )
            for m in graph.mentions
        ),
    )
