"""Fusion of what several strategies found: four methods, true ranks, one identity."""

import itertools

import pytest

from resources.errors import SettingsError
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.options import FusionOptions
from retrico_assets.query.retrievers.fusion import fuse

METHODS = ("rrf", "weighted", "union", "intersection")
NAMES = ("chunk_embedding", "keyword", "entity", "community")


def chunks(*ids):
    return Subgraph(chunks=tuple(Scored(Chunk(id, "d", 0, id, 0, 1), 1.0 / rank) for rank, id in enumerate(ids, 1)))


def entities(*ids):
    return tuple(Scored(Entity(id, id, id, "t"), 1.0) for id in ids)


def relation(id, head, tail):
    return Scored(Relation(id, head, "knows", tail, 0.5, ("c",)), 1.0)


def named(*subgraphs):
    return dict(zip(NAMES, subgraphs, strict=False))


def ids(found):
    return [one.record.id for one in found]


def scores(found):
    return {one.record.id: pytest.approx(one.score, abs=1e-15) for one in found}


def test_a_chunk_that_several_strategies_found_is_first():
    """OPEN-48: vector, full text (a repeated hit), graph and an empty list."""
    lists = [chunks("doc1:3", "doc1:4"), chunks("doc1:4", "doc1:4"), chunks("doc1:4"), Subgraph()]
    for order in itertools.permutations(lists):
        fused = fuse(named(*order), top_k=3)
        assert ids(fused.chunks) == ["doc1:4", "doc1:3"]
        assert [one.score for one in fused.chunks] == pytest.approx([1 / 62 + 1 / 61 + 1 / 61, 1 / 61], abs=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_strategies_changes_nothing(method):
    lists = list(named(chunks(*"abcde"), chunks(*"edcba"), chunks("c", "x", "a"), chunks("y")).items())
    fusion = FusionOptions(method=method, weights={"keyword": 0.3, "entity": 1.7})
    fused = [fuse(dict(order), 10, fusion) for order in itertools.permutations(lists)]
    assert fused[0].chunks
    assert all(one == fused[0] for one in fused)


@pytest.mark.parametrize("method", METHODS)
def test_equal_scores_are_ordered_by_id(method):
    assert ids(fuse(named(chunks("b", "a"), chunks("a", "b")), 5, FusionOptions(method=method)).chunks) == ["a", "b"]


@pytest.mark.parametrize("method", METHODS)
def test_one_ranking_passes_with_its_scores_cut_and_each_once(method):
    fused = fuse({"entity": chunks("z", "a", "z", "m")}, 2, FusionOptions(method=method))
    assert [(found.record.id, found.score) for found in fused.chunks] == [("z", 1.0), ("a", 0.5)]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_gives_nothing(method):
    assert fuse({}, 3, FusionOptions(method=method)) == Subgraph()
    assert fuse(named(Subgraph(), Subgraph()), 3, FusionOptions(method=method)) == Subgraph()


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        (FusionOptions(method="rrf"), {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}),
        (FusionOptions(method="rrf", k=0), {"b": 1 / 2 + 1, "a": 1, "c": 1 / 2}),
        (FusionOptions(method="rrf", weights={"keyword": 3}), {"b": 1 / 62 + 3 / 61, "c": 3 / 62, "a": 1 / 61}),
        (FusionOptions(method="weighted"), {"b": 1 / 2 + 1, "a": 1, "c": 1 / 2}),
        (FusionOptions(method="weighted", weights={"chunk_embedding": 0.5}), {"b": 1 / 4 + 1, "a": 1 / 2, "c": 1 / 2}),
        (FusionOptions(method="union"), {"a": 1, "b": 1, "c": 1 / 2}),
        (FusionOptions(method="union", weights={"keyword": 3}), {"b": 3, "c": 3 / 2, "a": 1}),
        (FusionOptions(method="intersection"), {"b": 1 / 62 + 1 / 61}),
        (FusionOptions(method="intersection", min_sources=1), {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}),
    ],
)
def test_ranks_count_from_one_and_weights_multiply(fusion, expected):
    """C31 and B33: scores are made from true ranks."""
    fused = fuse(named(chunks("a", "b"), chunks("b", "c")), 10, fusion)
    assert scores(fused.chunks) == expected
    assert ids(fused.chunks) == list(expected)


