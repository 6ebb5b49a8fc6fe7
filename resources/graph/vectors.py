"""Vectors on the entities of a graph, whatever the backend: what may be written, and what differs from what is there."""

import hashlib
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resources.errors import StoreError

VECTOR_KEY = "kg_embedding"
VECTOR_HASH_KEY = "kg_embedding_hash"


@dataclass(frozen=True)
class VectorsReplaced:
    """What became of the vectors of a graph's entities: how many have one now, how many were written, how many lost theirs."""

    held: int
    written: int
    removed: int


@dataclass(frozen=True)
class VectorChange:
    """Entities whose vector is to be written (id, hash, 32-bit numbers), and ids of those that lose theirs."""

    held: int
    written: "tuple[tuple[str, str, array[float]], ...]"
    removed: tuple[str, ...]

    @property
    def counts(self) -> VectorsReplaced:
        return VectorsReplaced(self.held, len(self.written), len(self.removed))


def vector_change(vectors: Mapping[str, Sequence[float]], stored: Mapping[str, str]) -> VectorChange:
    """What has to change so that these become the only vectors. ``stored``: the hash of each entity's vector, or "".

    StoreError for what ``GraphStore.replace_entity_vectors`` refuses.
    """
    checked = {id_: _checked(id_, vector) for id_, vector in vectors.items()}
    lengths = {len(numbers): id_ for id_, numbers in checked.items()}
    if len(lengths) > 1:
        (one, first), (other, second) = list(lengths.items())[:2]
        raise StoreError(f"The vector of entity {first!r} has {one} numbers, that of {second!r} has {other}. Give all as many.")
    known = {id_: numbers for id_, numbers in sorted(checked.items()) if id_ in stored}
    hashes = {id_: hashlib.sha256(numbers.tobytes()).hexdigest()[:16] for id_, numbers in known.items()}
    return VectorChange(
        held=len(known),
        written=tuple((id_, hashes[id_], numbers) for id_, numbers in known.items() if stored[id_] != hashes[id_]),
        removed=tuple(sorted(id_ for id_, hash_ in stored.items() if hash_ and id_ not in known)),
    )


def _checked(entity_id: str, vector: Sequence[float]) -> "array[float]":
    try:
        numbers = array("f", vector)
    except (TypeError, OverflowError) as error:
        raise StoreError(f"The vector of entity {entity_id!r} is no list of numbers: {error}.") from error
    if not numbers or not all(map(math.isfinite, numbers)):
        raise StoreError(f"The vector of entity {entity_id!r} is empty or holds what is no finite 32-bit number. Leave it out.")
    return numbers
