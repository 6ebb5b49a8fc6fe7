"""Which provider serves a project's graph, and what each of them finds."""

import json
import logging
import os
import sys

import pytest

from resources.errors import GraphCapabilityError, SettingsError, StoreError
from resources.frames import chunks_frame, documents_frame, entities_frame, relations_frame
from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.graph.neo4j.options import Neo4jOptions
from resources.records import Chunk, Document, Mention, RelationMention, Subgraph
from resources.texts import open_text_store
from retrico_assets.query.providers.base import GraphProvider
from retrico_assets.query.providers.in_memory import InMemoryProvider
from retrico_assets.query.providers.live_triples import KnowledgeTools
from retrico_assets.query.providers.neo4j import Neo4jProvider, name_keys, rank_named
from retrico_assets.query.providers.rule import (
    check_retrieval,
    graph_ranking,
    open_providers,
    require_graph,
    serving_providers,
)
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.graph import GraphRetriever
from retrico_assets.query.sources import Sources
from retrico_assets.settings import load_settings
from tests.support.query_world import documents, small_world

MEMORY = {"stores": {"graph": {"backend": "memory"}}}
NO_CORPUS = {"corpus": {"path": None}}
URI = {"neo4j": {"uri": "bolt://graph.invalid:7687"}}


class Mine(GraphProvider):
    """A user's own provider."""

    name = "mine"

    @classmethod
    def claims(cls, settings):
        return True

    @classmethod
    def open(cls, settings, sources):
        return cls()

    def rank(self, question, k):
        return Subgraph()


class Other(Mine):
    name = "other"


MINE, OTHER = f"{__name__}:Mine", f"{__name__}:Other"


@pytest.fixture(autouse=True)
def no_neo4j_uri(monkeypatch):
    monkeypatch.delenv("NEO4J_URI", raising=False)


def check(settings, file=None):
    check_retrieval(settings.retrieval_facts, settings.query.strategies, file)


@pytest.fixture
def project(tmp_path):
    def load(*parts, **retrieval):
        file = tmp_path / "project.yaml"
        content = {"retrieval": retrieval}
        for part in parts:
            content |= part
        file.write_text(json.dumps(content))
        os.utime(file, ns=(load.clock, load.clock))
        load.clock += 10**9
        return load_settings(file)

    load.clock = 10**18
    return load


@pytest.fixture
def world(tmp_path):
    made = small_world(tmp_path)
    yield made
    made.texts.close()


def names(settings):
    return [provider.name for provider in serving_providers(settings.retrieval_facts)]


def facts(found):
    labels = {one.record.id: one.record.label for one in found.entities}
    return [(labels[one.record.head_id], one.record.label, labels[one.record.tail_id]) for one in found.relations]


# The rule


def test_a_corpus_without_a_database_is_served_from_memory(project):
    assert names(project(MEMORY)) == ["in-memory"]


def test_without_a_corpus_live_triples_serve(project):
    assert names(project(MEMORY, NO_CORPUS)) == ["knowledge-tools"]


def test_the_projects_own_database_is_no_default_and_drops_the_defaults(project):
    assert names(project()) == ["falkordb"]
    assert names(project(NO_CORPUS)) == ["falkordb"]


def test_sources_that_name_no_corpus_leave_its_graph_silent(project):
    assert names(project(MEMORY, sources=["knowledge-tools"])) == ["knowledge-tools"]
    assert names(project(sources=["knowledge-tools"])) == ["knowledge-tools"]


def test_live_triples_that_are_named_serve_beside_another_provider(project):
    assert names(project(MEMORY, sources=["corpus", "knowledge-tools"])) == ["in-memory", "knowledge-tools"]
    assert set(names(project(sources=["corpus", "knowledge-tools"]))) == {"falkordb", "knowledge-tools"}
    assert set(names(project(MEMORY, sources=["knowledge-tools"], **URI))) == {"neo4j", "knowledge-tools"}


