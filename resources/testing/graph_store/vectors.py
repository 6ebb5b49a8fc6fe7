"""Vectors on the entities of a graph: written by difference, kept by entities that stay, and no part of what the graph says."""

from array import array
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.vectors import VectorsReplaced
from resources.testing.graph_store.inspection import Inspection
from resources.testing.graphs import Says, document, everything, pair

FINE: dict[str, Any] = {"e-ana": [0.1, -2.0, 1e-12], "e-bo": [1 / 3, 3.4e38, 0.0]}


def as_stored(vectors: Any) -> Any:
    return {id_: array("f", vector).tolist() for id_, vector in vectors.items()}


class VectorsConformance(Inspection):
    """Vectors on entities: written by difference, kept by entities that stay, and no part of the graph's content."""

    @pytest.fixture
    def people(self, store: GraphStore) -> GraphStore:
        names = ["Ana", "Bo", "Cy", "Di"]
        store.replace_documents([pair(f"d{n}", a, "met", b) for n, (a, b) in enumerate(pairwise(names))])
        return store

    def test_these_become_the_only_vectors(self, people: GraphStore) -> None:
        assert people.replace_entity_vectors(FINE) == VectorsReplaced(held=2, written=2, removed=0)
        assert self.vectors_on_nodes(people) == as_stored(FINE)
        other: dict[str, Any] = {"e-bo": np.array([1.0, 2.0], np.float32), "e-cy": (3, 4)}
        assert people.replace_entity_vectors(other) == VectorsReplaced(held=2, written=2, removed=1)
        assert self.vectors_on_nodes(people) == {"e-bo": [1.0, 2.0], "e-cy": [3.0, 4.0]}
        assert people.replace_entity_vectors({}) == VectorsReplaced(held=0, written=0, removed=2)
        assert self.vectors_on_nodes(people) == {}
        assert people.replace_entity_vectors({}) == VectorsReplaced(held=0, written=0, removed=0)

    def test_only_vectors_that_differ_are_written(self, people: GraphStore) -> None:
        people.replace_entity_vectors(FINE)
        assert people.replace_entity_vectors(dict(reversed(FINE.items()))) == VectorsReplaced(held=2, written=0, removed=0)
        changed = {**FINE, "e-bo": [1.0, 2.0, 3.0]}
        assert people.replace_entity_vectors(changed) == VectorsReplaced(held=2, written=1, removed=0)
        assert self.vectors_on_nodes(people) == as_stored(changed)

    def test_a_vector_that_differs_in_any_number_is_another_one(self, people: GraphStore) -> None:
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
            assert self.vectors_on_nodes(people) == as_stored({"e-ana": vector})

    def test_unknown_ids_are_passed_over(self, people: GraphStore) -> None:
        strange: dict[str, Any] = dict.fromkeys(
            ["e-nobody", "", " e-ana", "e-ana ", "line\nbreak", "d0", "d0/0"], (1.0, 2.0, 3.0)
        )
        assert people.replace_entity_vectors(FINE | strange) == VectorsReplaced(held=2, written=2, removed=0)
        assert self.vectors_on_nodes(people) == as_stored(FINE)

    def test_an_empty_graph_takes_no_vectors(self, store: GraphStore) -> None:
        assert store.replace_entity_vectors(FINE) == VectorsReplaced(held=0, written=0, removed=0)
        assert self.vectors_on_nodes(store) == {}

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
    def test_vectors_that_can_not_be_are_refused_before_anything_is_written(
        self, people: GraphStore, broken: Any, message: Any
    ) -> None:
        people.replace_entity_vectors(FINE)
        with pytest.raises(StoreError, match=message):
            people.replace_entity_vectors({"e-ana": [7.0, 8.0, 9.0], "e-cy": broken})
        assert self.vectors_on_nodes(people) == as_stored(FINE)

    def test_vectors_change_neither_what_the_graph_says_nor_its_revision(self, people: GraphStore) -> None:
        people.replace_documents([document("d9", Says("Ana", [("Ana", "person", 0.9, {"born": 1970})]))])
        before, mark = everything(people), people.revision()
        people.replace_entity_vectors(FINE)
        people.replace_entity_vectors({"e-cy": [1.0]})
        assert everything(people) == before
        assert people.find_entities(ids=["e-ana"])[0].properties == {"born": 1970}
        assert people.revision() == mark

    def test_a_property_of_the_same_name_is_another_thing(self, people: GraphStore) -> None:
        said = {"kg_embedding": [5, 6], "kg_embedding_hash": "mine"}
        people.replace_documents([document("d9", Says("Ana", [("Ana", "person", 0.9, said)]))])
        assert self.vectors_on_nodes(people) == {}
        people.replace_entity_vectors(FINE)
        assert people.find_entities(ids=["e-ana"])[0].properties == said
        assert people.replace_entity_vectors({}) == VectorsReplaced(held=0, written=0, removed=2)
        assert people.find_entities(ids=["e-ana"])[0].properties == said

    def test_an_entity_keeps_its_vector_when_documents_are_written_again(self, people: GraphStore) -> None:
        people.replace_entity_vectors(FINE)
        people.replace_documents([pair("d0", "ANA", "knows", "Bo", 0.25)])  # another name and another relation
        assert self.vectors_on_nodes(people) == as_stored(FINE)
        for properties in ({"born": 1970}, {"died": 2020}, {}):  # gains, changes, and loses properties of its own
            people.replace_documents([document("d9", Says("Ana", [("Ana", "person", 0.9, properties)]))])
            assert self.vectors_on_nodes(people) == as_stored(FINE)
            assert people.find_entities(ids=["e-ana"])[0].properties == properties
        assert people.replace_entity_vectors(FINE).written == 0

    def test_an_entity_that_goes_away_loses_its_vector_for_good(self, people: GraphStore) -> None:
        people.replace_entity_vectors(FINE)
        people.delete_documents(["d0"])  # nothing else mentions Ana
        people.replace_documents([pair("d0", "Ana", "met", "Bo")])
        assert self.vectors_on_nodes(people) == as_stored({"e-bo": FINE["e-bo"]})
        assert people.replace_entity_vectors(FINE) == VectorsReplaced(held=2, written=1, removed=0)
