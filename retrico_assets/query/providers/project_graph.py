"""The project's own graph store as a provider."""

from typing import ClassVar, Self

from resources.records import Subgraph
from retrico_assets.query.providers.base import CORPUS, GraphProvider, rank_store, selected
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.question.question import Question
from retrico_assets.query.sources import Need, Sources


class ProjectGraphProvider(GraphProvider):
    """Claims when the project keeps its graph in one of ``backends``, unless the selected sources leave the corpus out.

    By itself, ``name`` being "graph", it stands for a store that a caller hands over without a project.
    """

    name: ClassVar[str] = "graph"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts"))
    backends: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def claims(cls, project: ProjectFacts) -> bool:
        return project.graph_backend in cls.backends and selected(project.retrieval, CORPUS, cls.name)

    @classmethod
    def open(cls, project: ProjectFacts, sources: Sources) -> Self:
        return cls(sources)

    def rank(self, question: Question, k: int) -> Subgraph:
        return rank_store(self.graph, self.texts, question, k)


class FalkorDBProvider(ProjectGraphProvider):
    name = "falkordb"
    backends = ("falkordb_embedded",)
