"""What strategies and graph providers draw on: the project's stores and models."""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeVar

from resources.errors import SettingsError
from retrico_assets.query.providers.options import ProjectFacts

if TYPE_CHECKING:  # options.py imports this module, and loading a project must not cost numpy
    from resources.graph.base import GraphStore
    from resources.models.embedders.base import Embedder
    from resources.models.llm.client import ChatModel
    from resources.texts.base import TextStore
    from resources.vectors.base import VectorStore

Need = Literal["names", "graph", "texts", "vectors", "embedder", "llm", "kg"]

_REMEDIES = {"llm": "set models.llm in project.yaml"}

Source = TypeVar("Source")


class TripleScorer(Protocol):
    """A trained KG model, as the query room uses it. Entities go by id, relations by label, scores are 0 to 1."""

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float | None]:
        """How plausible each (head, relation, tail) is; None where the model does not know an entity or the relation."""

    def predict(self, head: str | None, relation: str, tail: str | None, k: int) -> list[tuple[str, str, str, float]]:
        """The ``k`` most plausible completions of a pattern with one open end; none for what the model does not know."""

    def caveats(self, revision: str, entities: Mapping[str, str]) -> list[str]:
        """What a reader must know of its scores of these entities (names by id) in a graph of this revision."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What retrievers draw on. Only what a strategy needs has to be there."""

    graph: "GraphStore | None" = None
    texts: "TextStore | None" = None
    vectors: "VectorStore | None" = None
    embedder: "Embedder | None" = None
    llm: "ChatModel | None" = None
    kg: TripleScorer | None = None
    cache: Path | None = None
    """A folder of the project for what a retriever keeps between processes."""
    project: ProjectFacts | None = None
    """Decides which graph providers serve. Without it the graph store given here does."""


class UsesSources(ABC):
    """A strategy or a graph provider. It says which sources it needs, and is given them.

    It finds the sources that it needs as ``self.graph``, ``self.texts`` and so on. What it only wants is in
    ``self.sources``, or None there.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]] = frozenset()
    """The sources that it can't do without. "names": the entities that the question names."""
    wants: ClassVar[frozenset[Need]] = frozenset()
    """The sources that it uses when the project has them."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules of other packages that must be installed for it."""

    def __init__(self, sources: Sources) -> None:
        """Take the sources.

        Raises:
            SettingsError: one that is needed is missing.
        """
        if missing := self.missing(sources):
            remedies = ", ".join(_REMEDIES.get(need, f"provide {need}") for need in missing)
            raise SettingsError(f"{self.name!r} needs {', '.join(missing)}. To use it, {remedies}.")
        self.sources = sources

    @classmethod
    def missing(cls, sources: Sources) -> list[str]:
        """Which of the sources that it needs are missing."""
        return sorted(need for need in cls.needs - {"names"} if getattr(sources, need) is None)

    @property
    def graph(self) -> "GraphStore":
        """The graph store, if "graph" is in ``needs``; the other sources likewise."""
        return self._needed(self.sources.graph, "graph")

    @property
    def texts(self) -> "TextStore":
        return self._needed(self.sources.texts, "texts")

    @property
    def vectors(self) -> "VectorStore":
        return self._needed(self.sources.vectors, "vectors")

    @property
    def embedder(self) -> "Embedder":
        return self._needed(self.sources.embedder, "embedder")

    @property
    def llm(self) -> "ChatModel":
        return self._needed(self.sources.llm, "llm")

    @property
    def kg(self) -> TripleScorer:
        return self._needed(self.sources.kg, "kg")

    def _needed(self, source: Source | None, need: Need) -> Source:
        if source is None:
            raise SettingsError(f"{self.name!r} uses {need}, which is missing. Add {need} to its needs.")
        return source
