"""Strategy "path": ways between the entities that a question names (C23), of any direction and length (B31)."""

import math
from itertools import pairwise

import pytest

from resources.errors import SettingsError, StoreError
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import check_options, make_retriever
from retrico_assets.query.sources import Sources
from tests.support.query_world import WordEmbedder, empty_graph, facts, fill

# A long way A1 ... A6 of mixed directions, two ways B1 ... B3 of one length, a way through C2 that is asked for.
FACTS = facts(
    ("Anode One", "feeds", "Anode Two"),
    ("Anode Three", "owns", "Anode Two"),
    ("Anode Three", "member of", "Anode Four"),
    ("Anode Five", "mentioned in", "Anode Four"),
    ("Anode Five", "leads to", "Anode Six"),
    ("Bolt One", "part of", "Bolt Mid"),
    ("Bolt Two", "part of", "Bolt Mid"),
    ("Bolt One", "painted by", "Bolt Red"),
    ("Bolt Two", "painted by", "Bolt Red"),
    ("Bolt One", "sold to", "Bolt Three"),
    ("Bolt Three", "sold to", "Bolt Two"),
    ("Carl Cone", "met", "Dora Dill"),
    ("Carl Cone", "married", "Dora Dill"),
    ("Carl Cone", "met", "Dora Dill"),
    ("Dora Dill", "met", "Emil Esk"),
    ("Lone Star", "shines on", "Lone Moon"),
    ("Paris", "is", "Carl Cone"),
)


