"""Bring the communities in a graph store up to date with its relations."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from resources.files.replacing import replace_atomically
from resources.graph.base import GraphStore
from resources.records import Community
from retrico_assets.communities.detect import WeightedGraph, detect, relation_row, weighted_graph
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.communities.partition import Places, modularity


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """Figures of one level: ``largest`` is the size of the largest community, ``alone`` counts communities of one entity."""

    level: int
    communities: int
    largest: int
    alone: int
    modularity: float


@dataclass(frozen=True, slots=True)
class Update:
    """What the store holds now and what changed.

    ``written`` counts communities that were written or deleted, ``kept`` those that existed before, with title and summary.
    """

    communities: tuple[Community, ...]
    levels: tuple[LevelFigures, ...]
    method: str
    entities: int
    edges: int
    detected: bool
    written: int
    kept: int


def update_communities(store: GraphStore, options: CommunityOptions, state_file: Path) -> Update:
    """Detect the communities of the graph and replace those in the store, unless nothing has changed.

    A community with the same members keeps its title and summary. ``state_file`` records the inputs of the last detection. It
    is removed while the store is written, so that an interrupted update is repeated.
    """
    ids = [entity.id for entity in store.entities()]
    graph = weighted_graph(ids, map(relation_row, store.relations()))
    fingerprint = graph.fingerprint(options)
    stored = store.communities()
    state = read_state(state_file)
    if state.get("fingerprint") == fingerprint and state.get("structure") == _structure(stored):
        figures = level_figures(stored, state["modularity"])
        return Update(tuple(stored), figures, state["method"], len(ids), len(graph.edges), False, 0, len(stored))
    detected = detect(graph, options)
    before = {community.id: community for community in stored}
    communities = [_with_texts(community, before.get(community.id)) for community in detected.communities]
    state_file.unlink(missing_ok=True)
    written = store.replace_communities(communities)
    state = {
        "fingerprint": fingerprint,
        "structure": _structure(communities),
        "modularity": detected.modularity,
        "method": detected.method,
    }
    write_state(state_file, state)
    return Update(
        tuple(communities),
        level_figures(communities, detected.modularity),
        detected.method,
        len(ids),
        len(graph.edges),
        True,
        written,
        sum(community.id in before for community in communities),
    )


def level_figures(communities: Sequence[Community], modularities: Sequence[float]) -> tuple[LevelFigures, ...]:
    """Figures of each level; ``modularities`` by level, the finest first."""
    sizes: dict[int, list[int]] = {}
    for community in communities:
        sizes.setdefault(community.level, []).append(len(community.member_ids))
    return tuple(
        LevelFigures(level, len(sizes[level]), max(sizes[level]), Counter(sizes[level])[1], figure)
        for level, figure in zip(sorted(sizes), modularities, strict=True)
    )


def level_modularity(graph: WeightedGraph, communities: Sequence[Community]) -> list[float]:
    """The modularity of each level's partition. An entity in no community counts as a community of its own."""
    place = {id_: index for index, id_ in enumerate(graph.ids)}
    homes: dict[int, Places] = {}
    for number, community in enumerate(communities, len(place)):
        level = homes.setdefault(community.level, np.arange(len(place)))
        for id_ in community.member_ids:
            if id_ in place:
                level[place[id_]] = number
    return [modularity(len(place), graph.edges, homes[level]) for level in sorted(homes)]


def read_state(file: Path) -> dict[str, Any]:
    """Read what ``write_state`` wrote. Empty if the file is missing or damaged: the work is then repeated."""
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(file: Path, state: dict[str, Any]) -> None:
    """Replace the state file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replace_atomically(file) as temporary:
        temporary.write_text(json.dumps(state), encoding="utf-8")


def _with_texts(community: Community, before: Community | None) -> Community:
    return replace(community, title=before.title, summary=before.summary) if before else community


def _structure(communities: Sequence[Community]) -> str:
    """A hash of ids, members and parents, to notice that the store's communities have changed since they were written."""
    digest = hashlib.sha256()
    for community in sorted(communities, key=lambda c: c.id):
        digest.update(repr((community.id, community.level, community.member_ids, community.parent_id)).encode())
    return digest.hexdigest()
