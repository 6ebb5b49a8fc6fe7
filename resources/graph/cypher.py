"""A graph store in Cypher. A backend brings its transport (``_read``, ``_atomically``, ``query``); all statements are here.

Rows travel as lists, in the order that each statement names; names that stand in a statement passed ``encoding.identifier``.
"""

import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.changes import batches, check_documents, is_id, row_count
from resources.graph.cypher_writes import Read, Rows, Statements, replacement
from resources.graph.encoding import decode_properties
from resources.records import Chunk, DocumentGraph, Entity, GraphStats, Neighbourhood, Relation, Scored

INDEXED = (("Entity", "id"), ("Entity", "key"), ("Chunk", "id"), ("Document", "id"), ("Chunk", "document_id"))
_ROWS_A_TRANSACTION = 10_000

_ENTITY = "{e}.id, {e}.label, {e}.key, {e}.entity_type, CASE WHEN {e}.property_keys IS NULL THEN NULL ELSE properties({e}) END"
_RELATION = (
    "r.id, h.id, r.label, t.id, r.score, r.chunk_ids, r.start_date, r.end_date,"
    " CASE WHEN r.property_keys IS NULL THEN NULL ELSE properties(r) END"
)
_CHUNK = "c.id, c.document_id, c.index, c.text, c.start, c.end, c.metadata"
_E = _ENTITY.format(e="e")


class CypherGraphStore(GraphStore):
    """Everything but the transport."""

    @abstractmethod
    def _read(self, text: str, parameters: Mapping[str, Any]) -> Rows:
        """Rows of one statement that can't change anything."""

    @abstractmethod
    def _atomically(self, plan: Callable[[Read], Statements]) -> None:
        """Let the plan read, then run its statements as one, all or none. When another writer came in between, plan again."""

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
                text = f"MATCH (e:Entity) WHERE e.{name} IN $values RETURN {_E}"
                asked = dict.fromkeys(values)
                rows = self._read(text, {"values": list(asked)})  # the index passes over outer blanks; we do not
                found.update((row[0], _entity(row)) for row in rows if row[0 if name == "id" else 2] in asked)
        return [found[id_] for id_ in sorted(found)]

    def neighbourhood(self, entity_ids: Sequence[str], hops: int, limit: int = 1000) -> Neighbourhood:
        seeds = sorted(filter(is_id, set(entity_ids)))
        if not seeds:
            return Neighbourhood()
        distances = dict.fromkeys(seeds, 0)
        frontier = seeds
        text = "MATCH (e:Entity)-[]-(n:Entity) WHERE e.id IN $ids RETURN DISTINCT n.id AS id ORDER BY id LIMIT $limit"
        for hop in range(1, hops + 1):
            if not frontier or len(distances) >= limit:
                break
            near = self._read(text, {"ids": frontier, "limit": limit + len(distances)})
            frontier = [id_ for (id_,) in near if id_ not in distances][: limit - len(distances)]
            distances.update(dict.fromkeys(frontier, hop))
        found = {e.id: e for e in self.find_entities(ids=list(distances))}
        near_first = tuple((found[id_], hop) for id_, hop in distances.items() if id_ in found)
        return Neighbourhood(near_first, tuple(self._relations_among(list(found))))

    def _relations_among(self, entity_ids: list[str]) -> list[Relation]:
        text = f"MATCH (h:Entity)-[r]->(t:Entity) WHERE h.id IN $ids AND t.id IN $ids RETURN {_RELATION} ORDER BY r.id"
        return list(map(_relation, self._read(text, {"ids": entity_ids}))) if entity_ids else []

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
        rows = self._read(f"MATCH (c:Chunk) WHERE c.id IN $ids RETURN {_CHUNK}", {"ids": wanted}) if wanted else []
        chunks = {row[0]: _chunk(row) for row in rows}
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
        page = f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {_E} ORDER BY e.id"
        yield from map(_entity, self._pages("entities", keys, page, page_size, lambda: self.stats().entities))

    def relations(self, page_size: int = 5000) -> Iterator[Relation]:
        keys = "MATCH (h:Entity)-[r]->(:Entity) WITH h.id AS id, count(r) AS n ORDER BY id RETURN collect([id, n])"
        page = f"MATCH (h:Entity)-[r]->(t:Entity) WHERE h.id IN $ids RETURN {_RELATION} ORDER BY h.id, r.id"
        yield from map(_relation, self._pages("relations", keys, page, page_size, lambda: self.stats().relations))

    def _pages(self, what: str, keys: str, page: str, size: int, count: Callable[[], int]) -> Iterator[list[Any]]:
        """Rows of ``page`` for runs of entity ids that stand for ``size`` rows or more.

        ``keys`` gives [id, rows] for each, collected in one row, which no server cuts. Ranges of ids are not asked for:
        FalkorDB's index answers ``id < 'a14'`` with 'a15'.
        """
        before, given = count(), 0
        for ids in _runs(self._read(keys, {})[0][0], size):
            for row in self._read(page, {"ids": ids}):
                given += 1
                yield row
        expected = min(before, count())
        if given < expected:
            raise StoreError(
                f"The graph database counts {expected} {what} but gave {given}: it cuts long results."
                " Set its RESULTSET_SIZE to -1."
            )

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


def _entity(row: Sequence[Any]) -> Entity:
    return Entity(row[0], row[1], row[2], row[3], decode_properties(row[4]) if row[4] else {})


def _relation(row: Sequence[Any]) -> Relation:
    id_, head, label, tail, score, chunk_ids, start_date, end_date, properties = row
    found = decode_properties(properties) if properties else {}
    return Relation(id_, head, label, tail, score, tuple(chunk_ids or ()), start_date, end_date, found)


def _chunk(row: Sequence[Any]) -> Chunk:
    id_, document_id, index, text, start, end, metadata = row
    return Chunk(id_, document_id, index, text, start, end, json.loads(metadata) if metadata else {})
