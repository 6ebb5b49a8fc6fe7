"""Several rankings become one: reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

import math
from collections.abc import Sequence

from resources.records import Scored, Subgraph
from retrico_assets.query.ranking import Item, once, with_ends


def fuse(subgraphs: Sequence[Subgraph], top_k: int, k: int = 60) -> Subgraph:
    """The best ``top_k`` entities, relations and chunks of all.

    An item scores the sum of 1 / (k + rank) over the lists that hold it, ranks from 1, by id; a repeated item counts where
    it stands first; equal scores are ordered by id. A single subgraph keeps its own ranking and scores. The ends of the
    relations kept are always among the entities, after the ``top_k``, so that every relation can be read.
    """
    entities = _fuse([subgraph.entities for subgraph in subgraphs], k)
    relations = _fuse([subgraph.relations for subgraph in subgraphs], k)[:top_k]
    chunks = _fuse([subgraph.chunks for subgraph in subgraphs], k)[:top_k]
    return Subgraph(with_ends(entities, relations, top_k), tuple(relations), tuple(chunks))


def _fuse(rankings: Sequence[Sequence[Scored[Item]]], k: int) -> list[Scored[Item]]:
    if len(rankings) == 1:
        return list(once(rankings[0]))
    records: dict[str, Item] = {}
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, found in enumerate(once(ranking), 1):
            records.setdefault(found.record.id, found.record)
            shares.setdefault(found.record.id, []).append(1 / (k + rank))
    scores = {id: math.fsum(parts) for id, parts in shares.items()}  # fsum: the order of the strategies changes no bit
    return [Scored(records[id], scores[id]) for id in sorted(scores, key=lambda id: (-scores[id], id))]