@pytest.fixture(scope="module", params=["memory", "falkordb"])
def ways(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    with empty_graph(request.param, folder) as graph, SqliteTextStore(folder / "texts.sqlite") as texts:
        yield fill(graph, texts, MemoryVectorStore(), WordEmbedder(), FACTS)


def retrieve(world, text, k=20, **options):
    return make_retriever("path", Sources(**world.sources), options).retrieve(link(Question(text), world.graph), k)


def triples(found):
    names = {one.record.id: one.record.label for one in found.entities}
    return [(names[one.record.head_id], one.record.label, names[one.record.tail_id]) for one in found.relations]


def labels(found):
    return [one.record.label for one in found.entities]


def texts(found):
    return [one.record.text for one in found.chunks]


def test_a_path_of_four_relations_keeps_their_true_direction(ways):  # B31
    found = retrieve(ways, "How are Anode One and Anode Five joined?")
    assert triples(found) == [
        ("Anode One", "feeds", "Anode Two"),
        ("Anode Three", "owns", "Anode Two"),
        ("Anode Three", "member of", "Anode Four"),
        ("Anode Five", "mentioned in", "Anode Four"),
    ]
    assert labels(found) == ["Anode One", "Anode Two", "Anode Three", "Anode Four", "Anode Five"]
    assert texts(found) == [
        "Anode One feeds Anode Two.",
        "Anode Three owns Anode Two.",
        "Anode Three member of Anode Four.",
        "Anode Five mentioned in Anode Four.",
    ]


def test_a_path_of_five_relations_is_found_and_from_the_other_end_too(ways):  # B31
    forth = retrieve(ways, "From Anode One to Anode Six")
    back = retrieve(ways, "From Anode Six to Anode One")
    assert len(forth.relations) == 5
    assert triples(back) == triples(forth)[::-1]
    assert ("Anode Five", "leads to", "Anode Six") in triples(forth)
    assert len(forth.chunks) == 5


def test_a_longer_way_than_allowed_is_not_looked_for(ways):
    found = retrieve(ways, "From Anode One to Anode Six", max_length=4)
    assert (found.entities, found.relations, found.chunks) == ((), (), ())


def test_a_direct_edge_comes_before_a_longer_way(ways):  # B31
    found = retrieve(ways, "Do Emil Esk, Dora Dill and Carl Cone know each other?")
    assert {label for _, label, _ in triples(found)} == {"met", "married"}
    ranks = {frozenset((head, tail)): place for place, (head, _, tail) in enumerate(triples(found))}
    assert set(ranks) == {frozenset(("Emil Esk", "Dora Dill")), frozenset(("Carl Cone", "Dora Dill"))}
    scores = {one.record.label: one.score for one in found.entities}
    assert min(scores.values()) >= 1 / 2


def test_among_ways_of_one_length_the_one_that_is_asked_for_is_first(ways):
    for question, label in {"painted": "painted by", "sold": "sold to", "a part": "part of"}.items():
        found = retrieve(ways, f"Are Bolt One and Bolt Two {question}?")
        assert [one for _, one, _ in triples(found)][:2] == [label, label]
        assert len(found.relations) == 6


def test_paths_bounds_the_ways_of_a_pair(ways):
    assert len(retrieve(ways, "Bolt One, Bolt Two", paths=1).relations) == 2


def test_of_parallel_relations_the_one_that_is_asked_for_is_first_and_the_others_follow(ways):
    assert triples(retrieve(ways, "Did Carl Cone marry Dora Dill?"))[0] == ("Carl Cone", "married", "Dora Dill")
    met = retrieve(ways, "Has Carl Cone met Dora Dill?")
    assert triples(met) == [("Carl Cone", "met", "Dora Dill"), ("Carl Cone", "married", "Dora Dill")]
    assert [one.record.id for one in met.chunks] == ["fact-11#0", "fact-13#0", "fact-12#0"]


def test_one_entity_gives_what_is_one_hop_around_it(ways):  # C23
    found = retrieve(ways, "What about Anode Two?")
    assert labels(found)[0] == "Anode Two"
    assert set(labels(found)) == {"Anode One", "Anode Two", "Anode Three"}
    assert set(texts(found)) == {"Anode One feeds Anode Two.", "Anode Three owns Anode Two."}


def test_none_gives_nothing(ways):  # C23
    for question in ("", "Who?", "Where is Atlantis?"):
        found = retrieve(ways, question)
        assert (found.entities, found.relations, found.chunks) == ((), (), ())


def test_entities_that_nothing_joins_give_nothing(ways):
    assert retrieve(ways, "Is Lone Star joined with Bolt One?").relations == ()


def test_more_entities_are_joined_pair_by_pair_up_to_a_limit(ways):
    question = "Anode One, Anode Two, Anode Three"
    assert len(retrieve(ways, question).relations) == 2
    assert triples(retrieve(ways, question, max_pairs=1)) == [("Anode One", "feeds", "Anode Two")]


def test_a_guessed_end_makes_a_path_count_less(ways):
    sure = retrieve(ways, "Dora Dill and Emil Esk").entities[0].score
    found = retrieve(ways, "Dora Dill and Emil Esk, or Cone")
    scores = {one.record.label: one.score for one in found.entities}
    assert scores["Emil Esk"] == pytest.approx(sure)
    assert scores["Carl Cone"] < sure / 2
    assert labels(found)[-1] == "Carl Cone"


@pytest.mark.parametrize("source", ["relation", "entity", "both"])
def test_chunks_come_from_the_relations_or_the_entities_of_the_path(ways, source):
    found = retrieve(ways, "How do Dora Dill and Emil Esk hang together?", chunk_source=source)
    stating = "Dora Dill met Emil Esk."
    mentioning = {"Carl Cone met Dora Dill.", "Carl Cone married Dora Dill."}
    assert stating in texts(found)
    assert (mentioning <= set(texts(found))) == (source != "relation")
    if source != "entity":
        assert texts(found)[0] == stating


def test_the_chunks_cost_one_call_of_the_text_store(ways, monkeypatch):
    calls = []
    get_chunks = ways.texts.get_chunks
    monkeypatch.setattr(ways.texts, "get_chunks", lambda ids: calls.append(ids) or get_chunks(ids))
    assert len(retrieve(ways, "Anode One, Anode Six and Bolt One, Bolt Two").chunks) > 5
    assert len(calls) == 1


@pytest.mark.parametrize("k", [1, 3])
def test_k_cuts_each_list_and_the_ends_of_relations_stay(ways, k):
    found = retrieve(ways, "From Anode One to Anode Six, from Bolt One to Bolt Two", k=k)
    assert len(found.relations) == k
    assert len(found.chunks) == k
    ends = {end for one in found.relations for end in (one.record.head_id, one.record.tail_id)}
    assert ends <= {one.record.id for one in found.entities}


def test_each_is_ranked_and_comes_once(ways):
    found = retrieve(ways, "Anode One, Anode Three, Anode Six, Bolt One, Bolt Two and Carl Cone", chunk_source="both")
    for ranking in (found.entities, found.relations, found.chunks):
        ids = [one.record.id for one in ranking]
        assert ids
        assert len(set(ids)) == len(ids)
        assert all(math.isfinite(one.score) and one.score > 0 for one in ranking)
        assert all(one.score >= other.score for one, other in pairwise(ranking))


def test_namesakes_are_not_joined_with_each_other(tmp_path):
    from tests.support.query_world import small_world

    world = small_world(tmp_path)
    found = retrieve(world, "Paris?")
    assert sorted(one.record.type for one in found.entities) == ["location", "person"]
    world.texts.close()


def test_names_that_could_not_be_looked_up_fail_the_strategy(ways):
    with pytest.raises(StoreError, match="graph is down"):
        make_retriever("path", Sources(**ways.sources)).retrieve(Question("Ulm", fault="graph is down"), 3)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_length", 0),
        ("max_length", 11),
        ("max_length", "5] DETACH DELETE"),
        ("max_pairs", 0),
        ("paths", 0),
        ("chunk_source", "x"),
    ],
)
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(SettingsError, match=f"path.{option} is "):
        check_options("path", {option: value})
