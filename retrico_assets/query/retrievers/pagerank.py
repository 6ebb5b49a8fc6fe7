"""Strategy "pagerank": a walk over the whole graph that keeps coming back to what the question is about."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from resources.options import Options
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.embeddings.sync import CHUNK_INDEX, RELATION_INDEX
from retrico_assets.graph.entity_graph import EntityGraph
from retrico_assets.graph.entity_graph_cache import current_entity_graph
from retrico_assets.query.question.names import known_names
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.retrievers.meaning import embed_texts, search_index
from retrico_assets.query.retrievers.ranking import RelationScorer, ranked_relations, with_ends
from retrico_assets.query.sources import Need

_STEPS = 20
"""Of the power iteration: with a damping of 0.5 what is left is below a millionth."""

_UNCAPITALISED = 0.25
"""How sure a name without a capital is, beside others that have one: "place of birth" may be the title of a document."""


class PageRankOptions(Options):
    """The four weights are shares of the walker's starts; those of kinds that find nothing go to the others."""

    damping: float = Field(default=0.5, ge=0, lt=1, description="How probably the walker goes on instead of starting again.")
    name_weight: float = Field(default=1.0, ge=0, description="Starts at the entities and titles that the question names.")
    triple_weight: float = Field(default=0.1, ge=0, description="Starts at the ends of relations that say what it asks.")
    chunk_weight: float = Field(default=0.025, ge=0, description="Starts at chunks of similar meaning.")
    keyword_weight: float = Field(default=0.025, ge=0, description="Starts at chunks that share words with it.")
    triples: int = Field(default=5, ge=1, description="Relations to start from.")
    triple_score: float = Field(default=0.7, ge=-1, le=1, description="Least similarity of such a relation.")
    chunks: int = Field(default=100, ge=1, description="Chunks to start from.")
    similarity: float = Field(default=0.5, ge=0, description="How much a chunk's similarity to the question adds to its score.")


