"""One partition of a weighted graph, by the Louvain method (networkx) or the Leiden method (graspologic-native).

Both maximise modularity greedily and visit nodes in a random order, which the seed fixes. Blondel et al. 2008, "Fast unfolding
of communities in large networks"; Traag et al. 2019, "From Louvain to Leiden". Leiden is several times faster here, and its
communities are always connected.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from retrico_assets.communities.options import Method

Places = np.ndarray[Any, np.dtype[np.int64]]
Weights = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False, slots=True)
class Edges:
    """Edges of an undirected graph as ``joined`` makes them: ordered by their ends, each pair once."""

    heads: Places
    tails: Places
    weights: Weights

    def __len__(self) -> int:
        return len(self.heads)


def joined(heads: Places, tails: Places, weights: Weights) -> Edges:
    """Make edges from rows in any order and direction, with the rule of detect.py for weights. Heads are less than tails."""
    usable = (heads != tails) & np.isfinite(weights) & (weights > 0)
    heads, tails, weights = heads[usable], tails[usable], weights[usable]
    heads, tails = np.minimum(heads, tails), np.maximum(heads, tails)
    if len(weights) and weights.max() > 1e150:  # their sums would overflow
        weights = weights / weights.max()
    order = np.lexsort((weights, tails, heads))  # a sum of floats depends on its order
    heads, tails, weights = heads[order], tails[order], weights[order]
    if not len(heads):
        return Edges(heads, tails, weights)
    first = np.flatnonzero(np.r_[True, (heads[1:] != heads[:-1]) | (tails[1:] != tails[:-1])])
    sums = np.add.reduceat(weights, first)
    kept = sums > 0  # too small beside the heaviest edge, the sum is 0
    return Edges(heads[first][kept], tails[first][kept], sums[kept])


# With one cycle modularity is some per cent lower; a third cycle gains almost nothing.
_LEIDEN_CYCLES = 2


def partition(nodes: int, edges: Edges, method: Method, resolution: float, seed: int) -> Places:
    """The community of each node 0 to ``nodes`` - 1; communities are numbered from 0 in order of their first nodes.

    A node without edges is a community of its own. The result depends only on the graph, the method, the resolution and the
    seed.
    """
    labels = np.arange(nodes)
    if len(edges):
        weights = edges.weights / edges.weights.max()  # the engines sum and multiply them, which must not overflow
        seen = weights > 0
        ends = np.concatenate([edges.heads[seen], edges.tails[seen]])
        present, places = np.unique(ends, return_inverse=True)
        heads, tails = np.split(places, 2)
        engine = _leiden if method == "leiden" else _louvain
        labels[present] = nodes + engine(len(present), Edges(heads, tails, weights[seen]), resolution, seed)
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[numbers]


def modularity(nodes: int, edges: Edges, communities: Places) -> float:
    """Newman's modularity of a partition: the share of weight inside communities minus its expectation by chance.

    Between -1/2 and 1; 0 for a graph without edges.
    """
    if not len(edges):
        return 0.0
    weights = edges.weights / edges.weights.max()
    total = float(weights.sum())
    inside = float(weights[communities[edges.heads] == communities[edges.tails]].sum())
    shares = np.bincount(communities, degrees(nodes, Edges(edges.heads, edges.tails, weights))) / (2 * total)
    return inside / total - float((shares**2).sum())


def degrees(nodes: int, edges: Edges) -> Weights:
    """The sum of the weights at each node."""
    both = np.concatenate([edges.heads, edges.tails]), np.concatenate([edges.weights, edges.weights])
    return np.asarray(np.bincount(*both, nodes), np.float64)


def _louvain(nodes: int, edges: Edges, resolution: float, seed: int) -> Places:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from(zip(edges.heads.tolist(), edges.tails.tolist(), edges.weights.tolist(), strict=True))
    labels = np.empty(nodes, np.int64)
    for number, members in enumerate(networkx.community.louvain_communities(graph, resolution=resolution, seed=seed)):
        labels[list(members)] = number
    return labels


def _leiden(nodes: int, edges: Edges, resolution: float, seed: int) -> Places:
    import graspologic_native

    starts, ends = np.concatenate([edges.heads, edges.tails]), np.concatenate([edges.tails, edges.heads])
    order = np.lexsort((ends, starts))
    pointers = np.concatenate([[0], np.cumsum(np.bincount(starts, minlength=nodes))])
    _, labels = graspologic_native.leiden_csr(
        pointers.astype(np.int64),
        ends[order].astype(np.int32),
        np.concatenate([edges.weights, edges.weights])[order],
        nodes,
        resolution=resolution,
        iterations=_LEIDEN_CYCLES,
        seed=seed,
    )
    return np.array([labels[node] for node in range(nodes)])
