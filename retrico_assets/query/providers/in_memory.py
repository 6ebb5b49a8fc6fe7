"""Provider "in-memory": the graph of the project's documents, held in this process, without a database."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import pandas as pd

from resources.frames import records
from resources.graph.base import GraphStore
from resources.records import Chunk, Document, DocumentGraph, Mention, RelationMention, Subgraph
from retrico_assets.graph.build import document_graphs
from retrico_assets.graph.identity import IdentityPolicy
from retrico_assets.query.providers.base import CORPUS, GraphProvider, rank_store, selected
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.question.question import Question
from retrico_assets.query.sources import Need, Sources

if TYPE_CHECKING:
    from resources.graph.memory import MemoryGraphStore

_FRAMES = ("documents", "chunks", "entities", "relations")


class InMemoryProvider(GraphProvider):
    """Made from the frames that the build stored, once a process, and again when a build has changed them.

    Claims when the project has a folder of documents and the selected sources don't leave it out. A corpus that loaded
    nothing, or was never built, is an empty graph.
    """

    name: ClassVar[str] = "in-memory"
    is_default: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset(("texts",))

    def __init__(self, sources: Sources, store: GraphStore) -> None:
        super().__init__(sources)
        self._store = store

    @classmethod
    def claims(cls, project: ProjectFacts) -> bool:
        return project.has_corpus and selected(project.retrieval, CORPUS, cls.name)

    @classmethod
    def open(cls, project: ProjectFacts, sources: Sources) -> Self:
        return cls(sources, graph_of_frames(project.frames, project.identity))

    def rank(self, question: Question, k: int) -> Subgraph:
        # The question's entities were looked up in another store: here they are looked up by name again.
        return rank_store(self._store, self.texts, Question(question.text, question.mentions), k)


def graph_of_frames(folder: Path, identity: IdentityPolicy) -> "MemoryGraphStore":
    """The graph of the four frames in a folder; those that are not there count as empty."""
    files = {name: folder / f"{name}.parquet" for name in _FRAMES}
    stamps = tuple((str(file), file.stat().st_mtime_ns) for file in files.values() if file.exists())
    return _graph_of(stamps, identity)


@lru_cache(maxsize=2)
def _graph_of(stamps: tuple[tuple[str, int], ...], identity: IdentityPolicy) -> "MemoryGraphStore":
    from resources.graph.memory import MemoryGraphStore

    frames = {Path(file).stem: pd.read_parquet(file) for file, _ in stamps}
    store = MemoryGraphStore()
    if "documents" in frames:
        store.replace_documents(_documents(frames, identity))
    return store


def _documents(frames: Mapping[str, pd.DataFrame], identity: IdentityPolicy) -> list[DocumentGraph]:
    chunks = records(frames["chunks"], Chunk) if "chunks" in frames else []
    # While a build is under way, extraction may be older than the chunks: what it says of chunks that are gone is left out.
    known = {chunk.id for chunk in chunks}
    mentions = records(frames["entities"], Mention) if "entities" in frames else []
    relations = records(frames["relations"], RelationMention) if "relations" in frames else []
    graphs, _ = document_graphs(
        records(frames["documents"], Document),
        chunks,
        [mention for mention in mentions if mention.chunk_id in known],
        [relation for relation in relations if relation.chunk_id in known],
        identity,
    )
    return graphs
