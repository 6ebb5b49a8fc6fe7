"""A KG model's vectors in the vector store, and on the graph's nodes."""

from dataclasses import dataclass

import numpy as np

from resources.graph.base import GraphStore
from resources.graph.vectors import VectorsReplaced
from resources.vectors.base import VectorStore
from retrico_assets.kg.score import KGModel

KG_ENTITY_INDEX = "kg_entity_embeddings"
KG_RELATION_INDEX = "kg_relation_embeddings"

_VECTORS_A_WRITE = 4096


@dataclass(frozen=True)
class Written:
    """What became of an index. ``left_out``: ids whose vectors are zero or no numbers, which no store can hold."""

    total: int
    dimension: int
    written: int
    left_out: tuple[str, ...] = ()


def store_vectors(vectors: VectorStore, model: KGModel) -> dict[str, Written]:
    """Make the two indexes hold this model's vectors, by entity id and by relation label.

    An index remembers the training that it is from: one of another training is dropped and written anew, a whole one of this
    training is left as it is, one whose writing was cut short is completed.
    """
    entity_ids, entities, relations, labels = model.vectors()
    name = f"{model.card.model} {model.version.name}"
    return {
        KG_ENTITY_INDEX: _store(vectors, KG_ENTITY_INDEX, name, entity_ids, entities),
        KG_RELATION_INDEX: _store(vectors, KG_RELATION_INDEX, name, relations, labels),
    }


def copy_to_nodes(graph: GraphStore, model: KGModel) -> VectorsReplaced:
    """Make the graph's entities carry this model's vectors, and no others. What the model or the graph doesn't know has none."""
    ids, rows, *_ = model.vectors()
    usable = _usable(rows)
    return graph.replace_entity_vectors({id_: row for id_, row, fine in zip(ids, rows.tolist(), usable, strict=True) if fine})


def _store(vectors: VectorStore, index: str, model: str, ids: tuple[str, ...], rows: np.ndarray) -> Written:
    dimension = rows.shape[1]
    known = vectors.describe(index)
    if known is not None and (known.model, known.dimension) != (model, dimension):
        vectors.drop_index(index)
    if not dimension:
        return Written(0, 0, 0)
    vectors.open_index(index, model=model, dimension=dimension)
    usable = _usable(rows)
    stored = vectors.hashes(index)
    todo = [place for place, id_ in enumerate(ids) if usable[place] and id_ not in stored]
    for start in range(0, len(todo), _VECTORS_A_WRITE):
        batch = todo[start : start + _VECTORS_A_WRITE]
        vectors.upsert(index, [ids[place] for place in batch], rows[batch], [model] * len(batch))
    return Written(int(usable.sum()), dimension, len(todo), tuple(id_ for id_, fine in zip(ids, usable, strict=True) if not fine))


def _usable(rows: np.ndarray) -> np.ndarray:
    """Which rows are vectors that a store can hold: finite, and not zero."""
    norms = np.linalg.norm(rows.astype(np.float64), axis=1)
    usable: np.ndarray = np.isfinite(norms) & (norms > 0)
    return usable
