"""Several rankings become one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from resources.errors import SettingsError
from resources.records import Scored, Subgraph
from retrico_assets.query.retrievers.base import check_strategies
from retrico_assets.query.retrievers.ranking import Item, once

Method = Literal["rrf", "weighted", "union", "intersection"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """How the rankings of several strategies become one. Ranks count from 1; w is the weight of a strategy, 1 unless given.

    ``rrf``: an item scores the sum of w / (k + rank), reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
    ``weighted``: the sum of w / rank, so that the first places count for far more.
    ``union``: the greatest w / rank: the best of each ranking in turn, agreement counts for nothing.
    ``intersection``: as rrf, but only what at least ``min_sources`` of the strategies found (of those that could look, if
    fewer). SettingsError for an unknown method or strategy and for numbers out of range.
    """

    method: Method = "rrf"
    k: int = 60
    weights: Mapping[str, float] = field(default_factory=dict)
    min_sources: int = 2

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise SettingsError(f"fusion method {self.method!r} is unknown; known are: {', '.join(get_args(Method))}")
        if self.k < 0:
            raise SettingsError(f"fusion k is {self.k}; it must be 0 or more (60 is usual)")
        if self.min_sources < 1:
            raise SettingsError(f"fusion min_sources is {self.min_sources}; it must be 1 or more")
        for name, weight in self.weights.items():
            check_strategies([name])
            if not (math.isfinite(weight) and weight > 0):
                raise SettingsError(f"fusion weight of {name!r} is {weight}; it must be above 0, or leave the strategy out")

    def check_for(self, strategies: Sequence[str]) -> None:
        """SettingsError if these strategies could never find anything together."""
        if self.method == "intersection" and 1 < len(strategies) < self.min_sources:
            raise SettingsError(
                f"fusion min_sources is {self.min_sources}, but only {len(strategies)} strategies are asked "
                f"({', '.join(strategies)}); ask more, or lower it"
            )


DEFAULT_FUSION = Fusion()


def fuse(
    found: Mapping[str, Subgraph], top_k: int, fusion: Fusion = DEFAULT_FUSION, *, most_chunks: int | None = None
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


def _fuse(rankings: Mapping[str, Sequence[Scored[Item]]], fusion: Fusion) -> tuple[list[Scored[Item]], list[Scored[Item]]]:
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


def _by_rank_alone(fusion: Fusion) -> bool:
    return fusion.method in ("weighted", "union")
