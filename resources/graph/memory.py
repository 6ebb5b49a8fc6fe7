"""A graph store inside the process, on networkx: for tests and small corpora. Gone when the process ends."""

import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, ClassVar, Self

import networkx as nx

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.changes import (
    RelationState,
    check_documents,
    combined,
    entity_of,
    is_active,
    relation_states,
    row_count,
)
from resources.graph.communities import checked_communities, in_order, refuse_unknown_members
from resources.graph.encoding import clean_text, plain_value, stored_float
from resources.graph.fulltext import WordIndex, name_phrases, question_phrases, rank_names, rank_texts
from resources.graph.paths import shortest_paths
from resources.graph.vectors import VECTOR_HASH_KEY, VECTOR_KEY, VectorsReplaced, vector_change
from resources.records import (
    Chunk,
    Community,
    DocumentGraph,
    Entity,
    GraphStats,
    Neighbourhood,
    Path,
    Relation,
    ResolvedMention,
    Scored,
)


class MemoryGraphStore(GraphStore):
    """Documents as they were given, and a multigraph of entities and relations that follows them. Safe for several threads."""

    _shared: ClassVar[dict[FilePath, Any]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def open(cls, options: Any, folder: FilePath) -> Self:
        """The store of a folder: all that open it in this process share one."""
        with cls._opening:
            return cls._shared.setdefault(folder.resolve(), cls())

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._documents: dict[str, DocumentGraph] = {}
        self._chunks: dict[str, Chunk] = {}
        self._mentions: dict[str, dict[str, list[ResolvedMention]]] = {}  # entity id -> document id -> mentions
        self._states: dict[str, RelationState] = {}
        self._graph = nx.MultiDiGraph()  # nodes: entity ids with their record and vector; edges: relation ids with theirs
        self._communities: dict[str, Community] = {}
        self._labels, self._texts = WordIndex(), WordIndex()
        self._mark = ""
        self._changed()

    def _changed(self) -> None:
        self._mark = uuid.uuid4().hex

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
        if old or new:
            self._changed()
        for graph in old:
            for chunk in graph.chunks:
                del self._chunks[chunk.id]
                self._texts.remove(chunk.id)
            for resolved in graph.mentions:
                self._mentions[resolved.entity_id].pop(graph.document.id, None)
        for graph in new:
            self._documents[graph.document.id] = graph
            for chunk in graph.chunks:
                self._chunks[chunk.id] = chunk
                self._texts.put(chunk.id, chunk.text)
            for resolved in graph.mentions:
                self._mentions.setdefault(resolved.entity_id, {}).setdefault(graph.document.id, []).append(resolved)
        for entity_id in touched:
            self._refresh_entity(entity_id)
        for relation_id in relations:
            self._refresh_relation(relation_id, combined(self._states.get(relation_id), gone_chunks, said.get(relation_id)))

    def _refresh_entity(self, entity_id: str) -> None:
        mentions = [m for some in self._mentions[entity_id].values() for m in some]
        if mentions:
            entity = entity_of(entity_id, mentions)
            self._graph.add_node(entity_id, record=entity)
            self._labels.put(entity_id, entity.label)
            return
        del self._mentions[entity_id]
        self._labels.remove(entity_id)
        for community in self._communities.values():
            if entity_id in community.member_ids:
                left = tuple(id_ for id_ in community.member_ids if id_ != entity_id)
                self._communities[community.id] = replace(community, member_ids=left)
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

    def search_entities(self, text: str, k: int) -> list[Scored[Entity]]:
        with self._lock:
            labels, frequencies = _found(self._labels, name_phrases(text))
            ranked = rank_names(text, labels, frequencies, len(self._labels.texts), k)
            return [Scored(self._entity(id_), score) for id_, score in ranked]

    def search_chunks(self, question: str, k: int) -> list[Scored[Chunk]]:
        phrases = question_phrases(question)
        with self._lock:
            texts, frequencies = _found(self._texts, phrases)
            ranked = rank_texts(phrases, texts, frequencies, len(self._texts.texts), k)
            return [Scored(self._chunks[id_], score) for id_, score in ranked]

    def neighbourhood(
        self,
        entity_ids: Sequence[str],
        hops: int,
        limit: int = 1000,
        *,
        active_after: str | None = None,
        active_before: str | None = None,
    ) -> Neighbourhood:
        with self._lock:
            graph = self._graph
            if active_after is not None or active_before is not None:
                edges = self._graph.edges(keys=True, data="record")
                active = [(h, t, key) for h, t, key, record in edges if is_active(record, active_after, active_before)]
                graph = nx.MultiDiGraph()
                graph.add_nodes_from(self._graph)
                graph.add_edges_from((h, t, key, self._graph.edges[h, t, key]) for h, t, key in active)
            distances = {id_: 0 for id_ in sorted(set(entity_ids)) if id_ in self._graph}
            frontier = list(distances)
            for hop in range(1, hops + 1):
                near = {other for id_ in frontier for other in nx.all_neighbors(graph, id_)} - distances.keys()
                frontier = sorted(near)[: max(0, limit - len(distances))]
                distances.update(dict.fromkeys(frontier, hop))
            inside = graph.subgraph(distances).edges(data="record")
            relations = sorted((record for _, _, record in inside), key=lambda relation: relation.id)
            return Neighbourhood(tuple((self._entity(id_), hop) for id_, hop in distances.items()), tuple(relations))

    def shortest_paths(self, pairs: Sequence[tuple[str, str]], max_length: int = 5, limit: int = 3) -> list[list[Path]]:
        with self._lock:
            return shortest_paths(pairs, max_length, limit, self._near, self._between, lambda ids: self.find_entities(ids=ids))

    def _near(self, ids: Sequence[str]) -> dict[str, list[str]]:
        return {id_: sorted(set(nx.all_neighbors(self._graph, id_))) for id_ in ids if id_ in self._graph}

    def _between(self, pairs: Sequence[tuple[str, str]]) -> list[Relation]:
        both = [*pairs, *((b, a) for a, b in pairs)]
        return [edge["record"] for a, b in both if self._graph.has_edge(a, b) for edge in self._graph[a][b].values()]

    def find_relations(
        self,
        *,
        head_ids: Sequence[str] | None = None,
        tail_ids: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        min_score: float = 0.0,
        active_after: str | None = None,
        active_before: str | None = None,
        limit: int = 1000,
    ) -> list[Relation]:
        heads, tails, names = (None if some is None else frozenset(some) for some in (head_ids, tail_ids, labels))
        found = [
            relation
            for relation in self.relations()
            if (heads is None or relation.head_id in heads)
            and (tails is None or relation.tail_id in tails)
            and (names is None or relation.label in names)
            and relation.score >= min_score
            and is_active(relation, active_after, active_before)
        ]
        return sorted(found, key=lambda relation: (-relation.score, relation.id))[: max(0, limit)]

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

    def mention_counts(self, page_size: int = 5000) -> Iterator[tuple[str, str, int]]:
        with self._lock:
            counts = Counter((m.entity_id, m.mention.chunk_id) for graph in self._documents.values() for m in graph.mentions)
        yield from ((entity_id, chunk_id, counts[entity_id, chunk_id]) for entity_id, chunk_id in sorted(counts))

    def relation_labels(self) -> dict[str, int]:
        return _frequencies(relation.label for relation in self.relations())

    def entity_types(self) -> dict[str, int]:
        return _frequencies(entity.type for entity in self.entities())

    def replace_communities(self, communities: Sequence[Community]) -> int:
        wanted = checked_communities(communities)
        with self._lock:
            refuse_unknown_members(wanted, set(self._graph))
            changed = sum(self._communities.get(id_) != community for id_, community in wanted.items())
            changed += len(self._communities.keys() - wanted.keys())
            if changed:
                self._communities = wanted
            return changed

    def communities(self, level: int | None = None) -> list[Community]:
        with self._lock:
            return in_order([c for c in self._communities.values() if level is None or c.level == level])

    def find_communities(self, ids: Sequence[str]) -> list[Community]:
        with self._lock:
            return in_order([self._communities[id_] for id_ in set(ids) & self._communities.keys()])

    def replace_entity_vectors(self, vectors: Mapping[str, Sequence[float]]) -> VectorsReplaced:
        with self._lock:
            change = vector_change(vectors, dict(self._graph.nodes(data=VECTOR_HASH_KEY, default="")))
            for id_, hash_, numbers in change.written:
                self._graph.nodes[id_].update({VECTOR_HASH_KEY: hash_, VECTOR_KEY: tuple(numbers)})
            for id_ in change.removed:
                del self._graph.nodes[id_][VECTOR_HASH_KEY], self._graph.nodes[id_][VECTOR_KEY]
        return change.counts

    def revision(self) -> str:
        with self._lock:
            return self._mark

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
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        read_only: bool = True,
        max_rows: int | None = None,
    ) -> list[dict[str, Any]]:
        raise StoreError("The memory graph store has no query language. Choose falkordb_embedded (stores.graph.backend).")


def _found(index: WordIndex, phrases: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Texts that hold one of the phrases, and how many hold each phrase."""
    hits = {phrase: index.find(phrase) for phrase in phrases}
    return {id_: index.texts[id_] for ids in hits.values() for id_ in ids}, {phrase: len(ids) for phrase, ids in hits.items()}


def _frequencies(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


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
