"""Each strategy against real stores: the conformance suite, what it finds and in which order."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from resources.errors import IndexMismatchError, NotBuiltError, SettingsError, StoreError
from resources.records import Community
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.embeddings.sync import COMMUNITY_INDEX, ENTITY_INDEX, sync_index
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import check_limits, check_strategies, known_strategies, make_retriever, retriever_class
from retrico_assets.query.retrievers.ranking import fit, words_of
from retrico_assets.query.sources import Sources
from retrico_assets.testing.retriever import RetrieverConformance
from tests.support.llm_stub import calls, chat_model, says, scripted_llm
from tests.support.models import sentence_embedder
from tests.support.query_world import WordEmbedder, documents, empty_graph, fill, small_world

STRATEGIES = known_strategies()
BY_MEANING = ("chunk_embedding", "community", "entity_embedding", "hybrid", "pagerank")
TOLD_BY_A_MODEL = {"tool"}
"""What these find is what a scripted model looks up, whatever is asked. They need a store with a query language."""
ASK_FOR_SIGNS = TOLD_BY_A_MODEL | {"chunk_embedding", "pagerank"}
"""To a model a question without a word may mean something."""


@pytest.fixture(scope="module", params=["memory", "falkordb"])
def sources(request, tmp_path_factory):
    """The small world with all that the strategies draw on, but a language model."""
    folder = tmp_path_factory.mktemp("world")
    with empty_graph(request.param, folder) as graph, SqliteTextStore(folder / "texts.sqlite") as texts:
        made = fill(graph, texts, MemoryVectorStore(), WordEmbedder())
        names = {entity.id: entity.label for entity in graph.entities()}
        communities = list(_communities())
        graph.replace_communities(communities)
        sync_index(made.vectors, ENTITY_INDEX, made.embedder, names)
        sync_index(made.vectors, COMMUNITY_INDEX, made.embedder, {one.id: one.summary for one in communities})
        yield Sources(**made.sources, cache=folder / "cache")


def _communities():
    """For each document what it is the first to name; its text is the summary."""
    taken = set()
    for said in documents():
        members = {mention.entity_id for mention in said.mentions} - taken
        taken |= members
        if members:
            yield Community(said.document.id, 0, tuple(sorted(members)), None, said.document.title, said.document.text)


@contextmanager
def opened(strategy, sources, **options):
    """The retriever; with a model that looks Albert Einstein and his relations up, if it needs one."""
    if "llm" not in retriever_class(strategy).needs:
        yield make_retriever(strategy, sources, options)
        return
    (einstein,) = [one.id for one in sources.graph.find_entities(keys=["albert einstein"])]
    rounds = [calls(("search_entity", {"label": "Albert Einstein"})), calls(("get_entity_relations", {"entity_id": einstein}))]
    with scripted_llm(*rounds, says("It is in [einstein.txt#0].")) as stub:
        llm = chat_model(stub.base_url, "scripted", max_retries=0)
        try:
            yield make_retriever(strategy, replace(sources, llm=llm), options)
        finally:
            llm.close()


def retrieve(sources, strategy, text, k=10, **options):
    if strategy in TOLD_BY_A_MODEL and type(sources.graph).__name__ == "MemoryGraphStore":
        pytest.skip(f"{strategy} needs a store with a query language")
    question = link(Question(text), sources.graph)
    with opened(strategy, sources, **options) as retriever:
        return retriever.retrieve(question, k)


def triples(found):
    names = {one.record.id: one.record.label for one in found.entities}
    return [(names[one.record.head_id], one.record.label, names[one.record.tail_id]) for one in found.relations]


def labels(found):
    return [one.record.label for one in found.entities]


def texts(found):
    return [one.record.text for one in found.chunks]


class TestConformance(RetrieverConformance):
    """Every registered strategy, on each graph store."""

    @pytest.fixture(params=STRATEGIES)
    def retriever(self, request, sources):
        before = sources.graph.stats()
        yield request.param, sources
        assert sources.graph.stats() == before

    def retrieve(self, retriever, text, k=10):
        strategy, sources = retriever
        return retrieve(sources, strategy, text, k)

    def strategy(self, retriever):
        return retriever_class(retriever[0])


@pytest.mark.parametrize(
    ("strategy", "question"),
    [(name, text) for name in STRATEGIES for text in ("🤔", "?") if name not in ASK_FOR_SIGNS],
)
def test_a_question_without_a_word_finds_nothing(sources, strategy, question):
    found = retrieve(sources, strategy, question)
    assert (found.entities, found.relations, found.chunks) == ((), (), ())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "question", ["Where was Albert Einstein born?", "born: Albert Einstein, Ulm!!!", "¿Albert Einstein born? 🤔"]
)
def test_every_strategy_finds_the_relation_and_its_chunk(sources, strategy, question):
    found = retrieve(sources, strategy, question)
    assert ("Albert Einstein", "born in", "Ulm") in triples(found)
    # To a walk over the graph a chunk that mentions the same two and nothing else is as near.
    assert "Albert Einstein was born in Ulm." in texts(found)[: 2 if strategy == "pagerank" else 1]
    assert {"Albert Einstein", "Ulm"} <= set(labels(found))


def test_the_relation_that_is_asked_for_is_first(sources):
    for question, triple in {
        "Where was Albert Einstein born?": ("Albert Einstein", "born in", "Ulm"),
        "What is the birthplace of Albert Einstein?": ("Albert Einstein", "born in", "Ulm"),
        "Where did Albert Einstein work?": ("Albert Einstein", "works at", "ETH Zurich"),
        "Where did Albert Einstein move?": ("Albert Einstein", "moved to", "Princeton"),
        "Where is the place located in which Albert Einstein was?": ("Ulm", "located in", "Germany"),
    }.items():
        assert triples(retrieve(sources, "entity", question))[0] == triple


def test_hops_bound_what_is_found(sources):
    question = "Tell me of Albert Einstein"
    assert labels(retrieve(sources, "entity", question, hops=0)) == ["Albert Einstein"]
    assert set(labels(retrieve(sources, "entity", question, hops=1))) == {"Albert Einstein", "Ulm", "ETH Zurich", "Princeton"}
    far = retrieve(sources, "entity", question, hops=2)
    assert labels(far)[-1] == "Germany"
    assert [one.score for one in far.entities] == pytest.approx([1, 1 / 2, 1 / 2, 1 / 2, 1 / 3])


def test_an_entity_without_relations_still_has_its_chunks(sources):
    found = retrieve(sources, "entity", "İstanbul?")
    assert labels(found) == ["İstanbul"]
    assert texts(found) == ["İstanbul, Türkiye'nin en büyük kentidir."]


def test_sharing_a_chunk_is_no_relation(sources):
    assert "Einstein" not in labels(retrieve(sources, "entity", "Germany"))


def test_namesakes_all_count_and_other_names_do_not(sources):
    assert sorted(one.record.type for one in retrieve(sources, "entity", "Paris").entities) == ["location", "person"]


def test_cjk_names_are_found(sources):
    found = retrieve(sources, "entity", "東京はどこですか")
    assert triples(found) == [("東京", "capital of", "日本")]
    assert texts(found) == ["東京は日本の首都です。"]
    assert texts(retrieve(sources, "keyword", "首都"))[0] == "東京は日本の首都です。"


def test_chunks_bring_only_what_they_state(sources):
    found = retrieve(sources, "keyword", "ETH Zurich", k=1)
    assert triples(found) == [("Albert Einstein", "works at", "ETH Zurich")]


def test_a_relation_that_another_chunk_states_is_not_brought(sources):
    found = retrieve(sources, "keyword", "remembers", k=1)
    assert texts(found) == ["Ulm remembers Albert Einstein."]
    assert len(found.entities) == 1
    assert found.relations == ()


def test_nearer_relations_come_first(sources):
    assert triples(retrieve(sources, "entity", "Tell me of Albert Einstein"))[-1] == ("Ulm", "located in", "Germany")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_chunk_that_left_the_text_store_is_passed_over(sources, strategy, tmp_path):
    with SqliteTextStore(tmp_path / "texts.sqlite") as fewer:
        corpus = [one for one in documents() if one.document.source != "einstein.txt"]
        fewer.put_documents([one.document for one in corpus])
        fewer.replace_chunks({one.document.id: one.chunks for one in corpus})
        found = retrieve(replace(sources, texts=fewer, cache=None), strategy, "Where was Albert Einstein born?")
    assert "Albert Einstein was born in Ulm." not in texts(found)


@pytest.mark.parametrize(
    ("strategy", "remedy"),
    [
        ("chunk_embedding", r"build chunk_embeddings first \(retrico build\)"),
        ("entity_embedding", "build entity_embeddings first"),
        ("community", "detect and embed communities first"),
        ("hybrid", "build chunk_embeddings first"),
        ("pagerank", "build .*_embeddings first"),
    ],
)
def test_without_an_index_the_remedy_is_named(sources, strategy, remedy):
    bare = replace(sources, vectors=MemoryVectorStore())
    with pytest.raises(NotBuiltError, match=remedy):
        make_retriever(strategy, bare).retrieve(Question("Where?"), 3)


@pytest.mark.parametrize("strategy", BY_MEANING)
def test_an_index_of_another_model_is_refused(sources, strategy):
    class Other(WordEmbedder):
        name = "other-model"

    with pytest.raises(IndexMismatchError, match=r"'hashed-words'.*'other-model'"):
        make_retriever(strategy, replace(sources, embedder=Other())).retrieve(Question("Where?"), 3)


def test_an_unknown_strategy_lists_the_known():
    with pytest.raises(SettingsError, match=r"'entty'\. Known strategies: chunk_embedding, community, entity, "):
        make_retriever("entty", Sources())
    for wrong in ([], "entity"):
        with pytest.raises(SettingsError, match="Known strategies"):
            check_strategies(wrong)
    assert check_strategies(["keyword", "entity", "keyword"]) == ("keyword", "entity")


def test_a_missing_source_is_named(sources):
    with pytest.raises(SettingsError, match="'chunk_embedding' needs embedder, vectors"):
        make_retriever("chunk_embedding", Sources(graph=sources.graph, texts=sources.texts))


@pytest.mark.parametrize(("top_k", "hops"), [(0, 2), (-1, 2), (10**9, 2), (3, -1), (3, 99)])
def test_numbers_out_of_range_are_refused(top_k, hops):
    with pytest.raises(SettingsError, match=r"must be from"):
        check_limits(top_k, hops)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if "names" in retriever_class(name).needs])
def test_names_that_could_not_be_looked_up_fail_the_strategy(sources, strategy):
    with pytest.raises(StoreError, match="graph is down"):
        make_retriever(strategy, sources).retrieve(Question("Ulm", fault="graph is down"), 3)


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
    world = small_world(tmp_path, sentence_embedder())
    assert texts(retrieve(Sources(**world.sources), "chunk_embedding", "Which physicist had a job at a Swiss university?"))[
        0
    ] == ("Albert Einstein worked at ETH Zurich.")
    world.texts.close()


def test_the_world_is_what_it_says():
    for one in documents():
        assert all(one.document.text[c.start : c.end] == c.text for c in one.chunks)
        assert all(one.document.text[m.mention.start : m.mention.end] == m.mention.text for m in one.mentions)