def test_neo4j_claims_by_its_uri_and_drops_the_defaults(project, monkeypatch):
    assert names(project(MEMORY, **URI)) == ["neo4j"]
    assert names(project(MEMORY, NO_CORPUS, **URI)) == ["neo4j"]
    monkeypatch.setenv("NEO4J_URI", "neo4j://graph.invalid")
    assert names(project(MEMORY)) == ["neo4j"]
    monkeypatch.setenv("NEO4J_URI", " ")
    assert names(project(MEMORY)) == ["in-memory"]


def test_without_its_driver_neo4j_does_not_claim_and_warns_once(project, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "neo4j", None)  # as if it were not installed
    settings = project(MEMORY, neo4j={"uri": "bolt://only-here.invalid"})
    with caplog.at_level(logging.WARNING):
        assert names(settings) == names(settings) == ["in-memory"]
    assert [record.getMessage() for record in caplog.records if "only-here" in record.getMessage()] == [
        "A Neo4j URI is set (bolt://only-here.invalid), but the package neo4j is not installed: Neo4j is not used. Install neo4j."
    ]


def test_without_a_uri_nothing_is_said_of_a_missing_driver(project, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "neo4j", None)
    assert names(project(MEMORY)) == ["in-memory"]
    assert caplog.records == []


def test_two_that_are_no_defaults_are_an_error_that_names_them(project):
    settings = project(**URI)
    for refuse in (serving_providers, require_graph, lambda facts: check_retrieval(facts, None)):
        with pytest.raises(SettingsError, match=r"2 graph providers claim this project: .*graph_providers"):
            refuse(settings.retrieval_facts)


def test_the_error_of_two_claimants_has_a_way_out(project):
    assert names(project(graph_providers=["neo4j"], **URI)) == ["neo4j"]
    assert names(project(graph_providers=["falkordb"], **URI)) == ["falkordb"]


def test_a_users_own_provider_drops_the_defaults(project):
    assert names(project(MEMORY, graph_providers=["in-memory", "knowledge-tools", MINE])) == ["mine"]
    with pytest.raises(SettingsError, match="3 graph providers claim this project: mine, other, neo4j"):
        check(project(MEMORY, graph_providers=[MINE, OTHER, "neo4j"], **URI))


@pytest.mark.parametrize("name", ["neo5j", "no.such.module:X", f"{__name__}:Nothing", "json:loads", "os:", ":x"])
def test_what_is_no_provider_is_refused(project, name):
    with pytest.raises(SettingsError, match=r"retrieval\.graph_providers"):
        check(project(graph_providers=[name]))


def test_an_unknown_source_is_refused_with_the_known(project):
    with pytest.raises(SettingsError, match=r"unknown source 'knowlege-tools'\. Known sources: corpus, falkordb"):
        check(project(sources=["knowlege-tools"]))


def test_graph_retrieval_that_nobody_serves_is_an_error_of_its_own(project, tmp_path):
    settings = project(MEMORY, sources=["neo4j"])
    assert names(settings) == []
    check(settings)  # no mistake by itself: other retrieval does without
    with pytest.raises(GraphCapabilityError, match=r"none of the graph providers .*in-memory.*claims"):
        require_graph(settings.retrieval_facts)
    with pytest.raises(GraphCapabilityError), open_text_store("sqlite", tmp_path) as texts:
        GraphRetriever(Sources(texts=texts, project=settings.retrieval_facts))


@pytest.mark.parametrize("uri", ["bolt://me:CANARY@host", "neo4j+s://:CANARY@host"])
def test_a_password_in_the_uri_is_refused_and_not_repeated(project, uri):
    with pytest.raises(SettingsError, match=r"retrieval\.neo4j\.uri: it holds a user name or password") as error:
        project(neo4j={"uri": uri})
    assert "CANARY" not in str(error.value)


