"""Provider "neo4j": a graph of the house's schema in a Neo4j database. It is only read."""

import logging
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, Self

from resources.errors import StoreError
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from resources.secrets import mask_secrets
from resources.text.names import identity_key
from retrico_assets.query.providers.base import GraphProvider
from retrico_assets.query.providers.options import ProjectFacts, RetrievalOptions
from retrico_assets.query.question.names import candidate_names
from retrico_assets.query.question.question import LONGEST_QUESTION, Question
from retrico_assets.query.retrievers.ranking import RelationScorer, ranked_relations, unit, with_ends
from retrico_assets.query.sources import Sources

Rows = list[dict[str, Any]]
Read = Callable[[str, Mapping[str, Any]], Rows]
"""Runs one statement with its parameters; rows by column name."""

NAMED = (
    "MATCH (e:Entity) WHERE e.key IN $keys"
    " RETURN e.id AS entity_id, e.label AS entity_label, e.key AS entity_key, e.entity_type AS entity_type"
)
RELATIONS = (
    "MATCH (e:Entity) WHERE e.id IN $ids MATCH (e)-[r]-(:Entity)"
    " WITH DISTINCT r, startNode(r) AS h, endNode(r) AS t"
    " RETURN r.id AS id, r.label AS label, r.score AS score, r.chunk_ids AS chunk_ids,"
    " r.start_date AS start_date, r.end_date AS end_date,"
    " h.id AS head_id, h.label AS head_label, h.key AS head_key, h.entity_type AS head_type,"
    " t.id AS tail_id, t.label AS tail_label, t.key AS tail_key, t.entity_type AS tail_type"
    " ORDER BY score DESC, id LIMIT $limit"
)
"""The relations of the named entities, the surest first."""
MENTIONS = (
    "MATCH (e:Entity) WHERE e.id IN $ids MATCH (e)-[m:MENTIONED_IN]->(c:Chunk)"
    " RETURN c.id AS chunk_id, max(m.score) AS score ORDER BY score DESC, chunk_id LIMIT $limit"
)
"""The chunks that mention the named entities."""
CHUNKS = (
    "MATCH (c:Chunk) WHERE c.id IN $ids RETURN c.id AS id, c.document_id AS document_id,"
    " c.index AS index, c.text AS text, c.start AS start, c.end AS end"
)

_MOST_ROWS = 1000
_MENTION_WEIGHT = 0.1


class Neo4jProvider(GraphProvider):
    """Claims when a Neo4j URI is set (``retrieval.neo4j.uri`` or NEO4J_URI) and the driver can be imported."""

    name: ClassVar[str] = "neo4j"

    def __init__(self, uri: str, user: str, password: str | None, database: str | None = None) -> None:
        """Nothing is connected yet. Without a password the server is asked without authentication."""
        self._uri = uri
        self._auth = None if password is None else (user, password)
        self._database = database

    @classmethod
    def claims(cls, project: ProjectFacts) -> bool:
        uri = _uri(project.retrieval)
        if uri and find_spec("neo4j") is None:
            _warn_once(uri)
            return False
        return bool(uri)

    @classmethod
    def open(cls, project: ProjectFacts, sources: Sources) -> Self:
        chosen = project.retrieval.neo4j
        return cls(_uri(project.retrieval), chosen.user, os.environ.get(chosen.password.env), chosen.database)

    def rank(self, question: Question, k: int) -> Subgraph:
        from neo4j import GraphDatabase, RoutingControl
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            with GraphDatabase.driver(self._uri, auth=self._auth, connection_timeout=5, max_transaction_retry_time=2) as driver:

                def read(statement: str, parameters: Mapping[str, Any]) -> Rows:
                    # READ: the server refuses a statement that would write.
                    records, _, _ = driver.execute_query(
                        statement, dict(parameters), routing_=RoutingControl.READ, database_=self._database
                    )
                    return [record.data() for record in records]

                return rank_rows(read, question, k)
        except (DriverError, Neo4jError, ValueError) as error:
            problem = f"the Neo4j database at {self._uri} can't be asked: {type(error).__name__}: {error}"
            raise StoreError(mask_secrets(problem)) from error


