"""Detection: which entities belong together, and that nothing but the graph and the options decides about it."""

import json
import math
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.errors import SettingsError, StoreError
from resources.records import Relation
from retrico_assets.communities import options as communities_options
from retrico_assets.communities.detect import community_id, detect, relation_row, weighted_graph
from retrico_assets.communities.options import CommunityOptions

METHODS = ["louvain", "leiden"]
# networkx gives other partitions of this graph when its rows come in another order.
EDGES = [tuple(pair) for pair in ["ab", "bc", "ca", "de", "ef", "fd", "cd", "fg", "gh", "hi", "ig"]]


def communities(ids, rows, **options):
    return detect(weighted_graph(ids, rows), CommunityOptions(**options))


def groups(detected, level=0):
    return sorted(list(c.member_ids) for c in detected.communities if c.level == level)


def rows_of(edges):
    return [(head, tail, 1.0) for head, tail in edges]


def made_rows(seed, entities=60, relations=120):
    chance = random.Random(seed)
    ids = [f"entity {n}" for n in range(entities)]
    return ids, [(chance.choice(ids), chance.choice(ids), chance.random()) for _ in range(relations)]


@pytest.mark.parametrize("method", METHODS)
def test_triangles_that_one_edge_joins_are_communities(method):
    found = communities("abcdefghi", rows_of(EDGES), method=method)
    assert groups(found) == [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]]
    assert found.modularity[0] == pytest.approx(9 / 11 - (7**2 + 8**2 + 7**2) / 22**2)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_entities_and_relations_changes_nothing(
    method,
):
    for ids, rows in [(list("abcdefghi"), rows_of(EDGES)), made_rows(1), made_rows(2)]:
        expected = communities(ids, rows, method=method)
        orders = [(ids[::-1], rows[::-1])]
        for seed in range(20):
            chance = random.Random(seed)
            turned = [(t, h, w) if chance.random() < 0.5 else (h, t, w) for h, t, w in rows]
            orders.append((chance.sample(ids, len(ids)), chance.sample(turned, len(turned))))
        for some_ids, some_rows in orders:
            assert communities(some_ids, some_rows, method=method) == expected


@pytest.mark.parametrize("method", METHODS)
def test_another_process_finds_the_same_communities(
    method,
):
    ids, rows = made_rows(5, 300, 700)
    code = (
        "import json, sys\n"
        "from retrico_assets.communities.detect import detect, weighted_graph\n"
        "from retrico_assets.communities.options import CommunityOptions\n"
        "ids, rows = json.load(sys.stdin)\n"
        f"found = detect(weighted_graph(ids, rows), CommunityOptions(method={method!r}))\n"
        "print(json.dumps([[c.id, c.level, c.member_ids, c.parent_id] for c in found.communities]))"
    )
    said = set()
    for hash_seed in ("1", "2", "3"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps([ids, rows]),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path), "PATH": ""},
        )
        said.add(run.stdout)
    here = communities(ids, rows, method=method)
    assert [json.loads(one) for one in said] == [[[c.id, c.level, list(c.member_ids), c.parent_id] for c in here.communities]]


# Graphs for which libraries raise or leave nodes out (networkx/networkx#6791).
DEGENERATE = {
    "empty": ([], [], []),
    "single": (["a"], [], [["a"]]),
    "isolates": (["a", "b", "c"], [], [["a"], ["b"], ["c"]]),
    "self_loop": (["a"], [("a", "a", 1.0)], [["a"]]),
    "two_parts_and_isolate": (list("abcde"), rows_of(["ab", "cd"]), [["a", "b"], ["c", "d"], ["e"]]),
    "zero_weight": (["a", "b"], [("a", "b", 0.0)], [["a"], ["b"]]),
    "nan_weight": (["a", "b"], [("a", "b", math.nan)], [["a"], ["b"]]),
    "negative_weight": (["a", "b"], [("a", "b", -1.0)], [["a"], ["b"]]),
    "missing_weight": (["a", "b"], [("a", "b", None)], [["a"], ["b"]]),
    "infinite_weight": (["a", "b"], [("a", "b", math.inf)], [["a"], ["b"]]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DEGENERATE)
def test_every_graph_has_a_sensible_partition(name, method):
    ids, rows, expected = DEGENERATE[name]
    found = communities(ids, rows, method=method)
    assert groups(found) == expected
    assert len(found.modularity) == bool(ids)
    assert all(math.isfinite(figure) for figure in found.modularity)


@pytest.mark.parametrize("method", METHODS)
def test_parallel_relations_and_both_directions_add_up(method):
    # b is drawn to c by two relations of 2, one each way, more than to a by one of 3.
    rows = [("a", "b", 3.0), ("b", "c", 2.0), ("c", "b", 2.0), ("a", "d", 5.0)]
    edges = weighted_graph("abcd", rows).edges
    assert list(zip(edges.heads, edges.tails, edges.weights, strict=True)) == [(0, 1, 3.0), (0, 3, 5.0), (1, 2, 4.0)]
    assert groups(communities("abcd", rows, method=method)) == [["a", "d"], ["b", "c"]]


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_every_size_are_borne(method):
    for scale in (1e-300, 1.0, 1e300):
        rows = [(head, tail, scale) for head, tail in EDGES] * 3
        assert groups(communities("abcdefghi", rows, method=method)) == [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]]
    rows = [("a", "b", 1e-320), ("c", "d", 1e300)]
    assert ["c", "d"] in groups(communities("abcd", rows, method=method))