def test_union_takes_the_best_of_each_ranking_in_turn():
    fused = fuse(named(chunks("a1", "a2", "a3"), chunks("b1", "b2", "b3")), 4, FusionOptions(method="union"))
    assert ids(fused.chunks) == ["a1", "b1", "a2", "b2"]


@pytest.mark.parametrize("method", METHODS)
def test_entities_relations_and_chunks_are_all_ranked_and_cut(method):
    """B33: union and intersection too, and chunks."""
    knows = [relation("r1", "e1", "e2"), relation("r2", "e2", "e3"), relation("r3", "e1", "e3")]
    a = Subgraph(entities("e2", "e1", "e3"), (knows[1], knows[0], knows[2]), chunks("c2", "c1", "c3").chunks)
    b = Subgraph(entities("e2", "e3"), (knows[1], knows[2]), chunks("c2", "c3").chunks)
    fused = fuse(named(a, b), 1, FusionOptions(method=method))
    assert (ids(fused.relations), ids(fused.chunks)) == (["r2"], ["c2"])
    assert ids(fused.entities) == ["e2", "e3"]


def test_intersection_keeps_what_enough_strategies_found():
    found = named(chunks("a", "b", "c"), chunks("b", "c"), chunks("c", "d"))
    assert ids(fuse(found, 10, FusionOptions(method="intersection", min_sources=2)).chunks) == ["c", "b"]
    assert ids(fuse(found, 10, FusionOptions(method="intersection", min_sources=3)).chunks) == ["c"]


def test_a_strategy_that_could_not_look_does_not_empty_an_intersection():
    found = named(chunks("a", "b"), chunks("b"))
    assert ids(fuse(found, 10, FusionOptions(method="intersection", min_sources=3)).chunks) == ["b"]


@pytest.mark.parametrize("method", METHODS)
def test_the_ends_of_a_kept_relation_are_kept_after_the_best(method):
    r = relation("r", "e4", "e3")
    fused = fuse(
        named(Subgraph(entities("e1", "e2", "e3", "e4"), (r,)), Subgraph(entities("e1"), (r,))), 1, FusionOptions(method=method)
    )
    assert ids(fused.relations) == ["r"]
    assert ids(fused.entities)[0] == "e1"
    assert set(ids(fused.entities)) == {"e1", "e3", "e4"}


def test_a_relation_whose_ends_nobody_found_is_left_out_and_the_next_one_takes_its_place():
    """C31: dangling relations are removed. By id, so a namesake does not hold one (B33)."""
    namesake = (Scored(Entity("e9", "e1", "e1", "t"), 1.0), *entities("e2", "e3"))
    found = Subgraph(namesake, (relation("r1", "e1", "e2"), relation("r2", "e2", "e3")))
    assert ids(fuse(named(found, Subgraph()), 1).relations) == ["r2"]


def test_more_chunks_are_kept_for_a_reranker():
    fused = fuse(named(chunks(*"abcdef"), chunks(*"abc")), 2, most_chunks=4)
    assert ids(fused.chunks) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, ["fusion.method", "rrf", "weighted", "union", "intersection"]),
        ({"k": -1}, ["fusion.k", "0"]),
        ({"min_sources": 0}, ["fusion.min_sources", "1"]),
        ({"weights": {"entity": 0.0}}, ["fusion.weights.entity", "greater than 0"]),
        ({"weights": {"entity": float("nan")}}, ["fusion.weights.entity"]),
        ({"weights": {"entity": float("inf")}}, ["fusion.weights.entity"]),
    ],
)
def test_a_wrong_option_is_refused_with_its_name(options, words):
    with pytest.raises(SettingsError) as error:
        FusionOptions.parse(options, "fusion")
    for word in words:
        assert word in str(error.value)


def test_an_intersection_needs_as_many_strategies_as_must_agree():
    FusionOptions(method="intersection").check_for(["entity"])
    with pytest.raises(SettingsError, match=r"fusion\.min_sources is 3, but there are only 2 strategies"):
        FusionOptions(method="intersection", min_sources=3).check_for(["entity", "keyword"])
