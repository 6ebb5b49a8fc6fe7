"""Strategy "hybrid": three rankings become one, and every hit says which of them found it."""

import math
from itertools import pairwise

import pytest

from resources.errors import NotBuiltError, SettingsError
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.providers.base import GraphProvider
from retrico_assets.query.providers.live_triples import KnowledgeTools, KnowledgeToolsProvider
from retrico_assets.query.providers.project_graph import ProjectGraphProvider
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.retrievers.hybrid import HybridOptions, HybridRetriever, fuse_streams
from retrico_assets.query.sources import Sources
from retrico_assets.testing.retriever import ODD_QUESTIONS
from tests.support.query_world import small_world

QUESTION = "Where was Albert Einstein born?"
BORN = "Albert Einstein was born in Ulm."


class Fixed(GraphProvider):
    """A provider that finds what it is given."""

    name = "fixed"

    def __init__(self, found):
        self._found = found

    @classmethod
    def claims(cls, settings):
        return True

    @classmethod
    def open(cls, settings, sources):
        raise NotImplementedError

    def rank(self, question, k):
        return self._found


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = small_world(tmp_path_factory.mktemp("hybrid"))
    yield made
    made.texts.close()


def retriever(world, *providers, min_score=0.0):
    sources = Sources(texts=world.texts, vectors=world.vectors, embedder=world.embedder, graph=world.graph)
    made = HybridRetriever(sources, HybridOptions(min_score=min_score))
    made._providers = providers  # the rule of providers has tests of its own
    return made


def store_provider(world):
    return ProjectGraphProvider(Sources(graph=world.graph, texts=world.texts))


def said(found):
    return {one.record.text: one.record.metadata for one in found.chunks}


def facts(found):
    labels = {one.record.id: one.record.label for one in found.entities}
    return [(labels[one.record.head_id], one.record.label, labels[one.record.tail_id]) for one in found.relations]


# The figures


def scores(**streams):
    return {id: hit.score for id, hit in fuse_streams({name: list(ids) for name, ids in streams.items()}).items()}


def test_first_in_every_stream_is_one():
    assert scores(bm25="a", vector="a", graph="a") == {"a": 1.0}
    assert scores(bm25="a", vector="a") == {"a": 1.0}
    assert scores(bm25="a") == {"a": 1.0}


def test_first_in_one_of_three_is_a_third():
    found = scores(bm25="a", vector="b", graph="c")
    assert {id: round(score, 3) for id, score in found.items()} == {"a": 0.333, "b": 0.333, "c": 0.333}
    assert list(found) == ["a", "b", "c"]


def test_an_empty_stream_does_not_count():
    assert scores(bm25="ab", vector="ab", graph="") == scores(bm25="ab", vector="ab")
    assert scores(bm25="a", vector="b", graph="")["a"] == 0.5
    assert scores(bm25="", vector="", graph="") == {}


def test_a_hit_scores_the_scaled_sum_over_its_ranks():
    found = scores(bm25="abc", vector="cab", graph="db")
    assert found["b"] == pytest.approx((1 / 62 + 1 / 63 + 1 / 62) * 61 / 3)
    assert found["a"] == pytest.approx((1 / 61 + 1 / 62) * 61 / 3)
    assert list(found) == ["b", "a", "c", "d"]


def test_a_repeated_hit_counts_where_it_stands_first():
    assert scores(bm25="aab")["b"] == pytest.approx(61 / 62)


# The retriever


def test_a_chunk_that_all_streams_rank_first_scores_one_and_names_them(world):
    found = retriever(world, store_provider(world)).retrieve(link(Question(QUESTION), world.graph), 10)
    assert found.chunks[0].record.text == BORN
    assert found.chunks[0].score == 1.0
    assert found.chunks[0].record.metadata == {
        "retrievalStreams": ["bm25", "vector", "graph"],
        "graphStream": "fused",
        "source": "graph",
    }
    assert len({one.record.id for one in found.chunks}) == len(found.chunks)
    assert facts(found)[0] == ("Albert Einstein", "born in", "Ulm")


