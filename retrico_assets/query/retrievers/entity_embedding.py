"""Strategy "entity_embedding": the entities whose names mean what the question's mentions mean, and what is around them."""

from typing import ClassVar

from pydantic import Field

from resources.errors import StoreError
from resources.options import Options
from resources.records import Subgraph
from resources.text.names import identity_key
from retrico_assets.embeddings.sync import ENTITY_INDEX
from retrico_assets.query.question.question import LONGEST_QUESTION, Question
from retrico_assets.query.retrievers.base import MOST_HOPS, MOST_RESULTS, Retriever
from retrico_assets.query.retrievers.meaning import search_index
from retrico_assets.query.retrievers.ranking import around_entities, unit
from retrico_assets.query.sources import Need

_MOST_ENTITIES = 1000
"""Of the neighbourhood that is ranked."""


class EntityEmbeddingOptions(Options):
    per_mention: int = Field(default=5, ge=1, le=MOST_RESULTS)
    min_score: float = Field(default=0.4, ge=-1, le=1)
    hops: int = Field(default=1, ge=0, le=MOST_HOPS)


class EntityEmbeddingRetriever(Retriever):
    """Searches the entities' vectors with the question's mentions and walks ``hops`` relations out from what it finds.

    Looked up are the spans that the extractor found, else the names that the graph knows, else the whole question; each
    gives ``per_mention`` entities of a cosine similarity of ``min_score`` or more. Entities that have left the graph since
    their vectors were made are passed over. Scores are those of ``around_entities``, the similarity being a seed's.
    """

    name: ClassVar[str] = "entity_embedding"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts", "vectors", "embedder"))
    wants: ClassVar[frozenset[Need]] = frozenset(("names",))
    options = EntityEmbeddingOptions
    config: EntityEmbeddingOptions

    def search(self, question: Question, k: int) -> Subgraph:
        similarity = self._similar(_asked(question))
        if not similarity:
            return Subgraph()
        around = self.graph.neighbourhood(list(similarity), self.config.hops, limit=_MOST_ENTITIES)
        seeds = {entity.id: similarity[entity.id] for entity, hop in around.entities if hop == 0}
        return around_entities(question.text, seeds, around, self.texts, self.graph, k)

    def _similar(self, texts: list[str]) -> dict[str, float]:
        """The greatest similarity of each entity that is found, by id."""
        best: dict[str, float] = {}
        if texts:
            for hits in search_index(self.vectors, self.embedder, ENTITY_INDEX, texts, self.config.per_mention):
                for hit in hits:
                    if hit.score >= self.config.min_score:
                        best[hit.record] = max(best.get(hit.record, 0.0), unit(hit.score))
        return best


def _asked(question: Question) -> list[str]:
    """What to look up, each text once; nothing for a question without a word."""
    mentions = [mention.text for mention in question.mentions]
    if not mentions:
        if question.fault is not None:
            raise StoreError(question.fault)
        mentions = [entity.label for entity in question.entities] or [question.text[:LONGEST_QUESTION]]
    return list(dict.fromkeys(text for text in mentions if identity_key(text)))
