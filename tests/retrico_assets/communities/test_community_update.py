"""Communities in the graph stores: replaced when the graph has changed, and only then."""

import json
from dataclasses import replace

import pytest

from resources.graph.memory import MemoryGraphStore
from retrico_assets.communities.detect import weighted_graph
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.communities.update import level_modularity, update_communities
from tests.support.query_world import empty_graph, facts

TRIANGLES = [(a, "knows", b) for a, b in ["AB", "BC", "CA", "DE", "EF", "FD", "CD"]]


@pytest.fixture(params=["memory", pytest.param("embedded", marks=pytest.mark.slow)])
def graph(request, tmp_path):
    with empty_graph(request.param, tmp_path / "graph") as store:
        store.replace_documents(facts(*TRIANGLES))
        yield store


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state.json"


def members(graph, level=0):
    names = {entity.id: entity.label for entity in graph.entities()}
    return sorted(sorted(names[id_] for id_ in community.member_ids) for community in graph.communities(level))


def test_communities_are_written_once_and_not_again(graph, state):
    first = update_communities(graph, CommunityOptions(), state)
    assert members(graph) == [["A", "B", "C"], ["D", "E", "F"]]
    assert (first.detected, first.written, first.kept) == (True, 3, 0)
    assert [(f.level, f.communities, f.largest, f.alone) for f in first.levels] == [(0, 2, 3, 0), (1, 1, 6, 0)]
    before, revision = graph.communities(), graph.revision()

    second = update_communities(graph, CommunityOptions(), state)
    assert (second.detected, second.written) == (False, 0)
    assert second.levels == first.levels
    assert (graph.communities(), graph.revision()) == (before, revision)


def test_a_community_that_stays_keeps_its_title_and_summary(graph, state):
    update_communities(graph, CommunityOptions(levels=1), state)
    named = [replace(c, title=f"title {n}", summary=f"summary {n}") for n, c in enumerate(graph.communities())]
    graph.replace_communities(named)
    graph.replace_documents(facts(("G", "knows", "H"), ("F", "knows", "I"), first=50))
    update = update_communities(graph, CommunityOptions(levels=1), state)
    assert members(graph) == [["A", "B", "C"], ["D", "E", "F", "I"], ["G", "H"]]
    titles = {tuple(sorted(c.member_ids)): c.title for c in graph.communities()}
    kept = [c for c in named if c.id in {one.id for one in graph.communities()}]
    assert len(kept) == update.kept == 1
    assert titles[tuple(sorted(kept[0].member_ids))] == kept[0].title
    assert sorted(titles.values()) == ["", "", kept[0].title]


def test_other_options_detect_again(graph, state):
    update_communities(graph, CommunityOptions(), state)
    assert update_communities(graph, CommunityOptions(levels=1), state).detected
    assert {c.level for c in graph.communities()} == {0}


def test_communities_that_were_lost_or_changed_are_found_out(graph, state):
    first = update_communities(graph, CommunityOptions(), state)
    graph.replace_communities([c for c in first.communities if c.level == 1])
    second = update_communities(graph, CommunityOptions(), state)
    assert (second.detected, second.written) == (True, 2)
    assert graph.communities() == list(first.communities)


def test_a_run_that_was_killed_while_writing_is_done_again(state, tmp_path, monkeypatch):
    graph = MemoryGraphStore()
    graph.replace_documents(facts(*TRIANGLES))
    before = update_communities(graph, CommunityOptions(), state)
    graph.replace_documents(facts(("G", "knows", "A"), first=50))

    def half(communities):
        MemoryGraphStore.replace_communities(graph, [c for c in communities if c.level == 1])
        raise KeyboardInterrupt

    monkeypatch.setattr(graph, "replace_communities", half)
    with pytest.raises(KeyboardInterrupt):
        update_communities(graph, CommunityOptions(), state)
    monkeypatch.undo()
    graph.delete_documents(["doc:fact-50"])  # back to what the first run saw
    again = update_communities(graph, CommunityOptions(), state)
    assert again.detected
    assert again.communities == before.communities == tuple(graph.communities())


@pytest.mark.parametrize("content", ["", "[1]", "{", json.dumps({"fingerprint": "x"})])
def test_a_broken_state_file_costs_a_detection_and_nothing_else(content, state):
    graph = MemoryGraphStore()
    graph.replace_documents(facts(*TRIANGLES))
    state.write_text(content)
    assert update_communities(graph, CommunityOptions(), state).written == 3
    assert not update_communities(graph, CommunityOptions(), state).detected


@pytest.mark.parametrize(("said", "expected"), [([], []), ([("A", "is", "A")], [["A"]]), ([("A", "knows", "B")], [["A", "B"]])])
def test_small_graphs_are_a_success(said, expected, state):
    graph = MemoryGraphStore()
    graph.replace_documents(facts(*said))
    for _ in range(2):
        update = update_communities(graph, CommunityOptions(), state)
        assert members(graph) == expected
        assert sum(f.communities for f in update.levels) == len(expected)


def test_an_entity_that_left_the_graph_is_passed_over_in_modularity(state):
    graph = MemoryGraphStore()
    graph.replace_documents(facts(*TRIANGLES))
    update = update_communities(graph, CommunityOptions(levels=1), state)
    ids = [entity.id for entity in graph.entities()]
    rest = weighted_graph(ids[:1], [])
    assert level_modularity(rest, update.communities) == [0.0]
