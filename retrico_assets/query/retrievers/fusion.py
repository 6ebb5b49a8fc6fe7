"""Several rankings become one."""

import math
from collections.abc import Mapping, Sequence

from resources.records import Scored, Subgraph
from retrico_assets.query.options import FusionOptions
from retrico_assets.query.retrievers.ranking import Item, once

DEFAULT_FUSION = FusionOptions()


def fuse(
    found: Mapping[str, Subgraph], top_k: int, fusion: FusionOptions = DEFAULT_FUSION, *, most_chunks: int | None = None
) -> Subgraph:
    """The best ``top_k`` entities, relations and chunks (``most_chunks`` of these, if given) of what each strategy found.

    Items are the same when their ids are; a repeated item counts where it stands first; equal scores are ordered by id, so
    the order of the strategies changes nothing. A single strategy keeps its own ranking and scores. The ends of the
    relations kept are always among the entities, after the ``top_k``; a relation whose ends nobody found is left out.
    """
    entities, others = _fuse({name: one.entities for name, one in found.items()}, fusion)
    known = {entity.record.id: entity for entity in (*entities, *others)}
    ranked, _ = _fuse({name: one.relations for name, one in found.items()}, fusion)
    relations = [r for r in ranked if r.record.head_id in known and r.record.tail_id in known][:top_k]
    chunks, _ = _fuse({name: one.chunks for name, one in found.items()}, fusion)
    kept = {entity.record.id: entity for entity in entities[:top_k]}
    ends = {end for relation in relations for end in (relation.record.head_id, relation.record.tail_id)}
    appended = [entity for id, entity in known.items() if id in ends and id not in kept]
    return Subgraph((*kept.values(), *appended), tuple(relations), tuple(chunks[: most_chunks or top_k]))


def _fuse(rankings: Mapping[str, Sequence[Scored[Item]]], fusion: FusionOptions) -> tuple[list[Scored[Item]], list[Scored[Item]]]:
    """What the fusion lets pass, and the rest; both best first."""
    if len(rankings) == 1:
        return [item for ranking in rankings.values() for item in once(ranking)], []
    records: dict[str, Item] = {}
    shares: dict[str, list[float]] = {}
    for name, ranking in rankings.items():
        weight = fusion.weights.get(name, 1.0)
        for rank, item in enumerate(once(ranking), 1):
            records.setdefault(item.record.id, item.record)
            shares.setdefault(item.record.id, []).append(weight / (rank if _by_rank_alone(fusion) else fusion.k + rank))
    # fsum: the order of the strategies changes no bit
    scores = {id: max(parts) if fusion.method == "union" else math.fsum(parts) for id, parts in shares.items()}
    ranked = [Scored(records[id], scores[id]) for id in sorted(scores, key=lambda id: (-scores[id], id))]
    if fusion.method != "intersection":
        return ranked, []
    needed = min(fusion.min_sources, len(rankings))
    passed = [item for item in ranked if len(shares[item.record.id]) >= needed]
    return passed, [item for item in ranked if len(shares[item.record.id]) < needed]


def _by_rank_alone(fusion: FusionOptions) -> bool:
    return fusion.method in ("weighted", "union")
