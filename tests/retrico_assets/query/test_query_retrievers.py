"""Each strategy against real stores: what it finds, in which order, and what it does with odd questions."""

import math
from itertools import pairwise

import pytest
from query_world import WordEmbedder, documents, small_world

from resources.errors import IndexMismatchError, NotBuiltError, SettingsError, StoreError
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.answer import with_hops
from retrico_assets.query.parse import Question, link
from retrico_assets.query.ranking import fit, words_of
from retrico_assets.query.retriever import RETRIEVERS, Sources, check_limits, check_strategies, make_retriever

STRATEGIES = sorted(RETRIEVERS)
ODD_QUESTIONS = [
    "",
    "   \n\t",
    "?!…",
    "🤔🤷‍♀️",
    "the of and is",
    'Where was "Albert Einstein" born?! (AND) OR NOT NEAR/3 * ^ : -',
    "Einstein's life; C++; 100% & a=b -- '); DROP TABLE chunks",
    "东京はどこですか",
    "İSTANBUL ılık ISPARTA",
    "שלום مرحبا नमस्ते ภาษาไทย",
    "\0\x1b[31m",
    "Einstein " * 3000,
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = small_world(tmp_path_factory.mktemp("world"))
    yield made
    made.texts.close()


def retrieve(world, strategy, text, k=10, hops=2):
    question = link(Question(text), world.graph)
    return make_retriever(strategy, Sources(**world.sources), with_hops(strategy, hops)).retrieve(question, k)


def triples(found):
    names = {one.record.id: one.record.label for one in found.entities}
    return [(names[one.record.head_id], one.record.label, names[one.record.tail_id]) for one in found.relations]


def labels(found):
    return [one.record.label for one in found.entities]


def texts(found):
    return [one.record.text for one in found.chunks]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("question", ODD_QUESTIONS)
def test_an_odd_question_is_no_error(world, strategy, question):
    found = retrieve(world, strategy, question)
    for ranking in (found.entities, found.relations, found.chunks):
        ids = [one.record.id for one in ranking]
        assert len(set(ids)) == len(ids)
        assert all(math.isfinite(one.score) for one in ranking)
        assert all(one.score >= other.score for one, other in pairwise(ranking))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("question", ["", " \n", "🤔", "?"])
def test_a_question_of_nothing_finds_no_entity_by_name_or_word(world, strategy, question):
    found = retrieve(world, strategy, question)
    if strategy != "chunk_embedding" or not question.strip():
        assert (found.entities, found.relations, found.chunks) == ((), (), ())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "question", ["Where was Albert Einstein born?", "born: Albert Einstein, Ulm!!!", "¿Albert Einstein born? 🤔"]
)
def test_every_strategy_finds_the_relation_and_its_chunk(world, strategy, question):
    found = retrieve(world, strategy, question)
    assert ("Albert Einstein", "born in", "Ulm") in triples(found)
    assert texts(found)[0] == "Albert Einstein was born in Ulm."
    assert {"Albert Einstein", "Ulm"} <= set(labels(found))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("k", [1, 2])
def test_k_cuts_each_list_and_the_ends_of_relations_stay(world, strategy, k):
    found = retrieve(world, strategy, "Where was Albert Einstein born?", k=k)
    assert len(found.relations) <= k
    assert len(found.chunks) <= k
    ends = {end for one in found.relations for end in (one.record.head_id, one.record.tail_id)}
    assert ends <= {one.record.id for one in found.entities}
    assert len(found.entities) <= k + 2 * len(found.relations)


def test_the_relation_that_is_asked_for_is_first(world):
    for question, triple in {
        "Where was Albert Einstein born?": ("Albert Einstein", "born in", "Ulm"),
        "What is the birthplace of Albert Einstein?": ("Albert Einstein", "born in", "Ulm"),
        "Where did Albert Einstein work?": ("Albert Einstein", "works at", "ETH Zurich"),
        "Where did Albert Einstein move?": ("Albert Einstein", "moved to", "Princeton"),
        "Where is the place located in which Albert Einstein was?": ("Ulm", "located in", "Germany"),
    }.items():
        assert triples(retrieve(world, "entity", question))[0] == triple


def test_hops_bound_what_is_found(world):
    question = "Tell me of Albert Einstein"
    assert labels(retrieve(world, "entity", question, hops=0)) == ["Albert Einstein"]
    assert set(labels(retrieve(world, "entity", question, hops=1))) == {"Albert Einstein", "Ulm", "ETH Zurich", "Princeton"}
    far = retrieve(world, "entity", question, hops=2)
    assert labels(far)[-1] == "Germany"
    assert [one.score for one in far.entities] == pytest.approx([1, 1 / 2, 1 / 2, 1 / 2, 1 / 3])


def test_an_entity_without_relations_still_has_its_chunks(world):
    found = retrieve(world, "entity", "İstanbul?")
    assert labels(found) == ["İstanbul"]
    assert texts(found) == ["İstanbul, Türkiye'nin en büyük kentidir."]