def test_without_a_provider_two_streams_are_fused_and_the_graph_is_skipped(world):
    found = retriever(world).retrieve(Question(QUESTION), 10)
    assert found.chunks[0].score == 1.0
    assert said(found)[BORN] == {"retrievalStreams": ["bm25", "vector"], "graphStream": "skipped"}
    by_meaning = [one for one in found.chunks if one.record.metadata["retrievalStreams"] == ["vector"]]
    assert by_meaning
    assert all(one.score <= 0.5 for one in by_meaning)


def test_a_graph_stream_that_finds_nothing_is_fused_and_not_counted(world):
    empty = retriever(world, Fixed(Subgraph())).retrieve(Question(QUESTION), 10)
    without = retriever(world).retrieve(Question(QUESTION), 10)
    assert [(one.record.id, one.score) for one in empty.chunks] == [(one.record.id, one.score) for one in without.chunks]
    assert said(empty)[BORN] == {"retrievalStreams": ["bm25", "vector"], "graphStream": "fused"}


def test_a_live_triple_is_a_hit_of_its_own(world):
    tools = KnowledgeTools()
    tools.kg_add_triple("Wolpertinger", "seen near", "Ulm")
    found = retriever(world, KnowledgeToolsProvider(Sources())).retrieve(Question("Was a wolpertinger seen near Ulm?"), 10)
    (live,) = [one for one in found.relations if one.record.label == "seen near"]
    assert live.score == pytest.approx(1 / 3)
    assert live.record.properties == {"source": "knowledge-tools", "retrievalStreams": ["graph"], "graphStream": "fused"}
    assert ("Wolpertinger", "seen near", "Ulm") in facts(found)
    sources = {one.record.label: one.record.properties.get("source") for one in found.entities}
    assert sources["Wolpertinger"] == "knowledge-tools"
    assert {tuple(one.record.metadata["retrievalStreams"]) for one in found.chunks} <= {
        ("bm25",),
        ("vector",),
        ("bm25", "vector"),
    }
    assert tools.triples()


def test_a_question_without_ascii_tokens_leaves_live_triples_out(world):
    tools = KnowledgeTools()
    tools.kg_add_triple("東京", "has", "Wolpertinger")
    found = retriever(world, KnowledgeToolsProvider(Sources())).retrieve(Question("東京はどこですか"), 10)
    assert "has" not in [one.record.label for one in found.relations]
    assert found.chunks[0].record.text == "東京は日本の首都です。"
    assert found.chunks[0].record.metadata["graphStream"] == "fused"
    assert tools.triples()


@pytest.mark.parametrize(("min_score", "kept"), [(0.0, True), (0.333, True), (0.334, False)])
def test_min_score_is_of_the_scaled_score(world, min_score, kept):
    only_graph = Chunk("only-graph", "doc:x", 0, "Nobody else finds this.", 0, 23)
    provider = Fixed(Subgraph(chunks=(Scored(only_graph, 0.0001),)))
    found = retriever(world, provider, min_score=min_score).retrieve(Question(QUESTION), 50)
    assert ("only-graph" in [one.record.id for one in found.chunks]) is kept
    assert all(one.score >= min_score for one in found.chunks)
    assert BORN in said(found)


def test_a_live_triple_below_min_score_is_left_out(world):
    tools = KnowledgeTools()
    tools.kg_add_triple("Wolpertinger", "seen near", "Ulm")
    question = Question("Was a wolpertinger seen near Ulm?")
    found = retriever(world, KnowledgeToolsProvider(Sources()), min_score=0.4).retrieve(question, 10)
    assert "seen near" not in [one.record.label for one in found.relations]
    assert tools.triples()


