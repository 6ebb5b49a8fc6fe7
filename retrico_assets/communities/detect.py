"""Communities of a graph, level by level. The same graph gives the same communities, whatever the order of its rows.

**Weights.** The weight between two entities is the sum over all rows between them, in both directions. A row whose weight is
zero, negative, missing, NaN or infinite is not an edge, and neither is a row from an entity to itself.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

import numpy as np

from resources.errors import StoreError
from resources.records import Community, Relation
from retrico_assets.communities.options import CommunityOptions, Method
from retrico_assets.communities.partition import Edges, degrees, joined, modularity, partition

# Never change this: community ids depend on it, and with them summaries and vectors.
_NAMESPACE = UUID("b1a6e7a8-9c43-5a86-8a3f-64f2d25a3d0e")
_VERSION = 1  # increase it when the same rows would give other communities

Row = tuple[str, str, float | None]
"""Head, tail and weight."""


@dataclass(frozen=True, eq=False, slots=True)
class WeightedGraph:
    """Entity ids in order, and the edges between their positions."""

    ids: tuple[str, ...]
    edges: Edges

    def fingerprint(self, options: CommunityOptions) -> str:
        """SHA-256 of everything that the communities depend on. Equal fingerprints mean equal communities."""
        values = (_VERSION, options.detection_method, options.levels, options.resolution, options.seed)
        digest = hashlib.sha256(repr(values).encode())
        digest.update("\n".join(self.ids).encode("utf-8", "surrogatepass"))
        for column in (self.edges.heads, self.edges.tails, self.edges.weights):
            digest.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()

    def degrees(self) -> dict[str, float]:
        """The sum of the weights of each entity's edges."""
        return dict(zip(self.ids, degrees(len(self.ids), self.edges).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Detected:
    """The communities by level, then by id, and the modularity of each level's partition of the whole graph."""

    communities: tuple[Community, ...]
    modularity: tuple[float, ...]
    method: Method


def relation_row(relation: Relation) -> Row:
    """A relation as a row: weight = score x number of chunks that state it."""
    return relation.head_id, relation.tail_id, relation.score * max(1, len(relation.chunk_ids))


def weighted_graph(ids: Iterable[str], rows: Iterable[Row]) -> WeightedGraph:
    """Make the graph of these entities.

    Raises:
        StoreError: a row names another entity.
    """
    order = tuple(sorted(set(ids)))
    place = {id_: index for index, id_ in enumerate(order)}
    heads: list[int] = []
    tails: list[int] = []
    weights: list[float] = []
    for head, tail, weight in rows:
        if head not in place or tail not in place:
            raise StoreError(
                f"A relation joins {head!r} and {tail!r}, but not both are entities of the graph. "
                "Detect communities while nothing else writes the graph."
            )
        heads.append(place[head])
        tails.append(place[tail])
        weights.append(math.nan if weight is None else weight)
    return WeightedGraph(order, joined(np.array(heads, np.int64), np.array(tails, np.int64), np.array(weights, np.float64)))


DEFAULT = CommunityOptions()


def detect(graph: WeightedGraph, options: CommunityOptions = DEFAULT) -> Detected:
    """Detect the communities of each level.

    Level 0 is the finest. Each further level joins communities of the level below by the weights between them, until one
    community is left, no edges join communities, or ``options.levels`` is reached. On each level every entity is in exactly one
    community; an entity without edges is a community of its own.
    """
    method = options.detection_method
    nodes = len(graph.ids)
    homes = partition(nodes, graph.edges, method, options.resolution, options.seed)
    levels = [homes] if nodes else []
    while levels and len(levels) < options.levels:
        below = levels[-1]
        count = int(below.max()) + 1
        # An edge inside a community is not an edge between communities.
        between = joined(below[graph.edges.heads], below[graph.edges.tails], graph.edges.weights)
        if count == 1 or not len(between):
            break
        above = partition(count, between, method, options.resolution, options.seed)
        if int(above.max()) + 1 == count:
            break
        levels.append(above[below])
    figures = tuple(modularity(nodes, graph.edges, homes) for homes in levels)
    return Detected(_records(graph.ids, [homes.tolist() for homes in levels]), figures, method)


def community_id(level: int, member_ids: Iterable[str]) -> str:
    """The id of a community, which depends on its level and its members only."""
    return str(uuid5(_NAMESPACE, f"{level}\n" + "\n".join(sorted(member_ids))))


def _records(ids: Sequence[str], levels: Sequence[Sequence[int]]) -> tuple[Community, ...]:
    members: list[defaultdict[int, list[str]]] = [defaultdict(list) for _ in levels]
    for groups, homes in zip(members, levels, strict=True):
        for id_, home in zip(ids, homes, strict=True):
            groups[home].append(id_)
    names = [{home: community_id(level, group) for home, group in groups.items()} for level, groups in enumerate(members)]
    communities = []
    for level, groups in enumerate(members):
        above = dict(zip(levels[level], levels[level + 1], strict=True)) if level + 1 < len(levels) else {}
        for home, group in groups.items():
            parent = names[level + 1][above[home]] if above else None
            communities.append(Community(names[level][home], level, tuple(group), parent))
    return tuple(sorted(communities, key=lambda community: (community.level, community.id)))
