"""A graph store in Cypher. A backend brings its dialect and its transport; all statements are in this package.

Rows travel as lists, in the order that each statement names. Names that are part of a statement passed
``encoding.identifier``; values are parameters.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.checks import batches, check_documents, is_id, row_count
from resources.graph.cypher import search, streams, walks
from resources.graph.cypher.communities import community_changes, read_communities
from resources.graph.cypher.dialect import Dialect, Reader, Rows, Statements
from resources.graph.cypher.records import ENTITY, chunks_by_id, entity_record
from resources.graph.cypher.vectors import stored_vector_hashes, vector_statements
from resources.graph.cypher.writes import replacement
from resources.graph.vectors import VectorsReplaced, vector_change
from resources.records import Chunk, Community, DocumentGraph, Entity, GraphStats, Neighbourhood, Path, Relation, Scored

_ROWS_A_TRANSACTION = 10_000
_DELETED_A_TRANSACTION = 50

Plan = Callable[[Reader], Statements]
"""Reads, then gives the statements that are to run as one."""


class CypherGraphStore(GraphStore):
    """All of a graph store but its transport: ``_run``, ``_atomically``, ``query``, ``revision`` and ``close``."""

    dialect: ClassVar[Dialect]

    @abstractmethod
    def _run(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        """Rows of one statement that can't change anything."""

    @abstractmethod
    def _atomically(self, plan: Plan, *, new_revision: bool = True) -> None:
        """Let the plan read, then run its statements as one, all or none. Plan again if another writer came in between.

        Without ``new_revision`` the graph's revision stays.
        """

    def _most_rows(self) -> int | None:
        """The length at which the server cuts results; None if it never does."""
        return None

    @property
    def _read(self) -> Reader:
        return self._reader(self._run)

    def _reader(self, run: Callable[[str, Mapping[str, Any]], Rows]) -> Reader:
        """A reader that notices results which the server has cut.

        It raises StoreError for a result that has exactly the most rows the server gives: more may be missing.
        """

        def checked(statement: str, parameters: Mapping[str, Any]) -> Rows:
            rows = run(statement, parameters)
            if rows and len(rows) == self._most_rows():
                raise StoreError(
                    f"The {self.dialect.database} server returned {len(rows)} rows, the most it is set to return: some may be"
                    " missing. Set its RESULTSET_SIZE to -1."
                )
            return rows

        return Reader(self.dialect, checked)

    def document_fingerprints(self) -> dict[str, str]:
        rows = self._read("MATCH (d:Document) WHERE d.fingerprint IS NOT NULL RETURN d.id, d.fingerprint ORDER BY d.id")
        return dict(rows)

    def replace_documents(self, documents: Sequence[DocumentGraph]) -> int:
        check_documents(documents)
        for batch in batches(documents, _ROWS_A_TRANSACTION):
            self._atomically(partial(_replacing, batch))
        return sum(map(row_count, documents))

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        ids = [id_ for id_ in dict.fromkeys(document_ids) if is_id(id_)]
        return sum(
            self._delete(ids[start : start + _DELETED_A_TRANSACTION]) for start in range(0, len(ids), _DELETED_A_TRANSACTION)
        )

    def _delete(self, document_ids: Sequence[str]) -> int:
        known = 0

        def plan(read: Reader) -> Statements:
            nonlocal known
            change = replacement(read, document_ids, [])
            known = len(change.known)
            return change.statements

        self._atomically(plan)
        return known

    def find_entities(self, *, ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Entity]:
        matches: dict[str, Entity] = {}
        for name, values in (("id", ids), ("key", keys)):
            if values:
                wanted = dict.fromkeys(values)
                statement = f"MATCH (e:Entity) WHERE e.{name} IN $values RETURN {ENTITY}"
                entities = map(entity_record, self._read(statement, {"values": list(wanted)}))
                # FalkorDB's index ignores outer blanks.
                matches.update((e.id, e) for e in entities if (e.id if name == "id" else e.key) in wanted)
        return [matches[id_] for id_ in sorted(matches)]

    def find_chunks(self, ids: Sequence[str]) -> list[Chunk]:
        wanted = list(filter(is_id, dict.fromkeys(ids)))
        chunks = chunks_by_id(self._read, wanted)
        return [chunks[id_] for id_ in sorted(wanted) if id_ in chunks]

    def search_entities(self, text: str, k: int) -> list[Scored[Entity]]:
        return search.search_entities(self._read, text, k)

    def search_chunks(self, question: str, k: int) -> list[Scored[Chunk]]:
        return search.search_chunks(self._read, question, k)

    def neighbourhood(
        self,
        entity_ids: Sequence[str],
        hops: int,
        limit: int = 1000,
        *,
        active_after: str | None = None,
        active_before: str | None = None,
    ) -> Neighbourhood:
        return walks.neighbourhood(self._read, entity_ids, hops, limit, active_after, active_before)

    def shortest_paths(self, pairs: Sequence[tuple[str, str]], max_length: int = 5, limit: int = 3) -> list[list[Path]]:
        return walks.paths(self._read, pairs, max_length, limit)

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
        return walks.find_relations(self._read, head_ids, tail_ids, labels, min_score, active_after, active_before, limit)

    def chunks_of(self, entity_ids: Sequence[str], limit: int = 1000) -> dict[str, list[Scored[Chunk]]]:
        return walks.chunks_of(self._read, entity_ids, limit)

    def entities_of(self, chunk_ids: Sequence[str]) -> dict[str, list[Entity]]:
        return walks.entities_of(self._read, chunk_ids)

    def entities(self, page_size: int = 5000) -> Iterator[Entity]:
        return streams.all_entities(self._read, page_size)

    def relations(self, page_size: int = 5000) -> Iterator[Relation]:
        return streams.all_relations(self._read, page_size)

    def mention_counts(self, page_size: int = 5000) -> Iterator[tuple[str, str, int]]:
        return streams.mention_counts(self._read, page_size)

    def relation_labels(self) -> dict[str, int]:
        return streams.frequencies(self._read, "MATCH (:Entity)-[r]->(:Entity) WITH r.label AS name, count(r) AS n")

    def entity_types(self) -> dict[str, int]:
        return streams.frequencies(self._read, "MATCH (e:Entity) WITH e.entity_type AS name, count(e) AS n")

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
        for statements in vector_statements(self.dialect, change):
            self._atomically(partial(_as_planned, statements), new_revision=False)
        return change.counts

    def stats(self) -> GraphStats:
        return streams.stats(self._read)


def _replacing(batch: Sequence[DocumentGraph], read: Reader) -> Statements:
    return replacement(read, [graph.document.id for graph in batch], batch).statements


def _as_planned(statements: Statements, read: Reader) -> Statements:
    return statements
