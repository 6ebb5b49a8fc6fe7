"""What may be written as the communities of a graph, whatever the backend."""

from collections.abc import Sequence
from dataclasses import replace

from resources.errors import StoreError
from resources.graph.checks import is_id
from resources.graph.encoding import clean_text
from resources.records import Community


def checked_communities(communities: Sequence[Community]) -> dict[str, Community]:
    """Communities by id as they read back: members in order, storable texts. StoreError for what ``replace_communities`` refuses.

    Whether the members are in the graph is left to the store.
    """
    by_id: dict[str, Community] = {}
    for row, community in enumerate(communities):
        id_ = community.id
        if not is_id(id_):
            raise StoreError(f"Row {row} of the communities has the id {id_!r:.100}. An id is text without blanks around it.")
        if id_ in by_id:
            raise StoreError(f"The community id {id_!r} comes twice (again in row {row}). Ids must be unique over all levels.")
        if not isinstance(community.level, int) or isinstance(community.level, bool) or community.level < 0:
            raise StoreError(f"Community {id_!r} has the level {community.level!r}. Levels are whole numbers from 0, the finest.")
        by_id[id_] = replace(
            community,
            member_ids=tuple(sorted(community.member_ids)),
            title=clean_text(community.title),
            summary=clean_text(community.summary),
        )
    _check_members(by_id)
    _check_parents(by_id)
    return by_id


def refuse_unknown_members(by_id: dict[str, Community], known: set[str]) -> None:
    """StoreError for the first community with a member that is not among the ``known`` entities."""
    for community in by_id.values():
        for member in community.member_ids:
            if member not in known:
                raise StoreError(
                    f"Community {community.id!r} has the member {member!r}, which is no entity of the graph."
                    " Detect the communities of the graph as it is now."
                )


def in_order(communities: Sequence[Community]) -> list[Community]:
    """By level, then by id."""
    return sorted(communities, key=lambda community: (community.level, community.id))


def _check_members(by_id: dict[str, Community]) -> None:
    homes: dict[tuple[int, str], str] = {}
    for community in by_id.values():
        for member in community.member_ids:
            other = homes.setdefault((community.level, member), community.id)
            if other != community.id:
                raise StoreError(
                    f"Entity {member!r} is a member of {other!r} and of {community.id!r}, both of level {community.level}."
                    " On one level an entity is in one community."
                )
        if len(set(community.member_ids)) < len(community.member_ids):
            raise StoreError(f"Community {community.id!r} names a member twice. Name each member once.")


def _check_parents(by_id: dict[str, Community]) -> None:
    for community in by_id.values():
        if community.parent_id is None:
            continue
        parent = by_id.get(community.parent_id)
        if parent is None:
            raise StoreError(
                f"Community {community.id!r} has the parent {community.parent_id!r}, which is not among the communities."
            )
        if parent.level <= community.level:
            raise StoreError(
                f"Community {community.id!r} of level {community.level} has the parent {parent.id!r} of level {parent.level}."
                " A parent is on a higher level."
            )
