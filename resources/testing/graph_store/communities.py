"""Communities in a graph store: written by difference, read back equal, and no part of the graph that is walked."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.records import Community
from resources.testing.graphs import everything, pair

FINE = [
    Community("fine-1", 0, ("e-ana", "e-bo"), "top", "Ana & Bo", "They met."),
    Community("fine-2", 0, ("e-cy",), "top"),
    Community("top", 1, ("e-ana", "e-bo", "e-cy"), None, "All", 'quotes " and \\ and `x` 由'),
]


class CommunitiesConformance:
    """Communities in a graph store: written by difference, read back equal, and no part of the graph that is walked."""

    @pytest.fixture
    def people(self, store: GraphStore) -> GraphStore:
        names = ["Ana", "Bo", "Cy", "Di"]
        store.replace_documents([pair(f"d{n}", a, "met", b) for n, (a, b) in enumerate(pairwise(names))])
        return store

    def test_communities_read_back_equal(self, people: GraphStore) -> None:
        assert people.communities() == []
        assert people.replace_communities([replace(FINE[0], member_ids=("e-bo", "e-ana")), FINE[2], FINE[1]]) == 3
        assert people.communities() == FINE
        assert people.communities(level=0) == FINE[:2]
        assert people.communities(level=7) == []
        assert people.find_communities(["top", "fine-2", "unknown", "", " top", "top"]) == FINE[1:]
        assert people.find_communities([]) == []

    def test_only_communities_that_differ_are_written(self, people: GraphStore) -> None:
        people.replace_communities(FINE)
        assert people.replace_communities(FINE[::-1]) == 0
        mark = people.revision()
        assert people.replace_communities(FINE) == 0
        assert people.revision() == mark
        summarised = [replace(FINE[0], summary="Another summary."), *FINE[1:]]
        assert people.replace_communities(summarised) == 1
        assert people.communities() == summarised
        assert people.replace_communities([FINE[0], Community("new", 2, ("e-di",)), replace(FINE[2], parent_id="new")]) == 4
        assert people.communities() == [FINE[0], replace(FINE[2], parent_id="new"), Community("new", 2, ("e-di",))]
        assert people.replace_communities([]) == 3
        assert people.communities() == []

    @pytest.mark.parametrize("seed", range(5))
    def test_any_communities_follow_any_others(self, people: GraphStore, seed: Any) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            wanted = []
            for level in range(3):
                members = ["e-ana", "e-bo", "e-cy", "e-di"]
                chance.shuffle(members)
                above = [f"c{n}" for n in range(9) if n % 3 > level]
                for n in chance.sample([n for n in range(9) if n % 3 == level], chance.randint(0, 3)):
                    some = tuple(sorted(members.pop() for _ in range(min(len(members), chance.randint(0, 2)))))
                    wanted.append(
                        Community(f"c{n}", level, some, chance.choice([None, *above]), chance.choice("ab"), chance.choice("ab"))
                    )
            ids = {c.id for c in wanted}
            wanted = [c if c.parent_id in ids else replace(c, parent_id=None) for c in wanted]
            shift = chance.randint(0, 2)  # a community may change its level
            wanted = [replace(c, level=c.level + shift) for c in wanted]
            before = {c.id: c for c in people.communities()}
            after = {c.id: c for c in wanted}
            differing = sum(before.get(id_) != after.get(id_) for id_ in before.keys() | after.keys())
            assert people.replace_communities(wanted) == differing
            assert people.communities() == sorted(wanted, key=lambda c: (c.level, c.id))

    @pytest.mark.parametrize(
        ("broken", "message"),
        [
            ([FINE[2], FINE[2]], "twice"),
            ([Community("", 0, ())], "id"),
            ([Community(" x", 0, ())], "id"),
            ([Community("x", -1, ())], "level -1"),
            ([Community("x", 1.5, ())], "level 1.5"),  # type: ignore[arg-type]
            ([Community("x", 0, ("e-nobody",))], "e-nobody"),
            ([Community("x", 0, (" e-ana",))], "no entity"),
            ([Community("x", 0, ("e-ana", "e-ana"))], "twice"),
            ([Community("x", 0, ("e-ana",)), Community("y", 0, ("e-bo", "e-ana"))], "one community"),
            ([Community("x", 0, (), "nowhere")], "nowhere"),
            ([Community("x", 0, (), "y"), Community("y", 0, ())], "higher level"),
            ([Community("x", 1, (), "y"), Community("y", 0, ())], "higher level"),
            ([Community("x", 0, (), "x")], "higher level"),
        ],
    )
    def test_communities_that_can_not_be_are_refused_before_anything_is_written(
        self, people: GraphStore, broken: Any, message: Any
    ) -> None:
        people.replace_communities(FINE)
        with pytest.raises(StoreError, match=message):
            people.replace_communities(broken)
        assert people.communities() == FINE

    def test_communities_stay_when_documents_are_written_again_and_lose_entities_that_go(self, people: GraphStore) -> None:
        people.replace_communities(FINE)
        people.replace_documents([pair("d0", "Ana", "met", "Bo", 0.25)])
        assert people.communities() == FINE
        people.delete_documents(["d0"])  # nothing else mentions Ana
        assert people.communities() == [
            replace(FINE[0], member_ids=("e-bo",)),
            FINE[1],
            replace(FINE[2], member_ids=("e-bo", "e-cy")),
        ]
        people.delete_documents(["d1", "d2"])
        assert [c.member_ids for c in people.communities()] == [(), (), ()]
        people.replace_documents([pair("d0", "Ana", "met", "Bo")])
        assert [c.member_ids for c in people.communities()] == [(), (), ()]

    def test_communities_are_no_part_of_the_graph_that_is_walked(self, people: GraphStore) -> None:
        before = everything(people)
        counts = people.relation_labels(), people.entity_types(), list(people.mention_counts()), people.find_relations()
        people.replace_communities(FINE)
        assert everything(people) == before
        assert (people.relation_labels(), people.entity_types(), list(people.mention_counts()), people.find_relations()) == counts
        assert people.search_entities("All", 5) == []
        assert people.search_chunks("quotes", 5) == []
        people.replace_documents([pair("d9", "Ana", "member of", "Bo"), pair("d8", "Bo", "child of", "Cy")])
        assert people.communities() == FINE
        assert people.stats().relations == before["stats"].relations + 2

    def test_any_text_of_a_community_reads_back(self, people: GraphStore) -> None:
        text = "a\0b \ud83d 👩‍🔬 `$x` {y: 'z'} \\ \"q\" line\nbreak\ttab"
        people.replace_communities([Community("x", 0, ("e-ana",), None, text, text)])
        (found,) = people.communities()
        assert found.title == found.summary == text.replace("\0", "").replace("\ud83d", "")
        assert people.replace_communities([Community("x", 0, ("e-ana",), None, text, text)]) == 0
