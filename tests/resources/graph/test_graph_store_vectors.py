"""Vectors on the entities of a graph: written by difference, kept by entities that stay, and no part of what the graph says."""

import time
from array import array
from itertools import pairwise

import numpy as np
import pytest

from resources.errors import StoreError
from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.graph.memory import MemoryGraphStore
from resources.graph.vectors import VectorsReplaced
from tests.support.graphs import Says, document, everything, pair

FINE = {"e-ana": [0.1, -2.0, 1e-12], "e-bo": [1 / 3, 3.4e38, 0.0]}


@pytest.fixture
def people(store):
    names = ["Ana", "Bo", "Cy", "Di"]
    store.replace_documents([pair(f"d{n}", a, "met", b) for n, (a, b) in enumerate(pairwise(names))])
    return store


def as_stored(vectors):
    return {id_: array("f", vector).tolist() for id_, vector in vectors.items()}


def on_nodes(store):
    """Nothing but the graph's own language reads vectors; the memory store, which has none, is looked into."""
    if isinstance(store, MemoryGraphStore):
        return store.entity_vectors()
    rows = store.query("MATCH (n) WHERE n.kg_embedding IS NOT NULL RETURN n.id AS id, n.kg_embedding AS vector")
    return {row["id"]: row["vector"] for row in rows}


def test_these_become_the_only_vectors(people):
    assert people.replace_entity_vectors(FINE) == VectorsReplaced(held=2, written=2, removed=0)
    assert on_nodes(people) == as_stored(FINE)
    other = {"e-bo": np.array([1.0, 2.0], np.float32), "e-cy": (3, 4)}
    assert people.replace_entity_vectors(other) == VectorsReplaced(held=2, written=2, removed=1)
    assert on_nodes(people) == {"e-bo": [1.0, 2.0], "e-cy": [3.0, 4.0]}
    assert people.replace_entity_vectors({}) == VectorsReplaced(held=0, written=0, removed=2)
    assert on_nodes(people) == {}
    assert people.replace_entity_vectors({}) == VectorsReplaced(held=0, written=0, removed=0)


def test_only_what_differs_is_written(people):
    people.replace_entity_vectors(FINE)
    assert people.replace_entity_vectors(dict(reversed(FINE.items()))) == VectorsReplaced(held=2, written=0, removed=0)
    changed = {**FINE, "e-bo": [1.0, 2.0, 3.0]}
    assert people.replace_entity_vectors(changed) == VectorsReplaced(held=2, written=1, removed=0)
    assert on_nodes(people) == as_stored(changed)


def test_a_vector_that_differs_in_any_number_is_another_one(people):
    """FalkorDB takes vectors for equal that are not (its issue 2098)."""
    for vector in (
        [0.1] * 8,
        [0.1] * 7 + [0.2],
        [0.3] * 8,
        [1.5] * 8,
        [-1.5] * 8,
        [2.0, 1.0],
        [2.0, 1.0000001],
        [0.2, 0.5],
        [0.7, 0.5],
    ):
        assert people.replace_entity_vectors({"e-ana": vector}) == VectorsReplaced(held=1, written=1, removed=0)
        assert on_nodes(people) == as_stored({"e-ana": vector})


def test_unknown_ids_are_passed_over(people):
    strange = dict.fromkeys(["e-nobody", "", " e-ana", "e-ana ", "line\nbreak", "d0", "d0/0"], (1.0, 2.0, 3.0))
    assert people.replace_entity_vectors(FINE | strange) == VectorsReplaced(held=2, written=2, removed=0)
    assert on_nodes(people) == as_stored(FINE)


def test_an_empty_graph_takes_no_vectors(store):
    assert store.replace_entity_vectors(FINE) == VectorsReplaced(held=0, written=0, removed=0)
    assert on_nodes(store) == {}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([], "'e-cy' is empty"),
        ([1.0, float("nan"), 2.0], "'e-cy' .*finite"),
        ([1.0, float("-inf"), 2.0], "'e-cy' .*finite"),
        ([1.0, 1e39, 2.0], "'e-cy' .*finite"),
        ([1.0, "2", 3.0], "'e-cy' is no list of numbers"),
        (["1.0"], "'e-cy' is no list of numbers"),
        ("text", "'e-cy' is no list of numbers"),
        (1.0, "'e-cy' is no list of numbers"),
        ([1.0, 2.0], "has 3 numbers, that of 'e-cy' has 2"),
    ],
)
def test_vectors_that_can_not_be_are_refused_before_anything_is_written(people, broken, message):
    people.replace_entity_vectors(FINE)
    with pytest.raises(StoreError, match=message):
        people.replace_entity_vectors({"e-ana": [7.0, 8.0, 9.0], "e-cy": broken})
    assert on_nodes(people) == as_stored(FINE)


def test_vectors_change_neither_what_the_graph_says_nor_its_revision(people):
    people.replace_documents([document("d9", Says("Ana", [("Ana", "person", 0.9, {"born": 1970})]))])
    before, mark = everything(people), people.revision()
    people.replace_entity_vectors(FINE)
    people.replace_entity_vectors({"e-cy": [1.0]})
    assert everything(people) == before
    assert people.find_entities(ids=["e-ana"])[0].properties == {"born": 1970}
    assert people.revision() == mark