@pytest.mark.parametrize("uri", ["http://host", "host:7687", "bolt://", ""])
def test_what_is_no_address_of_a_neo4j_server_is_refused(project, uri):
    with pytest.raises(SettingsError, match=r"retrieval\.neo4j\.uri: it must name a host"):
        project(neo4j={"uri": uri})


def test_a_password_in_the_environments_uri_is_not_shown(project, monkeypatch):
    monkeypatch.setenv("NEO4J_URI", "bolt://me:CANARY@127.0.0.1:9")
    (provider,) = open_providers(Sources(project=project(MEMORY).retrieval_facts))
    with pytest.raises(StoreError, match="Neo4j database at bolt") as error:
        provider.rank(Question("Ulm"), 3)
    assert "CANARY" not in str(error.value)


# in-memory


def frames(folder, text="Albert Einstein was born in Ulm.", chunk_id="c1"):
    folder.mkdir(parents=True, exist_ok=True)
    document = Document("d1", "einstein.txt", "Einstein", text, "hash")
    ulm = text.index("Ulm")
    documents_frame([document]).to_parquet(folder / "documents.parquet")
    chunk = Chunk(chunk_id, "d1", 0, text, 0, len(text))
    chunks_frame([chunk]).to_parquet(folder / "chunks.parquet")
    said = ("c1", "d1")
    entities_frame(
        [Mention(*said, 0, 15, "Albert Einstein", "person", 0.9), Mention(*said, ulm, ulm + 3, "Ulm", "location", 0.9)]
    ).to_parquet(folder / "entities.parquet")
    relations_frame(
        [RelationMention(*said, 0, 15, "Albert Einstein", "person", ulm, ulm + 3, "Ulm", "location", "born in", 0.8)]
    ).to_parquet(folder / "relations.parquet")
    return document, chunk


def ask_memory(settings, texts, question="Where was Albert Einstein born?"):
    (provider,) = open_providers(Sources(texts=texts, project=settings.retrieval_facts))
    assert isinstance(provider, InMemoryProvider)
    return graph_ranking([provider], Question(question), 5)


def test_the_graph_in_memory_is_that_of_the_documents(project, world):
    settings = project(MEMORY)
    document, chunk = frames(settings.data_folder / "frames")
    world.texts.put_documents([document])
    world.texts.replace_chunks({document.id: [chunk]})
    found = ask_memory(settings, world.texts)
    assert facts(found) == [("Albert Einstein", "born in", "Ulm")]
    assert found.relations[0].record.chunk_ids == ("c1",)
    assert [one.record.id for one in found.chunks] == ["c1"]
    assert found.chunks[0].record.metadata == {"source": "in-memory"}
    assert {one.record.properties["source"] for one in (*found.entities, *found.relations)} == {"in-memory"}


def test_a_corpus_that_loaded_nothing_still_claims_and_is_an_empty_graph(project, world):
    settings = project(MEMORY)
    assert names(settings) == ["in-memory"]
    assert ask_memory(settings, world.texts) == Subgraph()
    frames(settings.data_folder / "frames")
    documents_frame([]).to_parquet(settings.data_folder / "frames/documents.parquet")
    assert ask_memory(settings, world.texts) == Subgraph()


def test_a_build_is_seen_by_the_next_question(project, world):
    settings = project(MEMORY)
    assert ask_memory(settings, world.texts).relations == ()
    folder = settings.data_folder / "frames"
    frames(folder)
    assert facts(ask_memory(settings, world.texts)) == [("Albert Einstein", "born in", "Ulm")]


def test_extraction_older_than_the_chunks_is_left_out(project, world):
    settings = project(MEMORY)
    frames(settings.data_folder / "frames", chunk_id="c2")
    assert ask_memory(settings, world.texts) == Subgraph()


# neo4j: what it ranks is tested on FalkorDB here, whose store answers alike; tests/services/ asks a real Neo4j server.


@pytest.fixture(scope="module")
def falkordb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("falkordb")
    store = open_embedded(folder)
    yield store
    store.close()
    stop_embedded(folder)


