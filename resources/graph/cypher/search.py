"""Full-text search in Cypher: the database finds candidates, ``resources.graph.fulltext`` ranks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.graph.cypher.dialect import Reader
from resources.graph.cypher.records import chunks_by_id, entities_by_id
from resources.graph.encoding import identifier
from resources.graph.fulltext import name_phrases, question_phrases, rank_names, rank_texts, rarity
from resources.records import Chunk, Entity, Scored

_MOST_HITS = 5_000
"""How many hits of a question's phrases are added up. Beyond it the most frequent phrases only rank what rarer ones find."""


def search_entities(read: Reader, text: str, k: int) -> list[Scored[Entity]]:
    hits = _candidates(read, "Entity", name_phrases(text), k)
    ranked = rank_names(text, hits.texts, hits.frequencies, hits.total, k)
    entities = entities_by_id(read, [id_ for id_, _ in ranked])
    return [Scored(entities[id_], score) for id_, score in ranked if id_ in entities]


def search_chunks(read: Reader, question: str, k: int) -> list[Scored[Chunk]]:
    phrases = question_phrases(question)
    hits = _candidates(read, "Chunk", phrases, k)
    ranked = rank_texts(phrases, hits.texts, hits.frequencies, hits.total, k)
    chunks = chunks_by_id(read, [id_ for id_, _ in ranked])
    return [Scored(chunks[id_], score) for id_, score in ranked if id_ in chunks]


@dataclass(frozen=True)
class _Candidates:
    """Search texts by id, in how many texts each phrase is, and how many texts there are."""

    texts: Mapping[str, str] = field(default_factory=dict)
    frequencies: Mapping[str, int] = field(default_factory=dict)
    total: int = 0


def _candidates(read: Reader, label: str, phrases: Sequence[str], k: int) -> _Candidates:
    """Texts that hold the rarest of the phrases.

    Each phrase is a query of its own: in one query RediSearch would divide the score by the distance of the hits.
    """
    if not phrases or k < 1:
        return _Candidates()
    name = identifier(label)
    hits = read.dialect.full_text_hits(name, """'"' + phrase + '"'""")
    rows = read(f"UNWIND $phrases AS phrase {hits} RETURN phrase, count(node)", {"phrases": list(phrases)})
    frequencies = {str(phrase): int(count) for phrase, count in rows}
    total = read(f"MATCH (n:{name}) RETURN count(n)")[0][0]
    queries = _weighted_queries(read, frequencies, total, k)
    if not queries:
        return _Candidates(total=total)
    statement = f"""UNWIND $weighted AS w {read.dialect.full_text_hits(name, "w[0]")}
WITH node, sum(w[1]) AS weight, sum(score) AS score
WITH node, weight, score, node.search_text AS text ORDER BY weight DESC, score DESC, size(text), node.id LIMIT $limit
RETURN node.id, text"""
    rows = read(statement, {"weighted": queries, "limit": max(100, 4 * k)})
    return _Candidates(dict(rows), frequencies, total)


def _weighted_queries(read: Reader, frequencies: Mapping[str, int], total: int, k: int) -> list[list[Any]]:
    """Full-text queries with their weights: the rarest phrases, then, where hits get too many, all phrases at once."""
    queries: list[list[Any]] = []
    hits = 0
    for phrase in sorted(frequencies, key=lambda phrase: (frequencies[phrase], phrase)):
        if hits >= k and hits + frequencies[phrase] > _MOST_HITS:
            weight = sum(rarity(frequency, total) for frequency in frequencies.values())
            queries.append([read.dialect.all_phrases(list(frequencies)), weight])
            break
        hits += frequencies[phrase]
        queries.append([f'"{phrase}"', rarity(frequencies[phrase], total)])
    return queries
