"""Strategy "keyword": both of its sources, with and without what is around the chunks."""

import pytest

from resources.errors import SettingsError
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import check_options, make_retriever
from retrico_assets.query.sources import Sources
from tests.support.query_world import INJECTION, WordEmbedder, empty_graph, fill

SOURCES = ["texts", "graph"]


@pytest.fixture(scope="module", params=["memory", "falkordb"])
def filled(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keyword")
    with empty_graph(request.param, folder) as graph, SqliteTextStore(folder / "texts.sqlite") as texts:
        yield fill(graph, texts, MemoryVectorStore(), WordEmbedder())


def retrieve(world, text, k=10, **options):
    return make_retriever("keyword", Sources(**world.sources), options).retrieve(Question(text), k)


def texts(found):
    return [one.record.text for one in found.chunks]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "question",
    [
        "Where was Einstein born?",
        "Einstein's birth: born where?!",
        "born: Ulm",
        "(born) AND Ulm* OR NOT ^x",
        'born-in-Ulm, "Einstein"',
        "WO? ＢＯＲＮ ＵＬＭ",
    ],
)
def test_a_question_is_taken_as_it_is_written(filled, source, question):  # B28
    assert texts(retrieve(filled, question, source=source))[0] == "Albert Einstein was born in Ulm."


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("首都", "東京は日本の首都です。"),
        ("istanbul nerede", "İstanbul, Türkiye'nin en büyük kentidir."),
        ("İSTANBUL", "İstanbul, Türkiye'nin en büyük kentidir."),
        ("strasse", "Straße AG sells lamps."),
        ("C++ or what?", "Bjarne Stroustrup created C++."),
    ],
)
def test_other_scripts_and_signs_are_found(filled, source, question, text):
    assert texts(retrieve(filled, question, source=source))[0] == text


@pytest.mark.parametrize("source", SOURCES)
def test_with_expansion_the_chunks_bring_entities_and_relations(filled, source):  # C25
    found = retrieve(filled, "Where was Einstein born?", source=source)
    assert {"Albert Einstein", "Ulm"} <= {one.record.label for one in found.entities}
    assert found.relations[0].record.label == "born in"
    assert len({one.record.id for one in found.entities}) == len(found.entities)


@pytest.mark.parametrize("source", SOURCES)
def test_without_expansion_there_are_chunks_alone(filled, source):  # C25
    found = retrieve(filled, "Where was Einstein born?", source=source, expand=False)
    assert texts(found)[0] == "Albert Einstein was born in Ulm."
    assert (found.entities, found.relations) == ((), ())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("k", [1, 2])
def test_k_bounds_the_chunks(filled, source, k):
    assert len(retrieve(filled, "Einstein Ulm born", k=k, source=source).chunks) == k


@pytest.mark.parametrize("source", SOURCES)
def test_a_text_that_gives_orders_is_only_found(filled, source):  # OPEN-50
    before = filled.graph.stats()
    assert INJECTION in texts(retrieve(filled, INJECTION, source=source))[0]
    retrieve(filled, "x'}) MATCH (n) DETACH DELETE n //", source=source)
    retrieve(filled, '"); DROP TABLE chunks; --', source=source)
    assert filled.graph.stats() == before
    assert filled.texts.count() == (11, 13)


def test_an_unknown_source_is_refused():
    with pytest.raises(SettingsError, match=r"keyword\.source is .* 'texts' or 'graph'"):
        check_options("keyword", {"source": "web"})
