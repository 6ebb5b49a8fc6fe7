"""The project's own graph store as a provider."""

from typing import ClassVar, Self

from resources.graph.base import GraphStore
from resources.records import Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.providers.base import CORPUS, GraphProvider, rank_store, selected
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Need, Sources
from retrico_assets.settings import ProjectSettings


class ProjectGraphProvider(GraphProvider):
    """Claims when the project keeps its graph in one of ``backends``, unless the selected sources leave the corpus out.

    By itself, ``name`` being "graph", it stands for a store that a caller hands over without a project.
    """

    name: ClassVar[str] = "graph"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts"))
    backends: ClassVar[tuple[str, ...]] = ()

    def __init__(self, store: GraphStore, texts: TextStore) -> None:
        self._store = store
        self._texts = texts

    @classmethod
    def claims(cls, settings: ProjectSettings) -> bool:
        return settings.stores.graph.backend in cls.backends and selected(settings, CORPUS, cls.name)

    @classmethod
    def open(cls, settings: ProjectSettings, sources: Sources) -> Self:
        assert sources.graph is not None
        assert sources.texts is not None
        return cls(sources.graph, sources.texts)

    def rank(self, question: Question, k: int) -> Subgraph:
        return rank_store(self._store, self._texts, question, k)


class FalkorDBProvider(ProjectGraphProvider):
    name = "falkordb"
    backends = ("falkordb_embedded",)