def test_chunks_and_relations_without_a_chunk_share_the_ranks_of_the_graph_stream(world):
    head, tail = Entity("h", "Head", "head", "t"), Entity("t", "Tail", "tail", "t")
    chunk = Chunk("graph-chunk", "doc:x", 0, "Words.", 0, 6)
    loose = Relation("loose", "h", "knows", "t", 1.0, ())
    stated = Relation("stated", "h", "meets", "t", 1.0, ("graph-chunk",))
    provider = Fixed(
        Subgraph((Scored(head, 1.0), Scored(tail, 1.0)), (Scored(stated, 0.95), Scored(loose, 0.9)), (Scored(chunk, 0.5),))
    )
    found = retriever(world, provider).retrieve(Question(QUESTION), 50)
    place = {one.record.id: one.score for one in (*found.chunks, *found.relations)}
    assert place["loose"] == pytest.approx(1 / 3)
    assert place["graph-chunk"] == pytest.approx(61 / 62 / 3)
    assert place["stated"] == place["graph-chunk"]
    assert said(found)["Words."] == {"retrievalStreams": ["graph"], "graphStream": "fused", "source": "fixed"}


def test_a_relation_whose_ends_nobody_knows_is_left_out(world):
    loose = Relation("loose", "unknown", "knows", "unknown too", 1.0, ())
    found = retriever(world, Fixed(Subgraph(relations=(Scored(loose, 1.0),)))).retrieve(Question(QUESTION), 10)
    assert "loose" not in [one.record.id for one in found.relations]


def test_without_a_graph_store_there_are_chunks_alone(world):
    sources = Sources(texts=world.texts, vectors=world.vectors, embedder=world.embedder)
    found = make_retriever("hybrid", sources).retrieve(Question(QUESTION), 3)
    assert found.chunks[0].record.text == BORN
    assert found.chunks[0].record.metadata["graphStream"] == "skipped"
    assert (found.entities, found.relations) == ((), ())


@pytest.mark.parametrize("k", [1, 3])
def test_k_cuts_each_list_and_the_ends_of_relations_stay(world, k):
    found = make_retriever("hybrid", Sources(**world.sources)).retrieve(Question(QUESTION), k)
    assert len(found.chunks) <= k
    assert len(found.relations) <= k
    ends = {end for one in found.relations for end in (one.record.head_id, one.record.tail_id)}
    assert ends <= {one.record.id for one in found.entities}
    assert len(found.entities) <= k + 2 * len(found.relations)


@pytest.mark.parametrize("question", ODD_QUESTIONS)
def test_an_odd_question_is_no_error(world, question):
    tools = KnowledgeTools()
    tools.kg_add_triple("Einstein", "i", "the of")
    providers = (store_provider(world), KnowledgeToolsProvider(Sources()))
    for k in (1, 10):
        found = retriever(world, *providers).retrieve(link(Question(question), world.graph), k)
        for ranking in (found.entities, found.relations, found.chunks):
            assert len({one.record.id for one in ranking}) == len(ranking)
            assert all(math.isfinite(one.score) and 0 <= one.score <= 1 for one in ranking)
        for ranking in (found.relations, found.chunks):
            assert all(one.score >= other.score for one, other in pairwise(ranking))
    assert tools.triples()


@pytest.mark.parametrize("question", ["", " \n", "🤔", "?"])
def test_a_question_of_nothing_finds_nothing(world, question):
    assert retriever(world, store_provider(world)).retrieve(Question(question), 10) == Subgraph()


@pytest.mark.parametrize("options", [{"min_score": -0.1}, {"min_score": 1.1}, {"minscore": 0.5}, {"min_score": float("nan")}])
def test_options_that_can_not_be_are_refused(world, options):
    with pytest.raises(SettingsError, match=r"hybrid\."):
        make_retriever("hybrid", Sources(**world.sources), options)


def test_without_vectors_the_remedy_is_named(world):
    sources = Sources(**world.sources | {"vectors": MemoryVectorStore()})
    with pytest.raises(NotBuiltError, match="build chunk_embeddings first"):
        make_retriever("hybrid", sources).retrieve(Question(QUESTION), 3)


def test_a_graph_that_fails_is_an_error_and_no_skipped_stream(world):
    class Broken(Fixed):
        def rank(self, question, k):
            raise NotBuiltError("no graph was built")

    with pytest.raises(NotBuiltError, match="no graph was built"):
        retriever(world, Broken(None)).retrieve(Question(QUESTION), 3)