class PageRankRetriever(Retriever):
    """Personalised PageRank over entities, titles, relations and chunks, after HippoRAG (Gutiérrez et al. 2024,
    arXiv:2405.14831, and 2025, arXiv:2502.14802).

    An entity scores the share of time that the walker spends on it; a chunk that x (1 + ``similarity`` x the cosine of its
    embedding and the question's, if above 0), which tells apart what the walk hardly does; a relation as RelationScorer says,
    its nearness being the mean of its ends' shares, as part of the greatest.
    """

    name: ClassVar[str] = "pagerank"
    needs: ClassVar[frozenset[Need]] = frozenset(("names", "graph", "texts", "vectors", "embedder"))
    options = PageRankOptions
    config: PageRankOptions

    def search(self, question: Question, k: int) -> Subgraph:
        if not question.text.strip():
            return Subgraph()
        whole = current_entity_graph(self.graph, self.texts, self.sources.cache)
        seeds = self._seeds(question, whole)
        if not seeds.any():
            return Subgraph()
        shares = whole.walk(seeds / seeds.sum(), self.config.damping, _STEPS)
        entities, relations = self._entities_and_relations(question, whole, shares, k)
        return Subgraph(entities, relations, self._chunks(question, whole, shares, k))

    def _seeds(self, question: Question, whole: EntityGraph) -> np.ndarray:
        options = self.config
        kinds = (
            (options.name_weight, self._names),
            (options.triple_weight, self._triples),
            (options.chunk_weight, self._similar_chunks),
            (options.keyword_weight, self._worded_chunks),
        )
        seeds = np.zeros(whole.transition.shape[0])
        for weight, find in kinds:
            found = find(question, whole) if weight else np.zeros(0)
            if found.any():
                seeds += weight * found / found.sum()
        return seeds

    def _names(self, question: Question, whole: EntityGraph) -> np.ndarray:
        """Entities and titles named, rarer ones and surer ones more.

        What is part of a longer name is not meant by itself, and a guess from part of a name counts only when nothing is known
        by its whole name.
        """
        names = known_names(question.text, whole.names)
        sure: dict[int, float] = {}
        for name in names:
            score = _UNCAPITALISED if question.text[name.start : name.end].islower() else 1.0
            sure |= {node: max(score, sure.get(node, 0.0)) for node in whole.names[name.key]}
        longer = [set(name.key.split()) for name in names]
        for entity in question.entities:
            score, words = question.link_score(entity.id), set(entity.key.split())
            if entity.id not in whole.entity_number or any(words <= other for other in longer) or (names and score < 1):
                continue
            sure.setdefault(whole.entity_number[entity.id], score)
        seeds = np.zeros(whole.transition.shape[0])
        for node, score in sure.items():
            seeds[node] = score / max(whole.frequency[node], 1.0)
        return seeds

    def _triples(self, question: Question, whole: EntityGraph) -> np.ndarray:
        seeds = np.zeros(whole.transition.shape[0])
        hits = search_index(self.vectors, self.embedder, RELATION_INDEX, [question.text], self.config.triples)[0]
        for hit in hits:
            if hit.score >= self.config.triple_score and hit.record in whole.relation_number:
                for node in whole.ends[whole.relation_number[hit.record]]:
                    seeds[node] += hit.score / max(whole.frequency[node], 1.0)
        return seeds

    def _similar_chunks(self, question: Question, whole: EntityGraph) -> np.ndarray:
        hits = search_index(self.vectors, self.embedder, CHUNK_INDEX, [question.text], self.config.chunks)[0]
        return _chunk_seeds(whole, [(hit.record, hit.score) for hit in hits])

    def _worded_chunks(self, question: Question, whole: EntityGraph) -> np.ndarray:
        hits = self.texts.search(question.text, self.config.chunks)
        return _chunk_seeds(whole, [(hit.record.id, hit.score) for hit in hits])

    def _entities_and_relations(
        self, question: Question, whole: EntityGraph, shares: np.ndarray, k: int
    ) -> tuple[tuple[Scored[Entity], ...], tuple[Scored[Relation], ...]]:
        ids = whole.entity_ids
        best = {ids[node]: float(shares[node]) for node in _best(shares[: len(ids)], 3 * k)}
        around = self.graph.neighbourhood(list(best), 0, limit=len(best))
        most = max(best.values(), default=1.0)
        score = RelationScorer(question.text)
        relations = ranked_relations(
            ((r, score(r, (best[r.head_id] + best[r.tail_id]) / (2 * most))) for r in around.relations), k
        )
        found = {entity.id: entity for entity, _ in around.entities}
        ranked = [Scored(found[id], share) for id, share in best.items() if id in found]
        return with_ends(ranked, relations, k), relations

    def _chunks(self, question: Question, whole: EntityGraph, shares: np.ndarray, k: int) -> tuple[Scored[Chunk], ...]:
        of_chunks = shares[whole.first_chunk :]
        best = {whole.chunk_ids[place]: float(of_chunks[place]) for place in _best(of_chunks, 3 * k)}
        vectors = self.vectors.get(CHUNK_INDEX, list(best))
        asked = embed_texts(self.embedder, [question.text])[0]
        for id, vector in vectors.items():
            best[id] *= 1 + self.config.similarity * max(float(vector @ asked), 0.0)
        ids = sorted(best, key=lambda id: (-best[id], id))[:k]
        stored = self.texts.get_chunks(ids)
        return tuple(Scored(stored[id], best[id]) for id in ids if id in stored)


def _chunk_seeds(whole: EntityGraph, ranked: Sequence[tuple[str, float]]) -> np.ndarray:
    """From 1 for the best chunk down to 0 for the last of those looked at (1 for all, if they score the same)."""
    seeds = np.zeros(whole.transition.shape[0])
    known = [(id, score) for id, score in ranked if id in whole.chunk_number]
    if known:
        least, spread = known[-1][1], known[0][1] - known[-1][1]
        for id, score in known:
            seeds[whole.chunk_number[id]] = (score - least) / spread if spread > 0 else 1.0
    return seeds


def _best(shares: np.ndarray, k: int) -> Sequence[int]:
    """Places of the ``k`` greatest shares above 0, greatest first, equals in order of place."""
    places = np.flatnonzero(shares > 0)
    if len(places) > k:
        least = np.partition(shares[places], -k)[-k]
        places = places[shares[places] >= least]
    return [int(place) for place in places[np.argsort(-shares[places], kind="stable")][:k]]
