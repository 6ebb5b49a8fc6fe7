"""What every vector store asks of names, ids, vectors and queries. Everything is checked before anything is written."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from resources.errors import IndexMismatchError, StoreError
from resources.records import Scored
from resources.text.characters import is_storable
from resources.vectors.base import IndexInfo

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def check_index(name: str, model: str, dimension: int, known: IndexInfo | None) -> None:
    """Refuse a name that is no file name, an unusable model or dimension, and another model than the one that is known."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise StoreError(
            f"{name!r} can't name a vector index; use up to 100 letters, digits, '_', '-' and '.', a letter or digit first"
        )
    if not isinstance(model, str) or not model or not isinstance(dimension, int) or not 1 <= dimension <= 65536:
        raise StoreError(
            f"vector index {name!r} needs the name of a model and a dimension from 1 to 65536, not {model!r} and {dimension!r}"
        )
    if known is not None and (known.model, known.dimension) != (model, dimension):
        raise IndexMismatchError(
            f"vector index {name!r} was made by model {known.model!r} with {known.dimension} dimensions ({known.count} vectors), "
            f"and is now asked for by model {model!r} with {dimension} dimensions; set the model back "
            "(models.embedder.model in project.yaml), drop the index and build it again, or use another index name"
        )


def known_index(name: str, info: IndexInfo | None) -> IndexInfo:
    if info is None:
        raise StoreError(f"there is no vector index {name!r}; build it first (open_index makes it)")
    return info


def unit_rows(info: IndexInfo, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]) -> np.ndarray:
    """The vectors (n, dimension) at unit length, float32, if all of them can be written; else StoreError with the ids."""
    array = _matrix(vectors, f"vectors for index {info.name!r}", info.dimension)
    if not len(ids) == len(array) == len(hashes):
        raise StoreError(
            f"{len(ids)} ids, {len(array)} vectors and {len(hashes)} hashes for index {info.name!r}: one each is needed"
        )
    if no_ids := [item for item in ids if not (isinstance(item, str) and item)]:
        raise StoreError(f"item ids of index {info.name!r} must be texts, not empty: {_named(no_ids)}")
    if unstorable := [item for item in ids if not is_storable(item)]:
        raise StoreError(f"item ids of index {info.name!r} must not hold NUL or lone surrogates: {_named(unstorable)}")
    if no_hashes := [item for item, digest in zip(ids, hashes, strict=True) if not isinstance(digest, str)]:
        raise StoreError(f"hashes of index {info.name!r} must be texts; those of {_named(no_hashes)} are not")
    norms = _norms(array)
    for wrong, what in ((~np.isfinite(norms), "NaN or infinite"), (norms == 0, "zero")):
        if wrong.any():
            names = _named([item for item, bad in zip(ids, wrong, strict=True) if bad])
            raise StoreError(f"{what} vectors for index {info.name!r}: {names}; nothing was written; leave these items out")
    return _divided(array, norms)


def unit_queries(info: IndexInfo, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries (q, dimension) at unit length, and which of them (q,) point anywhere; a zero query stays zero."""
    if k < 0:
        raise StoreError(f"k is {k}; ask for a number of items of 0 or more")
    array = _matrix(queries, f"queries to index {info.name!r}", info.dimension)
    norms = _norms(array)
    if not np.isfinite(norms).all():
        raise StoreError(
            f"queries {np.flatnonzero(~np.isfinite(norms))[:10].tolist()} to index {info.name!r} hold NaN or infinity"
        )
    return _divided(array, np.where(norms == 0, 1, norms)), norms > 0


def ranked(pairs: Iterable[tuple[str, float]], k: int) -> list[Scored[str]]:
    """The best k of (id, cosine), best first, then by id.

    Scores, summed in float64, are rounded to six digits, so that equal vectors have equal scores wherever they lie.
    """
    best = sorted((-round(min(1.0, max(-1.0, score)), 6), item) for item, score in pairs)[:k]
    return [Scored(item, 0.0 - score) for score, item in best]


def _matrix(values: np.ndarray, what: str, dimension: int) -> np.ndarray:
    array = np.asarray(values)
    if array.size == 0 and array.ndim <= 2 and (array.ndim < 2 or array.shape[1] in (0, dimension)):
        return np.empty((0, dimension), np.float32)
    if array.ndim != 2 or array.shape[1] != dimension or array.dtype.kind not in "fiu":
        raise StoreError(f"{what} must be numbers of shape (n, {dimension}), not {array.dtype} of shape {array.shape}")
    return array


def _norms(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(np.einsum("ij,ij->i", array, array, dtype=np.float64))


def _divided(array: np.ndarray, norms: np.ndarray) -> np.ndarray:
    return np.divide(array, norms[:, None], out=np.empty(array.shape, np.float32), casting="same_kind")


def _named(ids: Sequence[object]) -> str:
    return ", ".join(map(repr, ids[:10])) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