def test_what_is_around_named_entities_is_ranked(falkordb, world):
    falkordb.replace_documents(documents())
    found = rank_named(falkordb, Question("Where was Albert Einstein born?"), 3)
    assert facts(found)[0] == ("Albert Einstein", "born in", "Ulm")
    assert len(found.relations) == 3
    assert found.chunks[0].record == world.texts.get_chunks([found.chunks[0].record.id])[found.chunks[0].record.id]
    assert found.chunks[0].record.text == "Albert Einstein was born in Ulm."
    assert found.entities[0].record.label == "Albert Einstein"
    assert {end for one in found.relations for end in (one.record.head_id, one.record.tail_id)} <= {
        one.record.id for one in found.entities
    }
    assert "Einstein" not in [one.record.label for one in found.entities]  # a part of the name that was asked
    assert facts(rank_named(falkordb, Question("東京はどこですか"), 3)) == [("東京", "capital of", "日本")]
    assert rank_named(falkordb, Question("Nobody that is known"), 3) == Subgraph()


def test_statements_in_a_question_are_only_text(falkordb):
    falkordb.replace_documents(documents())
    before = falkordb.stats()
    assert facts(rank_named(falkordb, Question("x'}) DETACH DELETE e // Ulm"), 1)) == [("Ulm", "located in", "Germany")]
    assert falkordb.stats() == before


@pytest.mark.parametrize("question", ["", "🤔", "?!", "\0"])
def test_a_question_without_names_asks_no_server(question):
    assert Neo4jProvider(Neo4jOptions(uri="bolt://graph.invalid")).rank(Question(question), 3) == Subgraph()


def test_a_server_that_is_not_there_is_told_with_its_address():
    with pytest.raises(StoreError, match=r"Neo4j database at bolt://127\.0\.0\.1:9 can't be reached"):
        Neo4jProvider(Neo4jOptions(uri="bolt://127.0.0.1:9")).rank(Question("Ulm"), 3)


def test_keys_are_runs_of_words_and_pieces_of_unspaced_scripts():
    assert name_keys(Question("The Auth Service?")) == ["auth", "auth service", "service", "the"]
    assert {"東京", "日本"} <= set(name_keys(Question("日本の東京は")))
    assert name_keys(Question("!?")) == []
    assert len(name_keys(Question("word " * 3000))) < 20


# several at once


def test_live_triples_and_the_corpus_become_one_ranking(project, world):
    settings = project(sources=["corpus", "knowledge-tools"])
    tools = KnowledgeTools()
    tools.kg_add_triple("Albert Einstein", "played", "Violin")
    providers = open_providers(Sources(graph=world.graph, texts=world.texts, project=settings.retrieval_facts))
    found = graph_ranking(providers, Question("Where was Albert Einstein born?"), 20)
    sources = {one.record.label: one.record.properties["source"] for one in found.relations}
    assert sources["played"] == "knowledge-tools"
    assert sources["born in"] == "falkordb"
    assert tools.triples()


def test_a_store_that_a_caller_gives_serves_without_a_project(world):
    (provider,) = open_providers(Sources(graph=world.graph, texts=world.texts))
    found = graph_ranking([provider], Question("Where was Albert Einstein born?"), 3)
    assert facts(found)[0] == ("Albert Einstein", "born in", "Ulm")
    assert found.relations[0].record.properties["source"] == "graph"
    assert open_providers(Sources(texts=world.texts)) == ()


def test_a_provider_without_the_stores_it_needs_says_so_or_is_left_out(project, world):
    with pytest.raises(SettingsError, match=r"'falkordb' needs graph, texts\."):
        open_providers(Sources(project=project().retrieval_facts))
    with pytest.raises(SettingsError, match="'in-memory' needs texts"):
        open_providers(Sources(project=project(MEMORY).retrieval_facts))
    assert open_providers(Sources(texts=world.texts, project=project().retrieval_facts), only_if_it_can=True) == ()
