"""Strategy "graph": what the providers that serve the project's graph find, and nothing else."""

from typing import ClassVar

from resources.errors import GraphCapabilityError
from resources.options import Options
from resources.records import Subgraph
from retrico_assets.query.providers.rule import graph_ranking, open_providers
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.sources import Need, Sources


class GraphRetriever(Retriever):
    """What the graph providers that serve the project find.

    Hits carry their provider's name as ``source``: chunks in their metadata, entities and relations in their properties.
    GraphCapabilityError when no provider serves.
    """

    name: ClassVar[str] = "graph"
    needs: ClassVar[frozenset[Need]] = frozenset(("texts",))
    wants: ClassVar[frozenset[Need]] = frozenset(("graph", "names"))

    def __init__(self, sources: Sources, config: Options | None = None) -> None:
        super().__init__(sources, config)
        self._providers = open_providers(sources)
        if not self._providers:
            raise GraphCapabilityError("No graph provider serves this project. Configure a graph store for graph retrieval.")

    def search(self, question: Question, k: int) -> Subgraph:
        return graph_ranking(self._providers, question, k)