def test_sharing_a_chunk_is_no_relation(world):
    assert "Einstein" not in labels(retrieve(world, "entity", "Germany"))


def test_namesakes_all_count_and_other_names_do_not(world):
    assert sorted(one.record.type for one in retrieve(world, "entity", "Paris").entities) == ["location", "person"]


def test_cjk_names_are_found(world):
    found = retrieve(world, "entity", "東京はどこですか")
    assert triples(found) == [("東京", "capital of", "日本")]
    assert texts(found) == ["東京は日本の首都です。"]
    assert texts(retrieve(world, "keyword", "首都"))[0] == "東京は日本の首都です。"


def test_chunks_bring_only_what_they_state(world):
    found = retrieve(world, "keyword", "ETH Zurich", k=1)
    assert triples(found) == [("Albert Einstein", "works at", "ETH Zurich")]


def test_a_relation_that_another_chunk_states_is_not_brought(world):
    found = retrieve(world, "keyword", "remembers", k=1)
    assert texts(found) == ["Ulm remembers Albert Einstein."]
    assert len(found.entities) == 1
    assert found.relations == ()


def test_nearer_relations_come_first(world):
    assert triples(retrieve(world, "entity", "Tell me of Albert Einstein"))[-1] == ("Ulm", "located in", "Germany")


def test_a_chunk_that_left_the_text_store_is_passed_over(tmp_path):
    world = small_world(tmp_path)
    world.texts.delete_documents(["doc:einstein.txt"])
    for strategy in STRATEGIES:
        assert "Albert Einstein was born in Ulm." not in texts(retrieve(world, strategy, "Where was Albert Einstein born?"))
    world.texts.close()


def test_without_an_index_the_remedy_is_named(world):
    sources = Sources(**world.sources | {"vectors": MemoryVectorStore()})
    with pytest.raises(NotBuiltError, match=r"build chunk_embeddings first \(retrico build\)"):
        make_retriever("chunk_embedding", sources).retrieve(Question("Where?"), 3)


def test_an_index_of_another_model_is_refused(world):
    class Other(WordEmbedder):
        name = "other-model"

    with pytest.raises(IndexMismatchError, match=r"'hashed-words'.*'other-model'"):
        make_retriever("chunk_embedding", Sources(**world.sources | {"embedder": Other()})).retrieve(Question("Where?"), 3)


def test_an_unknown_strategy_lists_the_known():
    with pytest.raises(SettingsError, match=r"'entty'; known are: chunk_embedding, entity, keyword"):
        make_retriever("entty", Sources())
    for wrong in ([], "entity"):
        with pytest.raises(SettingsError, match="known are"):
            check_strategies(wrong)
    assert check_strategies(["keyword", "entity", "keyword"]) == ("keyword", "entity")


def test_a_missing_source_is_named(world):
    with pytest.raises(SettingsError, match="'chunk_embedding' needs embedder, vectors"):
        make_retriever("chunk_embedding", Sources(graph=world.graph, texts=world.texts))


@pytest.mark.parametrize(("top_k", "hops"), [(0, 2), (-1, 2), (10**9, 2), (3, -1), (3, 99)])
def test_numbers_out_of_range_are_refused(top_k, hops):
    with pytest.raises(SettingsError, match=r"must be from"):
        check_limits(top_k, hops)


def test_names_that_could_not_be_looked_up_fail_the_strategy(world):
    with pytest.raises(StoreError, match="graph is down"):
        make_retriever("entity", Sources(**world.sources)).retrieve(Question("Ulm", fault="graph is down"), 3)


@pytest.mark.parametrize(
    ("label", "question", "share"),
    [
        ("born in", "Where was he born?", 1.0),
        ("place_of_birth", "Where was he born?", 0.5),
        ("date of birth", "When was he born?", 0.5),
        ("located in", "What is its location?", 1.0),
        ("director", "Who directed it?", 1.0),
        ("spouse", "Who is his wife?", 1.0),
        ("member of", "Which memory?", 0.0),
        ("in", "What is in it?", 1.0),
        ("", "What?", 0.0),
        ("born in", "", 0.0),
    ],
)
def test_how_much_of_a_label_a_question_says(label, question, share):
    assert fit(label, words_of(question)) == pytest.approx(share)


@pytest.mark.slow
def test_the_real_embedder_finds_what_is_meant_and_not_said(tmp_path):
    from resources.models.embedder import SentenceTransformerEmbedder

    world = small_world(tmp_path, SentenceTransformerEmbedder("all-MiniLM-L6-v2"))
    assert texts(retrieve(world, "chunk_embedding", "Which physicist had a job at a Swiss university?"))[0] == (
        "Albert Einstein worked at ETH Zurich."
    )
    world.texts.close()


def test_the_world_is_what_it_says():
    for one in documents():
        assert all(one.document.text[c.start : c.end] == c.text for c in one.chunks)
        assert all(one.document.text[m.mention.start : m.mention.end] == m.mention.text for m in one.mentions)
