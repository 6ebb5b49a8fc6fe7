"""What every graph provider does: a graph that can be ranked against a question, and when it offers itself."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from resources.graph.base import GraphStore
from resources.records import Scored, Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.providers.options import ProjectFacts, RetrievalOptions
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.entity import EntityRetriever
from retrico_assets.query.sources import Sources, UsesSources

CORPUS = "corpus"
"""The name by which ``retrieval.sources`` selects the project's own documents."""


class GraphProvider(UsesSources):
    """A graph for retrieval. Which provider serves a project is the rule's to say (rule.py)."""

    name: ClassVar[str]
    """Stamped on every hit as its ``source``."""
    is_default: ClassVar[bool] = False
    """Defaults step back when another provider claims the project."""

    @classmethod
    @abstractmethod
    def claims(cls, project: ProjectFacts) -> bool:
        """Whether this provider can serve the project. Looks at the configuration only; nothing is opened."""

    @classmethod
    @abstractmethod
    def open(cls, project: ProjectFacts, sources: Sources) -> Self:
        """The provider, ready to rank."""

    @abstractmethod
    def rank(self, question: Question, k: int) -> Subgraph:
        """At most ``k`` chunks that the graph leads to and ``k`` relations, best first, with the entities at their ends.

        A relation's provenance is its ``chunk_ids``; one without any is a hit of its own. Scores are finite and those of
        chunks and of relations without a chunk compare. Nothing found is an empty result.
        """


def selected(retrieval: RetrievalOptions, *names: str) -> bool:
    """Whether the project's selection of sources has one of the names; without a selection everything is selected."""
    return not retrieval.sources or any(name in retrieval.sources for name in names)


def rank_store(store: GraphStore, texts: TextStore, question: Question, k: int) -> Subgraph:
    """What a graph store says around the entities that the question names: the strategy "entity" over this store."""
    named = question if question.entities else link(Question(question.text, question.mentions), store)
    return EntityRetriever(Sources(graph=store, texts=texts)).retrieve(named, k)


def stamped(found: Subgraph, source: str) -> Subgraph:
    """The same, each entity, relation and chunk saying where it was found."""
    mark: Mapping[str, Any] = {"source": source}
    return Subgraph(
        tuple(Scored(replace(e.record, properties={**e.record.properties, **mark}), e.score) for e in found.entities),
        tuple(Scored(replace(r.record, properties={**r.record.properties, **mark}), r.score) for r in found.relations),
        tuple(Scored(replace(c.record, metadata={**c.record.metadata, **mark}), c.score) for c in found.chunks),
    )
