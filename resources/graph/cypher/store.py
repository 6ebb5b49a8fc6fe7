"""A graph store in Cypher. A backend brings its transport (``_read``, ``_atomically``, ``query``); all statements are here.

Rows travel as lists, in the order that each statement names; names that stand in a statement passed ``encoding.identifier``.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.changes import batches, check_documents, is_id, row_count
from resources.graph.cypher import reads
from resources.graph.cypher.communities import community_changes, read_communities
from resources.graph.cypher.rows import CHUNK, ENTITY, RELATION, chunk_record, entity_record, relation_record
from resources.graph.cypher.vectors import stored_vector_hashes, vector_statements
from resources.graph.cypher.writes import Read, Rows, Statements, replacement
from resources.graph.vectors import VectorsReplaced, vector_change
from resources.records import Chunk, Community, DocumentGraph, Entity, GraphStats, Neighbourhood, Path, Relation, Scored

INDEXED = (
    ("Entity", "id"),
    ("Entity", "key"),
    ("Chunk", "id"),
    ("Document", "id"),
    ("Chunk", "document_id"),
    ("Community", "id"),
)
SEARCHED = (("Entity", "label"), ("Chunk", "text"))
"""Nodes that full text finds, and what their ``search_text`` is made of."""
_ROWS_A_TRANSACTION = 10_000


class CypherGraphStore(GraphStore):
    """Everything but the transport."""

    @abstractmethod
    def _read(self, text: str, parameters: Mapping[str, Any]) -> Rows:
        """Rows of one statement that can't change anything."""

    @abstractmethod
    def _atomically(self, plan: Callable[[Read], Statements], *, new_revision: bool = True) -> None:
        """Let the plan read, then run its statements as one, all or none. When another writer came in between, plan again.

        Without ``new_revision`` the graph's revision stays.
        """

    def document_fingerprints(self) -> dict[str, str]:
        text = "MATCH (d:Document) WHERE d.fingerprint IS NOT NULL RETURN d.id, d.fingerprint"
        return {row[0]: row[1] for row in self._read(text + " ORDER BY d.id", {})}

    def replace_documents(self, documents: Sequence[DocumentGraph]) -> int:
        check_documents(documents)
        for batch in batches(documents, _ROWS_A_TRANSACTION):
            self._atomically(partial(_replacing, batch))
        return sum(map(row_count, documents))

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        ids = [id_ for id_ in dict.fromkeys(document_ids) if is_id(id_)]
        gone = 0
        for start in range(0, len(ids), 50):
            some = ids[start : start + 50]
            counts: list[int] = []

            def plan(read: Read, some: list[str] = some, counts: list[int] = counts) -> Statements:
                change = replacement(read, some, [])
                counts.append(len(change.known))
                return change.statements

            self._atomically(plan)
            gone += counts[-1]
        return gone

    def find_entities(self, *, ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Entity]:
        found: dict[str, Entity] = {}
        for name, values in (("id", ids), ("key", keys)):
            if values:
                text = f"MATCH (e:Entity) WHERE e.{name} IN $values RETURN {ENTITY}"
                asked = dict.fromkeys(values)
                rows = self._read(text, {"values": list(asked)})  # the index passes over outer blanks; we do not
                found.update((row[0], entity_record(row)) for row in rows if row[0 if name == "id" else 2] in asked)
        return [found[id_] for id_ in sorted(found)]

    def search_entities(self, text: str, k: int) -> list[Scored[Entity]]:
        return reads.search_entities(self._read, text, k)

    def search_chunks(self, question: str, k: int) -> list[Scored[Chunk]]:
        return reads.search_chunks(self._read, question, k)

    def neighbourhood(
        self,
        entity_ids: Sequence[str],
        hops: int,
        limit: int = 1000,
        *,
        active_after: str | None = None,
        active_before: str | None = None,
    ) -> Neighbourhood:
        return reads.neighbourhood(self._read, entity_ids, hops, limit, active_after, active_before)

    def shortest_paths(self, pairs: Sequence[tuple[str, str]], max_length: int = 5, limit: int = 3) -> list[list[Path]]:
        return reads.paths(self._read, pairs, max_length, limit)

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
        return reads.find_relations(self._read, head_ids, tail_ids, labels, min_score, active_after, active_before, limit)

    def chunks_of(self, entity_ids: Sequence[str], limit: int = 1000) -> dict[str, list[Scored[Chunk]]]:
        ids = list(dict.fromkeys(entity_ids))
        if not ids:
            return {}
        text = (
            "MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids WITH e.id AS id, c.id AS chunk,"
            " max(m.score) AS score ORDER BY score DESC, chunk"
            " WITH id, collect([chunk, score])[0..$limit] AS best RETURN id, best"
        )
        best: dict[str, Any] = {row[0]: row[1] for row in self._read(text, {"ids": ids, "limit": limit})}
        wanted = list({chunk_id: None for pairs in best.values() for chunk_id, _ in pairs})
        rows = self._read(f"MATCH (c:Chunk) WHERE c.id IN $ids RETURN {CHUNK}", {"ids": wanted}) if wanted else []
        chunks = {row[0]: chunk_record(row) for row in rows}
        return {id_: [Scored(chunks[c], score) for c, score in best[id_] if c in chunks] for id_ in ids if id_ in best}

    def entities_of(self, chunk_ids: Sequence[str]) -> dict[str, list[Entity]]:
        ids = list(dict.fromkeys(chunk_ids))
        if not ids:
            return {}
        text = (
            "MATCH (e:Entity)-[:MENTIONED_IN]->(c:Chunk) WHERE c.id IN $ids RETURN DISTINCT c.id AS chunk, e.id AS id ORDER BY id"
        )
        mentioned: dict[str, list[str]] = defaultdict(list)
        for chunk_id, entity_id in self._read(text, {"ids": ids}):
            mentioned[chunk_id].append(entity_id)
        found = {e.id: e for e in self.find_entities(ids=sorted({e for some in mentioned.values() for e in some}))}
        return {id_: [found[e] for e in mentioned[id_] if e in found] for id_ in ids if id_ in mentioned}

    def entities(self, page_size: int = 5000) -> Iterator[Entity]:
        keys = "MATCH (e:Entity) WITH e.id AS id ORDER BY id RETURN collect([id, 1])"
        page = f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {ENTITY} ORDER BY e.id"
        yield from map(entity_record, self._pages("entities", keys, page, page_size, lambda: self.stats().entities))

    def relations(self, page_size: int = 5000) -> Iterator[Relation]:
        keys = "MATCH (h:Entity)-[r]->(:Entity) WITH h.id AS id, count(r) AS n ORDER BY id RETURN collect([id, n])"
        page = f"MATCH (h:Entity)-[r]->(t:Entity) WHERE h.id IN $ids RETURN {RELATION} ORDER BY h.id, r.id"
        yield from map(relation_record, self._pages("relations", keys, page, page_size, lambda: self.stats().relations))

    def mention_counts(self, page_size: int = 5000) -> Iterator[tuple[str, str, int]]:
        keys = "MATCH (e:Entity)-[m:MENTIONED_IN]->(:Chunk) WITH e.id AS id, count(m) AS n ORDER BY id RETURN collect([id, n])"
        page = """MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids
WITH e.id AS id, c.id AS chunk, count(m) AS n ORDER BY id, chunk
RETURN id, string.join(collect(chunk), '\n'), collect(n) ORDER BY id"""
        rows = self._pages("mentions", keys, page, page_size, lambda: self.stats().mentions, lambda row: sum(row[2]))
        for entity_id, chunk_ids, counts in rows:
            yield from zip(repeat(entity_id), chunk_ids.split("\n"), counts)

    def _pages(
        self,
        what: str,
        keys: str,
        page: str,
        size: int,
        count: Callable[[], int],
        stands_for: Callable[[list[Any]], int] = lambda row: 1,
    ) -> Iterator[list[Any]]:
        """Rows of ``page`` for runs of entity ids that stand for ``size`` rows or more.

        ``keys`` gives [id, rows] for each, collected in one row, which no server cuts. Ranges of ids are not asked for:
        FalkorDB's index answers ``id < 'a14'`` with 'a15'.
        """
        before, given = count(), 0
        for ids in _runs(self._read(keys, {})[0][0], size):
            for row in self._read(page, {"ids": ids}):
                given += stands_for(row)
                yield row
        expected = min(before, count())
        if given < expected:
            raise StoreError(
                f"The graph database counts {expected} {what} but gave {given}: it cuts long results."
                " Set its RESULTSET_SIZE to -1."
            )

    def relation_labels(self) -> dict[str, int]:
        return self._counts("MATCH (:Entity)-[r]->(:Entity) WITH r.label AS name, count(r) AS n")

    def entity_types(self) -> dict[str, int]:
        return self._counts("MATCH (e:Entity) WITH e.entity_type AS name, count(e) AS n")

    def _counts(self, text: str) -> dict[str, int]:
        ((pairs,),) = self._read(text + " ORDER BY n DESC, name RETURN collect([name, n])", {})  # one row: no server cuts it
        return dict(pairs)

    def replace_communities(self, communities: Sequence[Community]) -> int:
        count, transactions = community_changes(self._read, communities)
        for statements in transactions:
            self._atomically(partial(_as_planned, statements), new_revision=False)
        return count

    def communities(self, level: int | None = None) -> list[Community]:
        return read_communities(self._read, level=level)

    def find_communities(self, ids: Sequence[str]) -> list[Community]:
        return read_communities(self._read, ids=ids) if ids else []

    def replace_entity_vectors(self, vectors: Mapping[str, Sequence[float]]) -> VectorsReplaced:
        change = vector_change(vectors, stored_vector_hashes(self._read))
        for statements in vector_statements(change):
            self._atomically(partial(_as_planned, statements), new_revision=False)
        return change.counts

    def stats(self) -> GraphStats:
        counts = [
            self._read(text, {})[0][0]
            for text in (
                "MATCH (n:Document) RETURN count(n)",
                "MATCH (n:Chunk) RETURN count(n)",
                "MATCH (:Entity)-[m:MENTIONED_IN]->(:Chunk) RETURN count(m)",
                "MATCH (n:Entity) RETURN count(n)",
                "MATCH (:Entity)-[r]->(:Entity) RETURN count(r)",
            )
        ]
        return GraphStats(*counts)


def _replacing(batch: Sequence[DocumentGraph], read: Read) -> Statements:
    return replacement(read, [graph.document.id for graph in batch], batch).statements


def _as_planned(statements: Statements, read: Read) -> Statements:
    return statements


def _runs(weighted: Sequence[tuple[str, int]], size: int) -> Iterator[list[str]]:
    run: list[str] = []
    weight = 0
    for id_, rows in weighted:
        run.append(id_)
        weight += rows
        if weight >= size:
            yield run
            run, weight = [], 0
    if run:
        yield run