def rank_rows(read: Read, question: Question, k: int) -> Subgraph:
    """What a database of the house's schema says one hop around the entities that the question names by identity key.

    Of names inside each other the longest counts. Named entities score 1, those around them 1/2; relations as
    RelationScorer says, with nearness 1/2; a chunk as the best relation kept that it states, plus a tenth of the best score
    with which it mentions a named entity.
    """
    keys = name_keys(question)
    named = _longest(read(NAMED, {"keys": keys})) if keys else []
    if not named:
        return Subgraph()
    parameters = {"ids": sorted(row["entity_id"] for row in named), "limit": _MOST_ROWS}
    stated = read(RELATIONS, parameters)
    score = RelationScorer(question.text)
    relations = ranked_relations([(relation, score(relation, 0.5)) for relation in map(_relation, stated)], k)
    chunk_scores = {row["chunk_id"]: _MENTION_WEIGHT * unit(row["score"]) for row in read(MENTIONS, parameters)}
    best: dict[str, float] = {}
    for found in relations:
        for chunk_id in found.record.chunk_ids:
            best[chunk_id] = max(best.get(chunk_id, 0.0), found.score)
    for chunk_id, value in best.items():
        chunk_scores[chunk_id] = chunk_scores.get(chunk_id, 0.0) + value
    ids = sorted(chunk_scores, key=lambda id: (-chunk_scores[id], id))[:k]
    chunks = {row["id"]: _chunk(row) for row in (read(CHUNKS, {"ids": ids}) if ids else [])}
    entities = with_ends(_entities(named, stated), relations, k)
    return Subgraph(entities, relations, tuple(Scored(chunks[id], chunk_scores[id]) for id in ids if id in chunks))


def name_keys(question: Question) -> list[str]:
    """Identity keys of everything in the question that may be a name: its mentions, and runs of its words."""
    mentions = {identity_key(mention.text) for mention in question.mentions}
    candidates = candidate_names(question.text[:LONGEST_QUESTION])
    return sorted((mentions | {key for name in candidates for key in (name.key, name.singular)}) - {""})


def _longest(named: Rows) -> Rows:
    """The entities whose name does not lie inside the name of another."""
    keys = {row["entity_key"] for row in named}

    def inside(key: str) -> bool:
        return any(key != other and (f" {key} " in f" {other} " or (not key.isascii() and key in other)) for other in keys)

    return [row for row in named if not inside(row["entity_key"])]


def _entities(named: Rows, stated: Rows) -> list[Scored[Entity]]:
    """The named entities, then the others; both by id."""
    found: dict[str, Scored[Entity]] = {}
    sides = [(row, "entity") for row in named] + [(row, side) for row in stated for side in ("head", "tail")]
    for row, side in sides:
        id = row[f"{side}_id"]
        entity = Entity(id, row[f"{side}_label"], row[f"{side}_key"], row[f"{side}_type"] or "")
        found.setdefault(id, Scored(entity, 1.0 if side == "entity" else 0.5))
    return sorted(found.values(), key=lambda one: (-one.score, one.record.id))


def _relation(row: Mapping[str, Any]) -> Relation:
    return Relation(
        row["id"],
        row["head_id"],
        row["label"],
        row["tail_id"],
        row["score"],
        tuple(row["chunk_ids"] or ()),
        row["start_date"],
        row["end_date"],
    )


def _chunk(row: Mapping[str, Any]) -> Chunk:
    return Chunk(row["id"], row["document_id"], row["index"], row["text"], row["start"], row["end"])


def _uri(retrieval: RetrievalOptions) -> str:
    return retrieval.neo4j.uri or os.environ.get("NEO4J_URI", "").strip()


@lru_cache
def _warn_once(uri: str) -> None:
    logging.getLogger(__name__).warning(
        "a Neo4j URI is set (%s), but the package neo4j can't be imported: the provider does not claim; install neo4j",
        mask_secrets(uri),
    )
