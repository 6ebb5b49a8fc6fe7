"""Whole graphs in Cypher, streamed page by page, and counts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from resources.errors import StoreError
from resources.graph.cypher.dialect import Reader
from resources.graph.cypher.records import ENTITY, RELATION, entity_record, relation_record
from resources.records import Entity, GraphStats, Relation

_ENTITIES = "MATCH (n:Entity) RETURN count(n)"
_RELATIONS = "MATCH (:Entity)-[r]->(:Entity) RETURN count(r)"
_MENTIONS = "MATCH (:Entity)-[m:MENTIONED_IN]->(:Chunk) RETURN count(m)"


def stats(read: Reader) -> GraphStats:
    return GraphStats(
        documents=_count(read, "MATCH (n:Document) RETURN count(n)"),
        chunks=_count(read, "MATCH (n:Chunk) RETURN count(n)"),
        mentions=_count(read, _MENTIONS),
        entities=_count(read, _ENTITIES),
        relations=_count(read, _RELATIONS),
    )


def _count(read: Reader, statement: str) -> int:
    return int(read(statement)[0][0])


def frequencies(read: Reader, names: str) -> dict[str, int]:
    """How often each name comes. ``names`` is a clause that gives ``name`` and its count ``n``."""
    ((pairs,),) = read(f"{names} ORDER BY n DESC, name RETURN collect([name, n])")  # one row: no server cuts it
    return dict(pairs)


def all_entities(read: Reader, page_size: int) -> Iterator[Entity]:
    keys = "MATCH (e:Entity) WITH e.id AS id ORDER BY id RETURN collect([id, 1])"
    page = f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {ENTITY} ORDER BY e.id"
    yield from map(entity_record, _Stream("entities", keys, page, _ENTITIES).rows(read, page_size))


def all_relations(read: Reader, page_size: int) -> Iterator[Relation]:
    keys = "MATCH (h:Entity)-[r]->(:Entity) WITH h.id AS id, count(r) AS n ORDER BY id RETURN collect([id, n])"
    page = f"MATCH (h:Entity)-[r]->(t:Entity) WHERE h.id IN $ids RETURN {RELATION} ORDER BY h.id, r.id"
    yield from map(relation_record, _Stream("relations", keys, page, _RELATIONS).rows(read, page_size))


def mention_counts(read: Reader, page_size: int) -> Iterator[tuple[str, str, int]]:
    keys = "MATCH (e:Entity)-[m:MENTIONED_IN]->(:Chunk) WITH e.id AS id, count(m) AS n ORDER BY id RETURN collect([id, n])"
    page = f"""MATCH (e:Entity)-[m:MENTIONED_IN]->(c:Chunk) WHERE e.id IN $ids
WITH e.id AS id, c.id AS chunk, count(m) AS n ORDER BY id, chunk
RETURN id, {read.dialect.joined("chunk")}, collect(n) ORDER BY id"""
    for entity_id, chunk_ids, counts in _Stream("mentions", keys, page, _MENTIONS, lambda row: sum(row[2])).rows(read, page_size):
        yield from zip(repeat(entity_id), read.dialect.split(chunk_ids), counts)


def _one(row: list[Any]) -> int:
    return 1


@dataclass(frozen=True)
class _Stream:
    """Rows of ``page`` for runs of entity ids.

    ``keys`` gives [id, number of things] for each entity, collected in one row, which no server cuts. Ranges of ids are not
    used: FalkorDB's index answers ``id < 'a14'`` with 'a15'. ``things`` says how many things a row stands for, ``count`` is
    the statement that counts them all.
    """

    what: str
    keys: str
    page: str
    count: str
    things: Callable[[list[Any]], int] = _one

    def rows(self, read: Reader, page_size: int) -> Iterator[list[Any]]:
        """Stream the rows.

        Raises:
            StoreError: the server gave fewer things than it counts.
        """
        before, given = _count(read, self.count), 0
        for ids in _runs(read(self.keys)[0][0], page_size):
            for row in read(self.page, {"ids": ids}):
                given += self.things(row)
                yield row
        expected = min(before, _count(read, self.count))
        if given < expected:
            raise StoreError(
                f"The {read.dialect.database} server counts {expected} {self.what} but returned {given}: it cuts long results."
                " Set its RESULTSET_SIZE to -1."
            )


def _runs(weighted: Sequence[tuple[str, int]], size: int) -> Iterator[list[str]]:
    """Runs of ids that stand for ``size`` things or more; the last one may stand for fewer."""
    run: list[str] = []
    weight = 0
    for id_, things in weighted:
        run.append(id_)
        weight += things
        if weight >= size:
            yield run
            run, weight = [], 0
    if run:
        yield run
