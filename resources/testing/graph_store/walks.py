"""Walking a graph store: windows of dates, paths, relations by pattern, and streams of what a walk needs."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

from resources.graph.base import GraphStore
from resources.records import Community
from resources.testing.graphs import Says, document, entity_id, labels, pair


def _dated(id_: Any, head: Any, label: Any, tail: Any, start: Any = None, end: Any = None, score: Any = 0.5) -> Any:
    graph = pair(id_, head, label, tail, score)
    return replace(graph, relations=tuple(replace(r, start_date=start, end_date=end) for r in graph.relations))


def _names(path: Any) -> Any:
    return [entity.label for entity in path.entities]


def _ways(store: GraphStore, head: Any, tail: Any, **limits: Any) -> Any:
    (paths,) = store.shortest_paths([(entity_id(head), entity_id(tail))], **limits)
    return [_names(path) for path in paths]


class WalksConformance:
    """Walking a graph store: windows of dates, paths, relations by pattern, and streams of what a walk needs."""

    @pytest.fixture
    def dated(self, store: GraphStore) -> GraphStore:
        store.replace_documents(
            [
                _dated("d1", "a", "worked at", "b", "2001", "2005-06"),
                _dated("d2", "b", "worked at", "c", "2004-01-01", None),
                _dated("d3", "a", "worked at", "d", None, None),
                _dated("d4", "d", "worked at", "e", "2010", "2012"),
                _dated("d5", "e", "worked at", "f", "", ""),
            ]
        )
        return store

    @pytest.mark.parametrize(
        ("after", "before", "reached", "relations"),
        [
            (None, None, "abcdef", 5),
            ("2005-07", None, "adef", 4),
            ("2005-06", None, "abcdef", 5),
            (None, "2003", "abd", 3),
            (None, "2004-01-01", "abcd", 4),
            ("2006", "2009", "ad", 3),
            ("2005-01", "2005-02", "abcd", 4),
            ("2013", None, "ad", 3),
        ],
    )
    def test_a_neighbourhood_walks_only_what_held_in_the_window(
        self, dated: GraphStore, after: Any, before: Any, reached: Any, relations: Any
    ) -> None:
        found = dated.neighbourhood(["e-a"], 5, active_after=after, active_before=before)
        assert "".join(sorted(entity.label for entity, _ in found.entities)) == reached
        inside = {entity.id for entity, _ in found.entities}
        kept = dated.find_relations(active_after=after, active_before=before)
        assert len(kept) == relations
        assert [r.id for r in found.relations] == sorted(r.id for r in kept if r.head_id in inside and r.tail_id in inside)

    def test_relations_are_found_by_any_part_of_their_pattern(self, store: GraphStore) -> None:
        said = [
            ("Ana", "hired", "Bo", 0.9),
            ("Ana", "Hired", "Cy", 0.8),
            ("Bo", "hired", "Ana", 0.7),
            ("Bo", "member of", "Cy", 0.6),
        ]
        store.replace_documents(
            [document("d", Says("x", [(n, "p", 0.5) for n in ("Ana", "Bo", "Cy")], [*said, ("Cy", "a b", "Cy", 0.6)]))]
        )

        def found(**pattern: Any) -> Any:
            return [(r.head_id[2:], r.label, r.tail_id[2:]) for r in store.find_relations(**pattern)]

        whole = [triple[:3] for triple in said]
        whole = [(h.casefold(), label, t.casefold()) for h, label, t in whole]
        assert found()[:3] == whole[:3]
        assert set(found()[3:]) == {whole[3], ("cy", "a b", "cy")}
        assert [r.id for r in store.find_relations()[3:]] == sorted(
            r.id for r in store.find_relations()[3:]
        )  # equal scores: by id
        assert found(limit=2) == whole[:2]
        assert found(limit=0) == []
        assert found(head_ids=["e-ana"]) == whole[:2]
        assert found(tail_ids=["e-ana", "e-cy"], min_score=0.65) == whole[1:3]
        assert found(head_ids=["e-ana"], tail_ids=["e-bo"]) == whole[:1]
        assert found(labels=["hired"]) == [whole[0], whole[2]]
        assert found(labels=["Hired"]) == [whole[1]]
        assert found(labels=["member of", "a-b"]) == [whole[3]]
        assert found(labels=["hired", "Hired"], head_ids=["e-bo"]) == [whole[2]]
        no_matches: Any
        for no_matches in ({"head_ids": []}, {"tail_ids": []}, {"labels": []}, {"labels": [" ", ""]}, {"labels": ["unknown"]}):
            assert found(**no_matches) == []
        for no_matches in ({"head_ids": ["unknown", "", " e-ana"]}, {"tail_ids": ["e-ana\n"]}, {"min_score": 0.95}):
            assert found(**no_matches) == []

    @pytest.mark.parametrize(
        "label", ["x`]->(y) DETACH DELETE y //", "hired|likes", "*1..9", "$labels", "' OR 1=1 //", "\\", "由...组成"]
    )
    def test_no_label_of_a_pattern_is_an_operator(self, store: GraphStore, label: Any) -> None:
        store.replace_documents([pair("d1", "Ana", "hired", "Bo"), pair("d2", "Ana", "likes", "Bo")])
        assert store.find_relations(labels=[label]) == []
        assert store.find_relations(head_ids=[label], tail_ids=[label]) == []
        store.replace_documents([pair("d3", "Ana", label, "Bo")])
        assert [r.label for r in store.find_relations(labels=[label])] == [label]
        assert store.stats().relations == 3

    def test_a_path_is_walked_in_both_directions_and_tells_the_true_ones(self, store: GraphStore) -> None:
        store.replace_documents(
            [pair("d1", "Ana", "hired", "Bo"), pair("d2", "Cy", "taught", "Bo"), pair("d3", "Cy", "met", "Di")]
        )
        ((path,),) = store.shortest_paths([("e-ana", "e-di")])
        assert _names(path) == ["Ana", "Bo", "Cy", "Di"]
        assert [(r.head_id, r.label, r.tail_id) for r in path.relations] == [
            ("e-ana", "hired", "e-bo"),
            ("e-cy", "taught", "e-bo"),
            ("e-cy", "met", "e-di"),
        ]
        ((back,),) = store.shortest_paths([("e-di", "e-ana")])
        assert back.relations == path.relations[::-1]
        assert _ways(store, "Ana", "Di", max_length=2) == []
        assert _ways(store, "Ana", "Di", max_length=3) == [["Ana", "Bo", "Cy", "Di"]]

    def test_pairs_that_nothing_joins_have_no_path(self, store: GraphStore) -> None:
        store.replace_documents(
            [pair("d1", "Ana", "hired", "Bo"), document("d2", Says("x", [("Ana", "p", 0.5), ("Cy", "p", 0.5)]))]
        )
        store.replace_communities([Community("all", 0, ("e-ana", "e-bo", "e-cy"))])
        pairs = [("e-ana", "e-cy"), ("e-ana", "e-bo"), ("e-ana", "e-ana"), ("e-ana", "unknown"), ("", " e-bo"), ("e-bo", "e-ana")]
        assert [len(paths) for paths in store.shortest_paths(pairs)] == [0, 1, 0, 0, 0, 1]
        assert store.shortest_paths([]) == []
        assert store.shortest_paths([("e-ana", "e-bo")], limit=0) == [[]]
        assert store.shortest_paths([("e-ana", "e-bo")], max_length=0) == [[]]

    def test_the_best_of_parallel_relations_stands_for_a_step(self, store: GraphStore) -> None:
        store.replace_documents(
            [pair("d1", "Ana", "met", "Bo", 0.3), pair("d2", "Bo", "hired", "Ana", 0.8), pair("d3", "Ana", "likes", "Bo", 0.5)]
        )
        ((path,),) = store.shortest_paths([("e-ana", "e-bo")])
        assert [r.label for r in path.relations] == ["hired"]

    def test_shorter_paths_come_first_then_those_whose_weakest_relation_is_best(self, store: GraphStore) -> None:
        store.replace_documents(
            [
                *(
                    pair(f"s{n}", "Ana", "knows", name, score)
                    for n, (name, score) in enumerate([("x", 0.2), ("y", 0.9), ("z", 0.9)])
                ),
                *(
                    pair(f"t{n}", name, "knows", "Bo", score)
                    for n, (name, score) in enumerate([("x", 0.9), ("y", 0.7), ("z", 0.7)])
                ),
                pair("u", "x", "knows", "y"),
            ]
        )
        two = [["Ana", "y", "Bo"], ["Ana", "z", "Bo"], ["Ana", "x", "Bo"]]
        assert _ways(store, "Ana", "Bo", limit=3) == two
        assert _ways(store, "Ana", "Bo", limit=2) == two[:2]
        assert _ways(store, "Ana", "Bo", limit=9) == [*two, ["Ana", "y", "x", "Bo"], ["Ana", "x", "y", "Bo"]]
        store.replace_documents([pair("direct", "Bo", "knows", "Ana", 0.1)])
        assert _ways(store, "Ana", "Bo", limit=2) == [["Ana", "Bo"], two[0]]

    @pytest.mark.parametrize("seed", range(8))
    def test_paths_are_those_of_an_exhaustive_search(self, store: GraphStore, seed: Any) -> None:
        chance = random.Random(seed)
        names = [f"n{n:02}" for n in range(30)]
        edges = [chance.sample(names[: chance.choice([8, 30])], 2) for _ in range(chance.choice([25, 45, 60]))]
        store.replace_documents([pair(f"d{n}", a, "to", b, chance.randint(1, 9) / 10) for n, (a, b) in enumerate(edges)])
        graph = nx.Graph()
        for relation in store.relations():
            a, b = relation.head_id, relation.tail_id
            graph.add_edge(a, b, score=max(relation.score, graph.edges[a, b]["score"] if graph.has_edge(a, b) else 0))
        pairs = [tuple(chance.sample(sorted(graph), 2)) for _ in range(6)]
        for max_length, limit in ((5, 3), (4, 20), (2, 2)):
            for (a, b), found in zip(pairs, store.shortest_paths(pairs, max_length, limit), strict=True):
                every = nx.all_simple_paths(graph, a, b, cutoff=max_length)
                ranked = sorted(
                    (len(way), -min(graph.edges[step]["score"] for step in pairwise(way)), tuple(way)) for way in every
                )
                assert [tuple(e.id for e in path.entities) for path in found] == [way for *_, way in ranked[:limit]]
                for path in found:
                    for relation, step in zip(path.relations, pairwise(e.id for e in path.entities), strict=True):
                        assert {relation.head_id, relation.tail_id} == set(step)

    def test_a_hub_of_thousands_does_not_stand_in_the_way(self, store: GraphStore) -> None:
        names = [f"leaf{n}" for n in range(6_000)]
        said = [("hub", "has", name, 0.5) for name in names]
        store.replace_documents(
            [
                document("d", Says("x", [(name, "p", 0.5) for name in ["hub", *names]], said)),
                pair("d1", "Ana", "sees", "leaf7"),
                pair("d2", "Bo", "sees", "leaf4999"),
            ]
        )
        assert _ways(store, "Ana", "Bo") == [["Ana", "leaf7", "hub", "leaf4999", "Bo"]]

    def test_labels_and_types_are_counted_most_frequent_first(self, store: GraphStore) -> None:
        assert store.relation_labels() == {}
        assert store.entity_types() == {}
        store.replace_documents(
            [
                pair("d1", "Ana", "met", "Bo"),
                pair("d2", "Ana", "met", "Cy"),
                pair("d3", "Cy", "Met", "Bo"),
                document("d4", Says("x", [("Oslo", "city", 0.5), ("Dur", "animal", 0.5)])),
            ]
        )
        assert list(store.relation_labels().items()) == [("met", 2), ("Met", 1)]
        assert list(store.entity_types().items()) == [("person", 3), ("animal", 1), ("city", 1)]

    def test_mentions_are_counted_by_entity_and_chunk(self, store: GraphStore) -> None:
        graphs = [
            document("d1", Says("x", [("Ana", "p", 0.5), ("Ana", "p", 0.9), ("Bo", "p", 0.5)]), Says("y", [("Ana", "p", 0.5)])),
            document("d0", Says("z", [("Ana", "p", 0.1)])),
        ]
        store.replace_documents(graphs)
        counts = [("e-ana", "d0/0", 1), ("e-ana", "d1/0", 2), ("e-ana", "d1/1", 1), ("e-bo", "d1/0", 1)]
        assert list(store.mention_counts()) == counts
        assert list(store.mention_counts(page_size=1)) == counts

    def test_every_change_gives_a_new_revision(self, store: GraphStore) -> None:
        seen = [store.revision()]
        assert store.revision() == seen[0]
        store.replace_documents([pair("d1", "Ana", "met", "Bo")])
        seen.append(store.revision())
        store.replace_communities([Community("c", 0, ("e-ana",))])  # made from the rest, which stays
        assert labels(store.entities()) == {"Ana", "Bo"}
        assert store.revision() == seen[-1]  # reading is no change
        store.delete_documents(["d1"])
        seen.append(store.revision())
        store.replace_documents([pair("d1", "Ana", "met", "Bo")])  # as before, but not the same state of mind
        seen.append(store.revision())
        assert len(set(seen)) == len(seen)
        assert all(seen)
