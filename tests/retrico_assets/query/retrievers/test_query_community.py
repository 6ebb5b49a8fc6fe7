"""Communities found by their summaries' meaning, and what is ranked among their members."""

import pytest

from resources.errors import IndexMismatchError, NotBuiltError, SettingsError
from resources.records import Community, Subgraph
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.embeddings.sync import COMMUNITY_INDEX, sync_index
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers import community as community_module
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.query_stores import GRAPHS, ODD_QUESTIONS, check, id_of, names, opened, tell, triples
from tests.support.query_world import WordEmbedder

BIRDS = ("Kestrel", "Falcon", "Merlin", "Hobby")
FISH = ("Pike", "Perch")
FACTS = [
    ("Kestrel", "kin of", "Falcon", 1.0),
    ("Kestrel", "kin of", "Merlin", 1.0),
    ("Kestrel", "smaller than", "Hobby", 0.5),
    ("Falcon", "kin of", "Merlin", 0.5),
    ("Pike", "eats", "Perch", 1.0),
    ("Perch", "feared by", "Heron", 1.0),
    ("Heron", "nests in", "Alder", 1.0),
]
SUMMARIES = {
    "birds": "birds of prey hunting in the sky",
    "fish": "fish of rivers hunting in the lake",
    "animals": "animals hunting everywhere",
}


def communities():
    def community(id, level, members, parent=None):
        ids = tuple(sorted(map(id_of, members)))
        return Community(id, level, ids, parent, id.title(), SUMMARIES[id])

    return [
        community("birds", 0, BIRDS, "animals"),
        community("fish", 0, FISH, "animals"),
        community("animals", 1, (*BIRDS, *FISH)),
    ]


@pytest.fixture(scope="module", params=GRAPHS)
def sources(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp("communities")) as (graph, texts):
        tell(graph, texts, FACTS)
        graph.replace_communities(communities())
        yield Sources(graph, texts, _index(SUMMARIES), WordEmbedder())


def _index(texts):
    vectors = MemoryVectorStore()
    sync_index(vectors, COMMUNITY_INDEX, WordEmbedder(), texts)
    return vectors


def ask(sources, text, k=10, **options):
    found = make_retriever("community", sources, options).retrieve(link(Question(text), sources.graph), k)
    check(found, k)
    return found


def test_the_members_of_the_best_community_are_ranked_by_their_standing_in_it(sources):
    found = ask(sources, "birds of prey hunting in the sky", communities=1)
    assert names(found)[0] == "Kestrel"
    assert names(found)[-1] == "Hobby"
    share = {"Kestrel": 3 / 3, "Falcon": 2 / 3, "Merlin": 2 / 3, "Hobby": 1 / 3}
    assert {one.record.label: one.score for one in found.entities} == pytest.approx(
        {name: 0.25 + 0.5 * part for name, part in share.items()}, abs=1e-5
    )
    assert triples(found)[0] in [("Kestrel", "kin of", "Falcon"), ("Kestrel", "kin of", "Merlin")]
    assert {chunk.record.text for chunk in found.chunks} == {f"{h} {r} {t}." for h, r, t in triples(found)}


def test_a_member_that_the_question_names_comes_first_and_those_it_is_linked_to_next(sources):
    found = ask(sources, "birds of prey in the sky, is Hobby one?", communities=1)
    assert names(found)[0] == "Hobby"
    assert set(names(found)[1:]) == {"Kestrel", "Falcon", "Merlin"}
    assert names(found)[1] == "Kestrel"


def test_the_relation_that_the_question_asks_for_comes_first(sources):
    found = ask(sources, "who is smaller among the birds of prey in the sky", communities=1)
    assert triples(found)[0] == ("Kestrel", "smaller than", "Hobby")
    assert found.chunks[0].record.text == "Kestrel smaller than Hobby."


