"""Communities in Cypher: nodes with a level, MEMBER_OF edges from entities, CHILD_OF edges to the community above."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resources.graph.checks import is_id
from resources.graph.communities import checked_communities, in_order, refuse_unknown_members
from resources.graph.cypher.dialect import Reader, Statements
from resources.records import Community

_ROWS_A_TRANSACTION = 20_000

_WRITE = "UNWIND $rows AS r MERGE (c:Community {id: r[0]}) SET c.level = r[1], c.title = r[2], c.summary = r[3]"
_LEAVE = """UNWIND $rows AS r MATCH (e:Entity {id: r[0]})-[m:MEMBER_OF]->(c:Community) WHERE c.id = r[1] DELETE m"""
_JOIN = """UNWIND $rows AS r MATCH (c:Community {id: r[0]}) UNWIND r[2] AS id MATCH (e:Entity {id: id})
MERGE (e)-[:MEMBER_OF {level: r[1]}]->(c)"""
_UNPARENT = "MATCH (c:Community)-[p:CHILD_OF]->(:Community) WHERE c.id IN $ids DELETE p"
_PARENT = """UNWIND $rows AS r MATCH (c:Community {id: r[0]}), (p:Community {id: r[1]}) MERGE (c)-[:CHILD_OF]->(p)"""
_DELETE = "MATCH (c:Community) WHERE c.id IN $ids DETACH DELETE c"


def read_communities(read: Reader, *, level: int | None = None, ids: Sequence[str] | None = None) -> list[Community]:
    """Communities of a level, with one of these ids, or all: by level, then by id."""
    condition = ""
    values: dict[str, Any] = {}
    if ids is not None:
        condition, values = "WHERE c.id IN $ids", {"ids": sorted(set(filter(is_id, ids)))}
    elif level is not None:
        condition, values = "WHERE c.level = $level", {"level": level}
    # One row, which no server cuts.
    statement = f"""MATCH (c:Community) {condition} OPTIONAL MATCH (e:Entity)-[:MEMBER_OF]->(c)
WITH c, {read.dialect.joined("e.id")} AS members
OPTIONAL MATCH (c)-[:CHILD_OF]->(p:Community) WITH c, members, collect(p.id)[0] AS parent
RETURN collect([c.id, c.level, members, parent, c.title, c.summary])"""
    ((rows,),) = read(statement, values)
    split = read.dialect.split
    return in_order(
        [
            Community(id_, at_level, tuple(sorted(split(members))), parent, title, summary)
            for id_, at_level, members, parent, title, summary in rows
        ]
    )


def community_changes(read: Reader, communities: Sequence[Community]) -> tuple[int, Iterator[Statements]]:
    """Count the communities that differ from the stored ones, and plan for each transaction the statements that change them.

    Raises:
        StoreError: for what ``GraphStore.replace_communities`` refuses.
    """
    wanted = checked_communities(communities)
    stored = {community.id: community for community in read_communities(read)}
    changed = [community for id_, community in wanted.items() if stored.get(id_) != community]
    gone = sorted(stored.keys() - wanted.keys())
    refuse_unknown_members({c.id: c for c in changed}, _known_entities(read, changed))
    return len(changed) + len(gone), _transactions(changed, stored, gone)


def _known_entities(read: Reader, communities: Sequence[Community]) -> set[str]:
    ids = {id_ for community in communities for id_ in community.member_ids if is_id(id_)}
    if not ids:
        return set()
    ((joined,),) = read(f"MATCH (e:Entity) WHERE e.id IN $ids RETURN {read.dialect.joined('e.id')}", {"ids": sorted(ids)})
    return set(read.dialect.split(joined))


def _transactions(changed: Sequence[Community], stored: Mapping[str, Community], gone: Sequence[str]) -> Iterator[Statements]:
    """Parents come before their children. Every call compares again, so repeating an interrupted call completes it."""
    if gone:
        yield [(_DELETE, {"ids": list(gone)})]
    batch: list[Community] = []
    size = 0
    for community in sorted(changed, key=lambda c: (-c.level, c.id)):
        batch.append(community)
        size += 1 + len(community.member_ids)
        if size >= _ROWS_A_TRANSACTION:
            yield _statements(batch, stored)
            batch, size = [], 0
    if batch:
        yield _statements(batch, stored)


def _statements(changed: Sequence[Community], stored: Mapping[str, Community]) -> Statements:
    rows: dict[str, list[Any]] = defaultdict(list)
    for community in changed:
        old = stored.get(community.id)
        moved = old is not None and old.level != community.level
        before = set(old.member_ids) if old else set()
        kept = set() if moved else before
        rows["write"].append([community.id, community.level, community.title, community.summary])
        rows["leave"] += [[member, community.id] for member in sorted(before if moved else before - set(community.member_ids))]
        if joining := [member for member in community.member_ids if member not in kept]:
            rows["join"].append([community.id, community.level, joining])
        if old and old.parent_id is not None and old.parent_id != community.parent_id:
            rows["unparent"].append(community.id)
        if community.parent_id is not None and (old is None or old.parent_id != community.parent_id):
            rows["parent"].append([community.id, community.parent_id])
    statements: Statements = [
        (_WRITE, {"rows": rows["write"]}),
        (_LEAVE, {"rows": rows["leave"]}),
        (_JOIN, {"rows": rows["join"]}),
        (_UNPARENT, {"ids": rows["unparent"]}),
        (_PARENT, {"rows": rows["parent"]}),
    ]
    return [(text, values) for text, values in statements if any(values.values())]
