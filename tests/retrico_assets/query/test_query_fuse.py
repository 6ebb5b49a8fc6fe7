"""Reciprocal rank fusion of what several strategies found."""

import itertools

import pytest

from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.fuse import fuse


def chunks(*ids):
    return Subgraph(chunks=tuple(Scored(Chunk(id, "d", 0, id, 0, 1), 1.0 / rank) for rank, id in enumerate(ids, 1)))


def entities(*ids):
    return tuple(Scored(Entity(id, id, id, "t"), 1.0) for id in ids)


def relation(id, head, tail):
    return Scored(Relation(id, head, "knows", tail, 0.5, ("c",)), 1.0)


def ids(found):
    return [one.record.id for one in found]


def test_a_chunk_that_several_strategies_found_is_first():
    """OPEN-48: vector, full text (a repeated hit), graph and an empty list."""
    lists = [chunks("doc1:3", "doc1:4"), chunks("doc1:4", "doc1:4"), chunks("doc1:4"), Subgraph()]
    for order in itertools.permutations(lists):
        fused = fuse(order, top_k=3)
        assert ids(fused.chunks) == ["doc1:4", "doc1:3"]
        assert [one.score for one in fused.chunks] == pytest.approx([1 / 62 + 1 / 61 + 1 / 61, 1 / 61], abs=1e-15)


def test_the_order_of_the_strategies_changes_nothing():
    lists = [chunks(*"abcde"), chunks(*"edcba"), chunks("c", "x", "a"), chunks("y")]
    fused = [fuse(order, top_k=10) for order in itertools.permutations(lists)]
    assert all(one == fused[0] for one in fused)


def test_equal_scores_are_ordered_by_id():
    assert ids(fuse([chunks("b"), chunks("a")], top_k=5).chunks) == ["a", "b"]


def test_one_ranking_passes_with_its_scores_cut_and_each_once():
    one = chunks("z", "a", "z", "m")
    fused = fuse([one], top_k=2)
    assert [(found.record.id, found.score) for found in fused.chunks] == [("z", 1.0), ("a", 0.5)]


def test_nothing_gives_nothing():
    assert fuse([], top_k=3) == Subgraph()
    assert fuse([Subgraph(), Subgraph()], top_k=3) == Subgraph()


def test_entities_relations_and_chunks_are_all_ranked_and_cut():
    a = Subgraph(entities("e1", "e2", "e3"), (relation("r1", "e1", "e2"), relation("r2", "e2", "e3")), chunks("c1", "c2").chunks)
    b = Subgraph(entities("e2"), (relation("r2", "e2", "e3"),), chunks("c2").chunks)
    fused = fuse([a, b], top_k=1)
    assert ids(fused.relations) == ["r2"]
    assert ids(fused.chunks) == ["c2"]
    assert ids(fused.entities)[0] == "e2"


def test_the_ends_of_a_kept_relation_are_kept_after_the_best():
    found = Subgraph(entities("e1", "e2", "e3", "e4"), (relation("r", "e4", "e3"),))
    assert ids(fuse([found, Subgraph(entities("e1"))], top_k=1).entities) == ["e1", "e3", "e4"]
