"""Keeps a vector index in step with the texts it is made from."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from resources.graph.base import GraphStore
from resources.models.embedders.base import Embedder
from resources.vectors.base import VectorStore

CHUNK_INDEX = "chunk_embeddings"
ENTITY_INDEX = "entity_embeddings"
RELATION_INDEX = "relation_embeddings"
COMMUNITY_INDEX = "community_embeddings"

_TEXTS_A_WRITE = 256


@dataclass(frozen=True)
class SyncReport:
    """Vectors in the index, and how many were made, deleted and left as they were. ``model_calls`` counts texts embedded."""

    total: int
    dimension: int
    embedded: int
    deleted: int
    unchanged: int
    model_calls: int

    def counts(self) -> dict[str, int]:
        """What a materialisation tells of it."""
        return {
            "embedded": self.embedded,
            "deleted": self.deleted,
            "unchanged": self.unchanged,
            "model_calls": self.model_calls,
            "dimension": self.dimension,
        }


def relation_texts(graph: GraphStore) -> dict[str, str]:
    """Each relation read as a sentence, such as "Ana works at Kestrel", by id: what RELATION_INDEX is made from."""
    names = {entity.id: entity.label for entity in graph.entities()}
    return {r.id: f"{names[r.head_id]} {r.label} {names[r.tail_id]}" for r in graph.relations()}


def sync_index(
    vectors: VectorStore,
    index: str,
    embedder: Embedder,
    texts: Mapping[str, str],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> SyncReport:
    """Embed what is new or reads differently (by item id), delete what is gone, leave the rest.

    Written every 256 texts, so that a killed build keeps what it has made. Raises IndexMismatchError before any work if
    the index was made by another model.
    """
    known = vectors.describe(index)
    # Asking the embedder for its dimension loads the model, which an unchanged index can do without.
    dimension = known.dimension if known and known.model == embedder.name else embedder.dimension
    vectors.open_index(index, model=embedder.name, dimension=dimension)
    hashes = {item: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for item, text in texts.items()}
    stored = vectors.hashes(index)
    gone = sorted(stored.keys() - hashes.keys())
    if gone:
        vectors.delete(index, gone)
    todo = sorted((item for item, digest in hashes.items() if stored.get(item) != digest), key=lambda i: (len(texts[i]), i))
    calls = embedder.calls
    for start in range(0, len(todo), _TEXTS_A_WRITE):
        batch = todo[start : start + _TEXTS_A_WRITE]
        vectors.upsert(index, batch, embedder.embed([texts[item] for item in batch]), [hashes[item] for item in batch])
        on_progress(start + len(batch), len(todo))
    return SyncReport(len(hashes), dimension, len(todo), len(gone), len(hashes) - len(todo), embedder.calls - calls)
