"""Entities found by the meaning of what the question mentions, in real graphs and a real vector index."""

import numpy as np
import pytest

from resources.errors import IndexMismatchError, NotBuiltError, SettingsError, StoreError
from resources.models.base import Span
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.embeddings.sync import ENTITY_INDEX, sync_index
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.query_stores import GRAPHS, ODD_QUESTIONS, check, id_of, names, opened, tell, triples
from tests.support.query_world import WordEmbedder

FACTS = [
    ("Ana Ruiz", "born in", "Oslo", 0.5),
    ("Ana Ruiz", "works at", "Kestrel Labs", 1.0),
    ("Kestrel Labs", "located in", "Bergen", 1.0),
    ("Bergen", "twin of", "Seattle", 1.0),
    ("Ana Holm", "lives in", "Turku", 1.0),
]


@pytest.fixture(scope="module", params=GRAPHS)
def sources(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp("near")) as (graph, texts):
        tell(graph, texts, FACTS)
        yield Sources(graph, texts, _index(graph), WordEmbedder())


def _index(graph, **more):
    vectors = MemoryVectorStore()
    sync_index(vectors, ENTITY_INDEX, WordEmbedder(), {entity.id: entity.label for entity in graph.entities()} | more)
    return vectors


def mention(question, text):
    start = question.index(text)
    return Span(start, start + len(text), text, "thing", 0.9)


def ask(sources, text, *mentioned, k=10, **options):
    question = link(Question(text, tuple(mention(text, one) for one in mentioned)), sources.graph)
    found = make_retriever("entity_embedding", sources, options).retrieve(question, k)
    check(found, k)
    return found


def test_a_mention_finds_the_entities_that_are_called_alike(sources):
    found = ask(sources, "Where does Dr Ana Ruiz work?", "Dr Ana Ruiz", hops=0)
    assert names(found) == ["Ana Ruiz", "Ana Holm"]
    assert [one.score for one in found.entities] == pytest.approx([2 / np.sqrt(6), 1 / np.sqrt(6)], abs=1e-5)


def test_what_is_around_them_scores_half_a_hop_further(sources):
    found = ask(sources, "Ana Ruiz works where?", "Ana Ruiz", min_score=0.9, hops=2)
    assert names(found) == ["Ana Ruiz", "Kestrel Labs", "Oslo", "Bergen"]
    assert [one.score for one in found.entities] == pytest.approx([1, 0.5, 0.5, 0.25], abs=1e-6)
    assert triples(found)[0] == ("Ana Ruiz", "works at", "Kestrel Labs")
    assert triples(found)[-1] == ("Ana Ruiz", "born in", "Oslo")
    assert found.chunks[0].record.text == "Ana Ruiz works at Kestrel Labs."


def test_the_relation_that_the_question_asks_for_comes_first(sources):
    found = ask(sources, "Where was Ana Ruiz born?", "Ana Ruiz")
    assert triples(found)[0] == ("Ana Ruiz", "born in", "Oslo")
    assert found.chunks[0].record.text == "Ana Ruiz born in Oslo."


def test_without_mentions_the_names_that_the_graph_knows_are_looked_up(sources):
    found = ask(sources, "Which one is Oslo, which Turku?", hops=0)
    assert sorted(names(found)) == ["Oslo", "Turku"]
    assert [one.score for one in found.entities] == pytest.approx([1, 1], abs=1e-6)


def test_without_names_the_whole_question_is_looked_up(sources):
    question = Question("holm labs")
    found = make_retriever("entity_embedding", sources, {"hops": 0}).retrieve(question, 5)
    assert set(names(found)) == {"Ana Holm", "Kestrel Labs"}


def test_per_mention_and_the_floor_bound_what_is_found(sources):
    assert names(ask(sources, "Ana?", "Ana", hops=0, per_mention=1)) in (["Ana Ruiz"], ["Ana Holm"])
    assert names(ask(sources, "Ana?", "Ana", hops=0, min_score=0.8)) == []
    both = ask(sources, "Ana Ruiz and Ana Holm", "Ana Ruiz", "Ana Holm", hops=0, per_mention=1)
    assert set(names(both)) == {"Ana Ruiz", "Ana Holm"}


def test_an_entity_that_left_the_graph_is_passed_over(sources):
    stale = Sources(sources.graph, sources.texts, _index(sources.graph, gone="Ana Ruiz"), sources.embedder)
    found = ask(stale, "Ana Ruiz?", "Ana Ruiz", hops=0, min_score=0.9)
    assert [one.record.id for one in found.entities] == [id_of("Ana Ruiz")]
    only_gone = MemoryVectorStore()
    sync_index(only_gone, ENTITY_INDEX, WordEmbedder(), {"gone": "Ana Ruiz"})
    found = ask(Sources(sources.graph, sources.texts, only_gone, sources.embedder), "Ana Ruiz?", "Ana Ruiz")
    assert (found.entities, found.relations, found.chunks) == ((), (), ())


def test_k_cuts_and_the_ends_of_relations_stay(sources):
    for k in (1, 2):
        assert len(ask(sources, "Where was Ana Ruiz born?", "Ana Ruiz", k=k, hops=2).relations) == k


def test_without_an_index_the_remedy_is_named(sources):
    empty = Sources(sources.graph, sources.texts, MemoryVectorStore(), sources.embedder)
    with pytest.raises(NotBuiltError, match="build entity_embeddings first"):
        ask(empty, "Ana Ruiz?")


def test_an_index_of_another_model_is_refused(sources):
    class Other(WordEmbedder):
        name = "other-model"

    with pytest.raises(IndexMismatchError, match=r"'hashed-words'.*'other-model'"):
        ask(Sources(sources.graph, sources.texts, sources.vectors, Other()), "Ana Ruiz?")


def test_options_out_of_range_are_refused(sources):
    for options in ({"hops": -1}, {"per_mention": 0}, {"min_score": 2}, {"depth": 1}):
        with pytest.raises(SettingsError, match=f"entity_embedding.{next(iter(options))}"):
            ask(sources, "Ana?", **options)


def test_names_that_could_not_be_looked_up_fail_the_strategy_unless_there_are_mentions(sources):
    retriever = make_retriever("entity_embedding", sources, {"hops": 0})
    with pytest.raises(StoreError, match="graph is down"):
        retriever.retrieve(Question("Oslo", fault="graph is down"), 3)
    mentions = (mention("Oslo", "Oslo"),)
    assert names(retriever.retrieve(Question("Oslo", mentions, fault="graph was down"), 3)) == ["Oslo"]


@pytest.mark.parametrize("question", ODD_QUESTIONS)
def test_an_odd_question_is_no_error(sources, question):
    ask(sources, question, hops=2)
    ask(sources, question, k=1)


@pytest.mark.parametrize("question", ["", " \n", "🤔", "?"])
def test_a_question_of_nothing_finds_nothing(sources, question):
    found = ask(sources, question, min_score=-1)
    assert (found.entities, found.relations, found.chunks) == ((), (), ())