def test_a_property_of_the_same_name_is_another_thing(people):
    said = {"kg_embedding": [5, 6], "kg_embedding_hash": "mine"}
    people.replace_documents([document("d9", Says("Ana", [("Ana", "person", 0.9, said)]))])
    assert on_nodes(people) == {}
    people.replace_entity_vectors(FINE)
    assert people.find_entities(ids=["e-ana"])[0].properties == said
    assert people.replace_entity_vectors({}) == VectorsReplaced(held=0, written=0, removed=2)
    assert people.find_entities(ids=["e-ana"])[0].properties == said


def test_an_entity_keeps_its_vector_when_documents_are_written_again(people):
    people.replace_entity_vectors(FINE)
    people.replace_documents([pair("d0", "ANA", "knows", "Bo", 0.25)])  # another name and another relation
    assert on_nodes(people) == as_stored(FINE)
    for properties in ({"born": 1970}, {"died": 2020}, {}):  # gains, changes, and loses properties of its own
        people.replace_documents([document("d9", Says("Ana", [("Ana", "person", 0.9, properties)]))])
        assert on_nodes(people) == as_stored(FINE)
        assert people.find_entities(ids=["e-ana"])[0].properties == properties
    assert people.replace_entity_vectors(FINE).written == 0


def test_an_entity_that_goes_away_loses_its_vector_for_good(people):
    people.replace_entity_vectors(FINE)
    people.delete_documents(["d0"])  # nothing else mentions Ana
    people.replace_documents([pair("d0", "Ana", "met", "Bo")])
    assert on_nodes(people) == as_stored({"e-bo": FINE["e-bo"]})
    assert people.replace_entity_vectors(FINE) == VectorsReplaced(held=2, written=1, removed=0)


def test_a_call_that_is_cut_short_is_completed_by_the_same_call(falkordb, monkeypatch):
    store = falkordb
    store.replace_documents([document("d", Says("x", [(f"n{n}", "p", 0.5) for n in range(40)]))])
    old = {f"e-n{n}": [float(n), 1.0] for n in range(0, 30)}
    new = {f"e-n{n}": [float(n), 2.0] for n in range(10, 40)}
    write, calls = store._atomically, []

    def fails_at_the_third(plan, **options):
        calls.append(plan)
        if len(calls) == 3:
            raise KeyboardInterrupt
        write(plan, **options)

    store.replace_entity_vectors(old)
    monkeypatch.setattr("resources.graph.cypher.vectors._NUMBERS_A_TRANSACTION", 20)
    monkeypatch.setattr(store, "_atomically", fails_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        store.replace_entity_vectors(new)
    monkeypatch.undo()
    assert on_nodes(store) not in (old, new)
    assert store.replace_entity_vectors(new) == VectorsReplaced(held=30, written=20, removed=0)
    assert on_nodes(store) == new


def test_vectors_outlive_the_database(tmp_path):
    store = open_embedded(tmp_path)
    try:
        store.replace_documents([pair("d0", "Ana", "met", "Bo"), pair("d1", "Cy", "met", "Di")])
        store.replace_entity_vectors({"e-ana": [0.1] * 8, "e-bo": [0.2] * 8, "e-cy": [0.3] * 8})
        wanted = {"e-ana": [0.1] * 8, "e-bo": [0.4] * 8, "e-di": [0.5] * 8}
        store.replace_entity_vectors(wanted)
        stop_embedded(tmp_path)
        assert on_nodes(store) == as_stored(wanted)
        assert store.replace_entity_vectors(wanted) == VectorsReplaced(held=3, written=0, removed=0)
    finally:
        store.close()
        stop_embedded(tmp_path)


def test_a_vector_index_of_the_database_takes_them(falkordb):
    falkordb.replace_documents([pair("d0", "Ana", "met", "Bo"), pair("d1", "Cy", "met", "Di")])
    falkordb.replace_entity_vectors({"e-ana": [1.0, 0.0], "e-bo": [0.0, 1.0], "e-cy": [0.7, 0.7]})
    index = "VECTOR INDEX FOR (n:Entity) ON (n.kg_embedding)"
    falkordb.query(f"CREATE {index} OPTIONS {{dimension: 2, similarityFunction: 'cosine'}}", read_only=False)
    near = "CALL db.idx.vector.queryNodes('Entity', 'kg_embedding', 9, vecf32([0.1, 0.9])) YIELD node, score RETURN node.id"
    try:
        deadline = time.monotonic() + 20
        while len(found := falkordb.query(near)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [row["node.id"] for row in found] == ["e-bo", "e-cy", "e-ana"]
        falkordb.replace_entity_vectors({"e-ana": [0.0, 1.0], "e-cy": [0.7, 0.7], "e-di": [1.0, 0.0]})
        assert [row["node.id"] for row in falkordb.query(near)] == ["e-ana", "e-cy", "e-di"]
    finally:
        falkordb.query(f"DROP {index}", read_only=False)


@pytest.mark.slow
def test_vectors_of_five_thousand_entities_are_written_quickly_and_looked_at_in_no_time(falkordb):
    names = [f"n{n}" for n in range(5_000)]
    falkordb.replace_documents([document("d", Says("x", [(name, "p", 0.5) for name in names]))])
    numbers = np.random.default_rng(1).normal(size=(5_000, 256))
    vectors = dict(zip([f"e-{name}" for name in names], numbers.tolist(), strict=True))
    start = time.perf_counter()
    assert falkordb.replace_entity_vectors(vectors).written == 5_000
    assert time.perf_counter() - start < 6  # a second on a quiet machine
    start = time.perf_counter()
    assert falkordb.replace_entity_vectors(vectors).written == 0
    assert time.perf_counter() - start < 1
