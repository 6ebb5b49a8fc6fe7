"""Strategy "graph": what the providers that serve the project's graph find, and nothing else."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from resources.errors import GraphCapabilityError
from resources.records import Subgraph
from retrico_assets.query.providers.base import GraphProvider
from retrico_assets.query.providers.rule import graph_ranking, open_providers
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Need, Retriever, Sources


class GraphRetriever(Retriever):
    """What the graph providers that serve the project find.

    Hits carry their provider's name as ``source``: chunks in their metadata, entities and relations in their properties.
    GraphCapabilityError when no provider serves.
    """

    name: ClassVar[str] = "graph"
    needs: ClassVar[frozenset[Need]] = frozenset(("texts",))
    wants: ClassVar[frozenset[Need]] = frozenset(("graph", "names"))

    def __init__(self, providers: Sequence[GraphProvider]) -> None:
        if not providers:
            raise GraphCapabilityError("graph retrieval is asked for, but no graph provider serves; give it a graph store")
        self._providers = tuple(providers)

    @classmethod
    def from_sources(cls, sources: Sources, options: Any) -> Self:
        return cls(open_providers(sources.project, sources))

    def retrieve(self, question: Question, k: int) -> Subgraph:
        return graph_ranking(self._providers, question, k)
