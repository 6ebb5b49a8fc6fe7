"""Strategy "hybrid": keyword, vector and graph rankings of the same hits become one, by reciprocal rank fusion."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field

from resources.options import Options
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.embeddings.sync import CHUNK_INDEX
from retrico_assets.query.providers.rule import graph_ranking, open_providers
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.retrievers.meaning import search_index
from retrico_assets.query.retrievers.ranking import RelationScorer, with_ends, words_of
from retrico_assets.query.sources import Need, Sources

_RRF_K = 60
_DEPTH = 30
"""Hits that each stream gives, or ``k`` if that is more."""
_MOST_RELATIONS = 2000


class HybridOptions(Options):
    """``min_score``: hits that score less, from 0 to 1, are left out."""

    min_score: float = Field(default=0.0, ge=0, le=1)


@dataclass(frozen=True, slots=True)
class Fused:
    """A hit's score, 0 to 1, and the streams that found it."""

    score: float
    streams: tuple[str, ...]


def fuse_streams(streams: Mapping[str, Sequence[str]]) -> dict[str, Fused]:
    """Unweighted reciprocal rank fusion of ranked ids, k = 60, ranks from 1; best first, then by id.

    A hit scores the sum of 1 / (60 + rank) x 61 / the number of streams that are not empty: first in each of them is 1. A
    repeated id counts where it stands first. (Cormack, Clarke and Büttcher, SIGIR 2009; scaled as TnsAI's hybrid search.)
    """
    ranks = {name: {id: rank for rank, id in enumerate(dict.fromkeys(ids), 1)} for name, ids in streams.items() if ids}
    found = {}
    for id in {id for ids in ranks.values() for id in ids}:
        shares = {name: (_RRF_K + 1) / (_RRF_K + ids[id]) for name, ids in ranks.items() if id in ids}
        found[id] = Fused(math.fsum(shares.values()) / len(ranks), tuple(shares))
    return {id: found[id] for id in sorted(found, key=lambda id: (-found[id].score, id))}


class HybridRetriever(Retriever):
    """BM25 over the texts, cosine similarity of their embeddings, and the graph when a provider serves one.

    A hit is a chunk, or a relation that no chunk states (a live triple); what graph providers find otherwise counts by the
    chunks it came from. Each hit says in its metadata (a relation in its properties) which streams found it
    (``retrievalStreams``) and whether there was a graph stream (``graphStream``: ``fused`` or ``skipped``). Entities and
    relations score as the best hit that mentions or states them; equal ones by RelationScorer and by id.
    """

    name: ClassVar[str] = "hybrid"
    needs: ClassVar[frozenset[Need]] = frozenset(("texts", "vectors", "embedder"))
    wants: ClassVar[frozenset[Need]] = frozenset(("graph", "names"))
    options = HybridOptions
    config: HybridOptions

    def __init__(self, sources: Sources, config: HybridOptions | None = None) -> None:
        super().__init__(sources, config)
        self._providers = open_providers(sources, only_if_it_can=True)

    def search(self, question: Question, k: int) -> Subgraph:
        if not words_of(question.text):
            return Subgraph()
        depth = max(k, _DEPTH)
        graph = graph_ranking(self._providers, question, depth)
        by_word = self.texts.search(question.text, depth)
        by_meaning = self._nearest(question.text, depth)
        streams = {"bm25": _ids(by_word), "vector": _ids(by_meaning), "graph": _graph_hits(graph)}
        fused = {id: hit for id, hit in fuse_streams(streams).items() if hit.score >= self.config.min_score}
        found = {one.record.id: one.record for one in (*by_meaning, *by_word, *graph.chunks)}  # the graph's say their source
        chunks = [Scored(self._marked(found[id], hit), hit.score) for id, hit in fused.items() if id in found][:k]
        return self._with_facts(question.text, chunks, graph, fused, k)

    def _nearest(self, text: str, depth: int) -> list[Scored[Chunk]]:
        hits = search_index(self.vectors, self.embedder, CHUNK_INDEX, [text], depth)[0]
        stored = self.texts.get_chunks([hit.record for hit in hits])
        return [Scored(stored[hit.record], hit.score) for hit in hits if hit.record in stored]

    def _marked(self, chunk: Chunk, hit: Fused) -> Chunk:
        return replace(chunk, metadata={**chunk.metadata, **self._said(hit)})

    def _said(self, hit: Fused) -> dict[str, Any]:
        return {"retrievalStreams": list(hit.streams), "graphStream": "fused" if self._providers else "skipped"}

    def _with_facts(
        self, question: str, chunks: Sequence[Scored[Chunk]], graph: Subgraph, fused: Mapping[str, Fused], k: int
    ) -> Subgraph:
        """The chunks with what they mention and state, and the relations that are hits themselves."""
        scores = {one.record.id: one.score for one in chunks}
        mentioned = self.sources.graph.entities_of(list(scores)) if self.sources.graph is not None and scores else {}
        entities = {entity.id: entity for named in mentioned.values() for entity in named}
        relations: dict[str, Relation] = {}
        if self.sources.graph is not None and entities:
            ids = list(entities)
            relations |= {r.id: r for r in self.sources.graph.find_relations(head_ids=ids, tail_ids=ids, limit=_MOST_RELATIONS)}
        entities |= {one.record.id: one.record for one in graph.entities}
        relations |= {one.record.id: one.record for one in graph.relations}
        ranked = self._ranked_relations(question, list(relations.values()), entities, scores, fused)[:k]
        best: dict[str, float] = {}
        for id, score in [(e.id, scores[chunk]) for chunk, named in mentioned.items() for e in named] + [
            (end, one.score) for one in ranked for end in (one.record.head_id, one.record.tail_id)
        ]:
            best[id] = max(best.get(id, 0.0), score)
        order = sorted(best, key=lambda id: (-best[id], id))
        return Subgraph(with_ends([Scored(entities[id], best[id]) for id in order], ranked, k), tuple(ranked), tuple(chunks))

    def _ranked_relations(
        self,
        question: str,
        relations: Sequence[Relation],
        entities: Mapping[str, Entity],
        chunk_scores: Mapping[str, float],
        fused: Mapping[str, Fused],
    ) -> list[Scored[Relation]]:
        fit = RelationScorer(question)
        found = []
        for relation in relations:
            if relation.head_id not in entities or relation.tail_id not in entities:
                continue
            if relation.id in fused:
                hit = fused[relation.id]
                marked = replace(relation, properties={**relation.properties, **self._said(hit)})
                found.append((marked, hit.score))
            elif stating := [chunk_scores[id] for id in relation.chunk_ids if id in chunk_scores]:
                found.append((relation, max(stating)))
        found.sort(key=lambda one: (-one[1], -fit(one[0], 1.0), one[0].id))
        return [Scored(relation, score) for relation, score in found]


def _ids(ranking: Sequence[Scored[Chunk]]) -> list[str]:
    return [one.record.id for one in ranking]


def _graph_hits(graph: Subgraph) -> list[str]:
    """Ids of the chunks and of the relations without any, best first."""
    hits = [(one.score, one.record.id) for one in graph.chunks]
    hits += [(one.score, one.record.id) for one in graph.relations if not one.record.chunk_ids]
    return [id for _, id in sorted(hits, key=lambda hit: -hit[0])]
