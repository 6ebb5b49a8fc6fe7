"""FalkorDB: vectors, beyond what every graph store promises."""

import time
from array import array

import numpy as np
import pytest

from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.graph.memory import MemoryGraphStore
from resources.graph.vectors import VectorsReplaced
from resources.testing.graphs import Says, document, pair

FINE = {"e-ana": [0.1, -2.0, 1e-12], "e-bo": [1 / 3, 3.4e38, 0.0]}


def as_stored(vectors):
    return {id_: array("f", vector).tolist() for id_, vector in vectors.items()}


def on_nodes(store):
    """Nothing but the graph's own language reads vectors; the memory store, which has none, is looked into."""
    if isinstance(store, MemoryGraphStore):
        return store.entity_vectors()
    rows = store.query("MATCH (n) WHERE n.kg_embedding IS NOT NULL RETURN n.id AS id, n.kg_embedding AS vector")
    return {row["id"]: row["vector"] for row in rows}


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
