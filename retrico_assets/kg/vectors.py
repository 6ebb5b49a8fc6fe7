"""The vectors of a KG model, in the vector store and on the nodes of the graph."""

from dataclasses import dataclass

import numpy as np

from resources.graph.base import GraphStore
from resources.graph.vectors import VectorsReplaced
from resources.vectors.base import VectorStore
from retrico_assets.kg.score import KGModel

KG_ENTITY_INDEX = "kg_entity_embeddings"
KG_RELATION_INDEX = "kg_relation_embeddings"

_VECTORS_PER_WRITE = 4096


@dataclass(frozen=True)
class StoredVectors:
    """What an index holds now. ``left_out``: ids whose vectors are zero or not finite, which no store can hold."""

    total: int
    dimension: int
    written: int
    left_out: tuple[str, ...] = ()


def store_vectors(vectors: VectorStore, model: KGModel) -> dict[str, StoredVectors]:
    """Write the model's vectors into two indexes, by entity id and by relation label.

    An index remembers the training it comes from. An index of another training is replaced, a complete one of this training is
    left as it is, and an incomplete one is completed.
    """
    entity_ids, entities, relations, labels = model.vectors()
    name = f"{model.card.model} {model.version.name}"
    return {
        KG_ENTITY_INDEX: _store(vectors, KG_ENTITY_INDEX, name, entity_ids, entities),
        KG_RELATION_INDEX: _store(vectors, KG_RELATION_INDEX, name, relations, labels),
    }


def copy_to_nodes(graph: GraphStore, model: KGModel) -> VectorsReplaced:
    """Give the graph's entities the vectors of this model and no others. Entities that the model doesn't know have none."""
    ids, rows, *_ = model.vectors()
    usable = _usable(rows)
    return graph.replace_entity_vectors({id_: row for id_, row, valid in zip(ids, rows.tolist(), usable, strict=True) if valid})


def _store(vectors: VectorStore, index: str, model: str, ids: tuple[str, ...], rows: np.ndarray) -> StoredVectors:
    dimension = rows.shape[1]
    known = vectors.describe(index)
    if known is not None and (known.model, known.dimension) != (model, dimension):
        vectors.drop_index(index)
    if not dimension:
        return StoredVectors(0, 0, 0)
    vectors.open_index(index, model=model, dimension=dimension)
    usable = _usable(rows)
    stored = vectors.hashes(index)
    missing = [place for place, id_ in enumerate(ids) if usable[place] and id_ not in stored]
    for start in range(0, len(missing), _VECTORS_PER_WRITE):
        batch = missing[start : start + _VECTORS_PER_WRITE]
        vectors.upsert(index, [ids[place] for place in batch], rows[batch], [model] * len(batch))
    return StoredVectors(
        int(usable.sum()), dimension, len(missing), tuple(id_ for id_, valid in zip(ids, usable, strict=True) if not valid)
    )


def _usable(rows: np.ndarray) -> np.ndarray:
    """Which rows a store can hold: finite and not zero."""
    norms = np.linalg.norm(rows.astype(np.float64), axis=1)
    usable: np.ndarray = np.isfinite(norms) & (norms > 0)
    return usable
