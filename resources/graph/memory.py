"""A graph store inside the process, on networkx: for tests and small corpora. Gone when the process ends."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, ClassVar, Self

import networkx as nx

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.changes import relation_states
from resources.graph.checks import check_documents, row_count
from resources.graph.communities import checked_communities, in_order, refuse_unknown_members
from resources.graph.fulltext import WordIndex, name_phrases, question_phrases, rank_names, rank_texts
from resources.graph.memory_state import MemoryState, as_stored
from resources.graph.paths import shortest_paths
from resources.graph.vectors import VECTOR_HASH_KEY, VECTOR_KEY, VectorsReplaced, vector_change
from resources.graph.walk import breadth_first, is_active
from resources.records import Chunk, Community, DocumentGraph, Entity, GraphStats, Neighbourhood, Path, Relation, Scored


class MemoryGraphStore(GraphStore):
    """A graph in the memory of this process. It may be used from several threads."""

    _shared: ClassVar[dict[FilePath, Any]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def open(cls, options: Any, folder: FilePath) -> Self:
        """The store of a folder: all that open it in this process share one."""
        with cls._opening:
            return cls._shared.setdefault(folder.resolve(), cls())

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state = MemoryState()

    def close(self) -> None:
        """Nothing is released: the store lives as long as the process."""

    def document_fingerprints(self) -> dict[str, str]:
        with self._lock:
            return {id_: graph.fingerprint for id_, graph in sorted(self._state.documents.items())}

    def replace_documents(self, documents: Sequence[DocumentGraph]) -> int:
        check_documents(documents)
        new = [as_stored(graph) for graph in documents]
        states = relation_states(relation for graph in new for relation in graph.relations)
        with self._lock:
            self._state.refuse_foreign_chunks(new)
            self._state.replace([graph.document.id for graph in new], new, states)
        return sum(map(row_count, new))

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        with self._lock:
            known = [id_ for id_ in dict.fromkeys(document_ids) if id_ in self._state.documents]
            self._state.replace(known, [], {})
        return len(known)

    def find_entities(self, *, ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Entity]:
        with self._lock:
            graph = self._state.graph
            matches = {id_ for id_ in ids if id_ in graph}
            if keys:
                wanted = set(keys)
                matches.update(id_ for id_, record in graph.nodes(data="record") if record.key in wanted)
            return [self._entity(id_) for id_ in sorted(matches)]

    def _entity(self, entity_id: str) -> Entity:
        record: Entity = self._state.graph.nodes[entity_id]["record"]
        return record

    def find_chunks(self, ids: Sequence[str]) -> list[Chunk]:
        with self._lock:
            return [self._state.chunks[id_] for id_ in sorted(set(ids) & self._state.chunks.keys())]

    def search_entities(self, text: str, k: int) -> list[Scored[Entity]]:
        with self._lock:
            index = self._state.labels
            labels, frequencies = _hits(index, name_phrases(text))
            ranked = rank_names(text, labels, frequencies, len(index.texts), k)
            return [Scored(self._entity(id_), score) for id_, score in ranked]

    def search_chunks(self, question: str, k: int) -> list[Scored[Chunk]]:
        phrases = question_phrases(question)
        with self._lock:
            index = self._state.texts
            texts, frequencies = _hits(index, phrases)
            ranked = rank_texts(phrases, texts, frequencies, len(index.texts), k)
            return [Scored(self._state.chunks[id_], score) for id_, score in ranked]

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
            graph = self._active_graph(active_after, active_before)

            def near(ids: Sequence[str], at_most: int) -> list[str]:
                return sorted({other for id_ in ids for other in nx.all_neighbors(graph, id_)})

            distances = breadth_first((id_ for id_ in entity_ids if id_ in graph), hops, limit, near)
            inside = graph.subgraph(distances).edges(data="record")
            relations = sorted((record for _, _, record in inside), key=lambda relation: relation.id)
            return Neighbourhood(tuple((self._entity(id_), hop) for id_, hop in distances.items()), tuple(relations))

    def _active_graph(self, active_after: str | None, active_before: str | None) -> Any:
        """The graph without relations outside the window of dates."""
        graph = self._state.graph
        if active_after is None and active_before is None:
            return graph
        active = nx.MultiDiGraph()
        active.add_nodes_from(graph)
        for head, tail, key, record in graph.edges(keys=True, data="record"):
            if is_active(record, active_after, active_before):
                active.add_edge(head, tail, key=key, record=record)
        return active

    def shortest_paths(self, pairs: Sequence[tuple[str, str]], max_length: int = 5, limit: int = 3) -> list[list[Path]]:
        with self._lock:
            return shortest_paths(pairs, max_length, limit, self._neighbours, self._relations_between, self._entities_by_id)

    def _neighbours(self, ids: Sequence[str]) -> dict[str, list[str]]:
        graph = self._state.graph
        return {id_: sorted(set(nx.all_neighbors(graph, id_))) for id_ in ids if id_ in graph}

    def _relations_between(self, pairs: Sequence[tuple[str, str]]) -> list[Relation]:
        graph = self._state.graph
        both_directions = [*pairs, *((b, a) for a, b in pairs)]
        return [edge["record"] for a, b in both_directions if graph.has_edge(a, b) for edge in graph[a][b].values()]

    def _entities_by_id(self, ids: Sequence[str]) -> dict[str, Entity]:
        return {entity.id: entity for entity in self.find_entities(ids=ids)}

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
        matches = [
            relation
            for relation in self.relations()
            if (heads is None or relation.head_id in heads)
            and (tails is None or relation.tail_id in tails)
            and (names is None or relation.label in names)
            and relation.score >= min_score
            and is_active(relation, active_after, active_before)
        ]
        return sorted(matches, key=lambda relation: (-relation.score, relation.id))[: max(0, limit)]

    def chunks_of(self, entity_ids: Sequence[str], limit: int = 1000) -> dict[str, list[Scored[Chunk]]]:
        with self._lock:
            chunks = {id_: self._chunks_of(id_, limit) for id_ in dict.fromkeys(entity_ids)}
            return {id_: some for id_, some in chunks.items() if some}

    def _chunks_of(self, entity_id: str, limit: int) -> list[Scored[Chunk]]:
        best: dict[str, float] = {}
        for mentions in self._state.mentions.get(entity_id, {}).values():
            for mention in (resolved.mention for resolved in mentions):
                best[mention.chunk_id] = max(mention.score, best.get(mention.chunk_id, mention.score))
        ranked = sorted(best, key=lambda chunk_id: (-best[chunk_id], chunk_id))[:limit]
        return [Scored(self._state.chunks[chunk_id], best[chunk_id]) for chunk_id in ranked]

    def entities_of(self, chunk_ids: Sequence[str]) -> dict[str, list[Entity]]:
        with self._lock:
            chunks = self._state.chunks
            known = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in chunks]
            mentioned: dict[str, set[str]] = defaultdict(set)
            for document_id in {chunks[chunk_id].document_id for chunk_id in known}:
                for resolved in self._state.documents[document_id].mentions:
                    mentioned[resolved.mention.chunk_id].add(resolved.entity_id)
            return {id_: [self._entity(entity) for entity in sorted(mentioned[id_])] for id_ in known if mentioned[id_]}

    def entities(self, page_size: int = 5000) -> Iterator[Entity]:
        with self._lock:
            everything = [self._entity(id_) for id_ in sorted(self._state.graph)]
        yield from everything

    def relations(self, page_size: int = 5000) -> Iterator[Relation]:
        with self._lock:
            everything = sorted(
                (record for _, _, record in self._state.graph.edges(data="record")), key=lambda r: (r.head_id, r.id)
            )
        yield from everything

    def mention_counts(self, page_size: int = 5000) -> Iterator[tuple[str, str, int]]:
        with self._lock:
            counts = Counter(
                (m.entity_id, m.mention.chunk_id) for graph in self._state.documents.values() for m in graph.mentions
            )
        yield from ((entity_id, chunk_id, counts[entity_id, chunk_id]) for entity_id, chunk_id in sorted(counts))

    def relation_labels(self) -> dict[str, int]:
        return _frequencies(relation.label for relation in self.relations())

    def entity_types(self) -> dict[str, int]:
        return _frequencies(entity.type for entity in self.entities())

    def replace_communities(self, communities: Sequence[Community]) -> int:
        wanted = checked_communities(communities)
        with self._lock:
            refuse_unknown_members(wanted, set(self._state.graph))
            stored = self._state.communities
            changed = sum(stored.get(id_) != community for id_, community in wanted.items())
            changed += len(stored.keys() - wanted.keys())
            self._state.communities = wanted
            return changed

    def communities(self, level: int | None = None) -> list[Community]:
        with self._lock:
            return in_order([c for c in self._state.communities.values() if level is None or c.level == level])

    def find_communities(self, ids: Sequence[str]) -> list[Community]:
        with self._lock:
            stored = self._state.communities
            return in_order([stored[id_] for id_ in set(ids) & stored.keys()])

    def replace_entity_vectors(self, vectors: Mapping[str, Sequence[float]]) -> VectorsReplaced:
        with self._lock:
            nodes = self._state.graph.nodes
            change = vector_change(vectors, dict(nodes(data=VECTOR_HASH_KEY, default="")))
            for id_, hash_, numbers in change.written:
                nodes[id_].update({VECTOR_HASH_KEY: hash_, VECTOR_KEY: tuple(numbers)})
            for id_ in change.removed:
                del nodes[id_][VECTOR_HASH_KEY], nodes[id_][VECTOR_KEY]
        return change.counts

    def entity_vectors(self) -> dict[str, list[float]]:
        """The vectors on the entities, by entity id. Databases are queried for the property ``kg_embedding`` instead."""
        with self._lock:
            return {id_: list(vector) for id_, vector in self._state.graph.nodes(data=VECTOR_KEY) if vector is not None}

    def revision(self) -> str:
        with self._lock:
            return self._state.revision

    def stats(self) -> GraphStats:
        with self._lock:
            return GraphStats(
                documents=len(self._state.documents),
                chunks=len(self._state.chunks),
                mentions=sum(len(graph.mentions) for graph in self._state.documents.values()),
                entities=self._state.graph.number_of_nodes(),
                relations=self._state.graph.number_of_edges(),
            )

    def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        read_only: bool = True,
        max_rows: int | None = None,
    ) -> list[dict[str, Any]]:
        raise StoreError("The memory graph store has no query language. Set stores.graph.backend to falkordb_embedded.")


def _hits(index: WordIndex, phrases: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
    """The texts that hold one of the phrases, by id, and how many texts hold each phrase."""
    hits = {phrase: index.find(phrase) for phrase in phrases}
    texts = {id_: index.texts[id_] for ids in hits.values() for id_ in ids}
    return texts, {phrase: len(ids) for phrase, ids in hits.items()}


def _frequencies(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))