@pytest.mark.parametrize("method", METHODS)
def test_levels_join_communities_until_nothing_joins_any(method):
    blocks = [[f"{block}{n}" for n in range(5)] for block in range(8)]
    rows = [(a, b, 1.0) for block in blocks for a in block for b in block if a < b]
    for block in range(0, 8, 2):  # two and two blocks are near each other, and the pairs form a ring
        rows += [(blocks[block][n], blocks[block + 1][n], 0.5) for n in range(3)]
        rows.append((blocks[block + 1][4], blocks[(block + 2) % 8][4], 0.1))
    found = communities([id_ for block in blocks for id_ in block] + ["alone"], rows, method=method, levels=10)
    assert [len(groups(found, level)) for level in range(2)] == [9, 5]
    for community in found.communities:
        above = [c for c in found.communities if c.id == community.parent_id]
        assert [c.level for c in above] == ([community.level + 1] if community.level + 1 < len(found.modularity) else [])
        assert all(set(community.member_ids) <= set(c.member_ids) for c in above)
    assert all(["alone"] in groups(found, level) for level in range(len(found.modularity)))
    one = communities([id_ for block in blocks for id_ in block], rows, method=method, levels=1)
    assert {c.level for c in one.communities} == {0}
    assert {c.parent_id for c in one.communities} == {None}


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_on_each_level_every_entity_is_in_one_community(data):
    ids = data.draw(st.lists(st.text(max_size=4), unique=True, max_size=12))
    ends = st.sampled_from(ids) if ids else st.nothing()
    weights = st.none() | st.floats() | st.just(1.0)
    rows = data.draw(st.lists(st.tuples(ends, ends, weights), max_size=30)) if ids else []
    method = data.draw(st.sampled_from(METHODS))
    found = communities(ids, rows, method=method, resolution=data.draw(st.sampled_from([0.1, 1.0, 5.0])))
    for level in range(len(found.modularity)):
        assert sorted(id_ for group in groups(found, level) for id_ in group) == sorted(ids)
    assert all(c.member_ids for c in found.communities)
    assert all(-0.5 <= figure <= 1 for figure in found.modularity)


def test_a_community_keeps_its_id_while_its_members_stay():
    before = communities("abcdefghi", rows_of(EDGES))
    after = communities("abcdefghijkl", [*rows_of(EDGES), *rows_of(["jk", "kl", "lj"])])
    kept = {c.id for c in before.communities if c.level == 0}
    assert kept < {c.id for c in after.communities}
    assert community_id(0, ["b", "a"]) == community_id(0, ["a", "b"]) != community_id(1, ["a", "b"])


def test_a_greater_resolution_gives_more_communities():
    ids, rows = made_rows(9, 200, 400)
    few, many = (len(groups(communities(ids, rows, resolution=resolution))) for resolution in (0.3, 4.0))
    assert few < many


def test_a_relation_weighs_its_score_times_its_chunks():
    assert relation_row(Relation("r", "a", "knows", "b", 0.5, ("c1", "c2", "c3"))) == ("a", "b", 1.5)
    assert relation_row(Relation("r", "a", "knows", "b", 0.5, ())) == ("a", "b", 0.5)


def test_what_decides_about_communities_is_in_the_fingerprint():
    ids, rows = made_rows(3)
    graph = weighted_graph(ids, rows)
    same = weighted_graph(ids[::-1], rows[::-1])
    assert graph.fingerprint(CommunityOptions()) == same.fingerprint(CommunityOptions())
    others = [
        weighted_graph([*ids, "new"], rows).fingerprint(CommunityOptions()),
        weighted_graph(ids, [*rows, (ids[0], ids[1], 0.1)]).fingerprint(CommunityOptions()),
        *(graph.fingerprint(CommunityOptions(**{name: 2})) for name in ("levels", "resolution", "seed")),
        graph.fingerprint(CommunityOptions(method="louvain")),
    ]
    assert len({graph.fingerprint(CommunityOptions()), *others}) == 7


def test_without_the_leiden_package_auto_is_louvain_and_leiden_names_the_package(monkeypatch):
    assert CommunityOptions().detection_method == "leiden"
    monkeypatch.setattr(communities_options, "find_spec", lambda name: None)
    assert CommunityOptions().detection_method == "louvain"
    with pytest.raises(SettingsError, match=r"method: leiden needs the package graspologic-native\. Install it"):
        CommunityOptions.parse({"method": "leiden"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "infomap"}, "communities.method is 'infomap'. It must be 'auto', 'louvain' or 'leiden'."),
        ({"levels": 0}, "communities.levels is 0. It must be between 1 and 10."),
        ({"levels": 11}, "communities.levels is 11. It must be between 1 and 10."),
        ({"resolution": 0}, "communities.resolution is 0. It must be greater than 0."),
        ({"resolution": math.nan}, "communities.resolution is nan. It must be a finite number."),
        ({"seed": -1}, "communities.seed is -1. It must be between 0 and 4294967295."),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(SettingsError) as error:
        CommunityOptions.parse(options, "communities")
    assert str(error.value) == message


def test_a_relation_to_an_unknown_entity_is_refused():
    with pytest.raises(StoreError, match="'x'"):
        weighted_graph(["a"], [("a", "x", 1.0)])