def test_a_community_that_holds_a_better_one_is_passed_over(sources):
    found = ask(sources, "birds of prey hunting in the sky", communities=2)
    assert set(names(found)) == {*BIRDS, *FISH}
    best = {one.record.label: one.score for one in found.entities}
    assert best["Pike"] < best["Kestrel"]
    of_all = ask(sources, "animals hunting everywhere", communities=3)
    assert {one.record.label: one.score for one in of_all.entities}["Kestrel"] == pytest.approx(0.75, abs=1e-5)


def test_a_level_keeps_to_its_communities(sources):
    assert set(names(ask(sources, "birds hunting in the sky", level=1, communities=1))) == {*BIRDS, *FISH}
    assert set(names(ask(sources, "animals everywhere, birds", level=0, communities=1))) == set(BIRDS)
    with pytest.raises(NotBuiltError, match="no community of level 7; the graph has levels 0, 1"):
        ask(sources, "birds in the sky", level=7)


def test_many_nearer_vectors_of_communities_that_are_gone_do_not_hide_one(sources):
    stale = {f"gone {n}": "animals everywhere" for n in range(40)}
    crowded = Sources(sources.graph, sources.texts, _index(SUMMARIES | stale), sources.embedder)
    assert set(names(ask(crowded, "animals everywhere", level=1, communities=1))) == {*BIRDS, *FISH}


def test_hops_lead_out_of_the_community(sources):
    question = "fish of rivers in the lake"
    assert set(names(ask(sources, question, communities=1))) == set(FISH)
    assert names(ask(sources, question, communities=1, hops=1))[-1] == "Heron"
    assert names(ask(sources, question, communities=1, hops=2))[-2:] == ["Heron", "Alder"]


def test_of_a_large_community_those_with_most_relations_count(sources, monkeypatch):
    monkeypatch.setattr(community_module, "_MOST_MEMBERS", 3)
    retriever = make_retriever("community", sources, {"communities": 1})
    question = link(Question("birds of prey hunting in the sky"), sources.graph)
    assert set(names(retriever.retrieve(question, 10))) == {"Kestrel", "Falcon", "Merlin"}
    question = link(Question("birds of prey hunting in the sky: Hobby"), sources.graph)
    assert {"Kestrel", "Hobby"} < set(names(retriever.retrieve(question, 10)))


def test_without_an_index_it_says_what_to_build_first(sources):
    for vectors in (MemoryVectorStore(), _index({})):
        with pytest.raises(NotBuiltError, match=r"\(retrico community; asset community_embeddings\)"):
            ask(Sources(sources.graph, sources.texts, vectors, sources.embedder), "birds")


def test_entities_that_all_stand_alone_are_an_empty_result(tmp_path):
    with opened("memory", tmp_path) as (graph, texts):
        tell(graph, texts, [("Ana", "met", "Bo", 0.5)])
        graph.replace_communities([Community(entity.id, 0, (entity.id,)) for entity in graph.entities()])
        assert ask(Sources(graph, texts, _index({}), WordEmbedder()), "Ana") == Subgraph()


def test_vectors_of_communities_that_are_gone_ask_for_a_new_build(sources):
    gone = Sources(sources.graph, sources.texts, _index({"old": "birds"}), sources.embedder)
    with pytest.raises(NotBuiltError, match="the graph holds none of the communities"):
        ask(gone, "birds")


def test_an_index_of_another_model_is_refused(sources):
    class Other(WordEmbedder):
        name = "other-model"

    with pytest.raises(IndexMismatchError, match=r"'hashed-words'.*'other-model'"):
        ask(Sources(sources.graph, sources.texts, sources.vectors, Other()), "birds")


def test_options_out_of_range_are_refused(sources):
    for options in ({"hops": -1}, {"communities": 0}, {"level": -1}, {"depth": 1}):
        with pytest.raises(SettingsError, match=f"community.{next(iter(options))}"):
            ask(sources, "birds", **options)


def test_a_question_that_no_summary_is_like_finds_nothing(sources):
    found = ask(sources, "quantum chromodynamics")
    assert (found.entities, found.relations, found.chunks) == ((), (), ())


@pytest.mark.parametrize("question", ODD_QUESTIONS)
def test_an_odd_question_is_no_error(sources, question):
    ask(sources, question, hops=2)
    ask(sources, question, k=1)
