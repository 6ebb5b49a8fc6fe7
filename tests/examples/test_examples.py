"""The examples, named in project.yaml: built, loaded in Dagster and asked from the command line."""

import json

import pytest

from tests.support.projects import MODEL, make_project

pytestmark = pytest.mark.slow

SETTINGS = {
    "stores": {
        "graph": {"backend": "examples.audited_graph_store:AuditedGraphStore", "log": "changes.jsonl"},
        "vectors": {"backend": "examples.timed_vector_store:TimedVectorStore", "slow_seconds": 0},
        "texts": {"backend": "examples.archiving_text_store:ArchivingTextStore"},
    },
}
TITLE = "examples.title_retriever:TitleRetriever"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("examples"), settings=SETTINGS)
    project.build()
    yield project
    project.stop()


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_definitions_carry_the_stores_and_their_options(project):
    resources = project.definitions().resources
    assert resources["graph_store"].backend == SETTINGS["stores"]["graph"]["backend"]
    assert resources["graph_store"].options == {"log": "changes.jsonl"}
    assert resources["vector_store"].options == {"slow_seconds": 0.0}


def test_the_graph_store_writes_its_audit_log(project):
    log = lines(project.data / "graph" / "changes.jsonl")
    assert {source for line in log for source in line["documents"]} == {"einstein.txt", "curie.txt", "planck.md"}
    assert ("Albert Einstein", "born in", "Ulm") in project.facts()


def test_the_vector_store_reports_slow_searches(project, caplog):
    asked = project.retrico("query", "Where was Albert Einstein born?", "--strategy", "chunk_embedding", "--json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["chunks"]
    assert "1 queries of the index" in caplog.text


def test_the_strategy_answers_in_process_and_as_a_process(project):
    for run in (project.retrico, project.retrico_process):
        asked = run("query", "Who is Max Planck?", "--strategy", TITLE, "--json")
        assert asked.returncode == 0, asked.stderr
        result = json.loads(asked.stdout)
        assert result["errors"] == []
        assert "Kiel" in result["chunks"][0]["text"]


def test_the_text_store_archives_what_is_deleted(project):
    (project.corpus / "curie.txt").unlink()
    built = project.retrico("build", "--json")
    assert built.returncode == 0, built.stderr
    assert [line["source"] for line in lines(project.data / "texts" / "archive.jsonl")] == ["curie.txt"]


NAMES = {"person": ["Albert Einstein", "Marie Curie", "Max Planck"], "location": ["Ulm", "Warsaw", "Kiel", "Berlin"]}
MODELS = {
    "models": {
        "entities": {"backend": "examples.gazetteer:Gazetteer", "names": NAMES},
        "relations": {"model": str(MODEL)},
        "embedder": {"backend": "examples.hashing_embedder:HashingEmbedder", "dimension": 64},
    },
    "query": {"reranker": {"backend": "examples.word_reranker:WordReranker"}},
}


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("models"), settings=MODELS)
    assert project.retrico("build", "--json").returncode == 0
    yield project
    project.stop()


def test_the_gazetteer_gives_the_entities_of_the_graph(modelled):
    entities = {entity.label: entity.type for entity in modelled.graph()["entities"]}
    assert entities == {name: label for label, names in NAMES.items() for name in names}


def test_the_hashing_embedder_and_the_word_reranker_find_the_chunk(modelled):
    asked = modelled.retrico("query", "Marie Curie was born where?", "--strategy", "chunk_embedding", "--rerank", "--json")
    assert asked.returncode == 0, asked.stderr
    result = json.loads(asked.stdout)
    assert result["errors"] == []
    assert "Warsaw" in result["chunks"][0]["text"]


def test_a_run_in_dagster_uses_the_models(modelled):
    built = modelled.build()
    assert built.result.success
    assert built.metadata["chunk_embeddings"]["model"] == "hashing-64"
