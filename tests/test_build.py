"""Documents to graph, with the real model and the embedded stores: what must hold of every build."""

import os

import dagster as dg
import pytest

from resources.texts import open_text_store
from resources.vectors import open_vector_store
from tests.support.projects import TEXTS, make_project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path):
    project = make_project(tmp_path)
    yield project
    project.stop()


def test_a_folder_of_texts_becomes_a_graph_and_a_second_build_does_nothing(project):
    first = project.build()
    assert all(first.checks.values()), first.checks
    assert first.model_calls > 0
    assert ("Albert Einstein", "born in", "Ulm") in project.facts()
    before = project.graph()

    second = project.build()
    assert second.model_calls == 0
    assert second.rows_written == 0
    assert second.metadata["documents"]["unchanged"] == len(TEXTS)
    assert project.graph() == before


def test_only_the_changed_document_is_read_again_and_its_old_facts_go(project):
    project.build()
    project.write("curie.txt", "Marie Curie was born in Paris.")
    build = project.build()
    assert build.metadata["documents"]["changed"] == 1
    assert build.metadata["entities"]["cached"] == build.metadata["entities"]["chunks"] - 1
    assert build.metadata["graph"]["documents_replaced"] == 1
    names = {entity.label for entity in project.graph()["entities"]}
    assert "Warsaw" not in names
    assert ("Marie Curie", "born in", "Paris") in project.facts()
    assert ("Albert Einstein", "born in", "Ulm") in project.facts()


def test_a_removed_document_leaves_every_store_and_shared_entities_stay(project):
    project.build()
    removed = {chunk for chunk, _ in _chunks(project, "einstein.txt")}
    (project.corpus / "einstein.txt").unlink()
    build = project.build()
    assert build.metadata["documents"]["removed"] == 1
    graph = project.graph()
    names = {entity.label for entity in graph["entities"]}
    assert "Ulm" not in names
    assert "Albert Einstein" in names
    assert not removed & {chunk for found in graph["mentions"].values() for chunk, _ in found}
    with (
        open_text_store("sqlite", project.data / "texts") as texts,
        open_vector_store("faiss", project.data / "vectors") as vectors,
    ):
        assert removed
        assert not texts.get_chunks(sorted(removed))
        assert all(scored.record.id not in removed for scored in texts.search("Einstein Ulm", 10))
        assert set(vectors.hashes("chunk_embeddings")) == {chunk for ids in texts.chunk_ids().values() for chunk in ids}
        assert set(vectors.hashes("entity_embeddings")) == {entity.id for entity in graph["entities"]}


def _chunks(project, source):
    with open_text_store("sqlite", project.data / "texts") as texts:
        document = next(d for d in texts.documents() if d.source == source)
        return [(chunk.id, chunk.text) for chunk in texts.chunks() if chunk.document_id == document.id]


def test_what_was_deleted_comes_back_with_new_provenance_only(tmp_path):
    project = make_project(
        tmp_path, {"d1.txt": "Ana Silva hired Bo Berg in Oslo.", "d2.txt": "Bo Berg trained Cy Young in Oslo."}
    )
    try:
        project.build()
        (project.corpus / "d1.txt").unlink()
        project.build()
        assert "Ana Silva" not in {entity.label for entity in project.graph()["entities"]}
        project.write("d3.txt", "Ana Silva was born in Rome.")
        project.build()
        graph = project.graph()
        ana = next(entity for entity in graph["entities"] if entity.label == "Ana Silva")
        assert [chunk for chunk, _ in graph["mentions"][ana.id]] == [chunk for chunk, _ in _chunks(project, "d3.txt")]
    finally:
        project.stop()


def test_files_with_one_base_name_and_equal_texts_stay_apart(tmp_path):
    text = "Marie Curie was born in Warsaw."
    project = make_project(tmp_path, {"hr/readme.md": text, "it/readme.md": text})
    try:
        project.build()
        graph = project.graph()
        assert (graph["stats"].documents, graph["stats"].chunks) == (2, 2)
        curie = next(entity for entity in graph["entities"] if entity.label == "Marie Curie")
        assert len(graph["mentions"][curie.id]) == 2
        with open_text_store("sqlite", project.data / "texts") as texts:
            assert len(texts.search("Curie", 10, source="it/readme.md")) == 1
            (project.corpus / "hr/readme.md").unlink()
            project.build()
            assert len(texts.search("Curie", 10)) == 1
    finally:
        project.stop()


def test_a_bad_file_fails_alone_and_keeps_its_stored_version(project):
    project.build()
    before = project.graph()
    (project.corpus / "curie.txt").write_bytes(b"\x00\x01\x02\xff\xfe\x00" * 50)
    project.write("empty.txt", " \n\u200b")
    build = project.build(raise_on_error=False)
    assert build.checks["documents.all_documents_read"] is False
    assert build.metadata["documents"]["failed"] == 1
    assert project.graph() == before


def test_a_missing_folder_is_not_an_empty_one(project):
    project.build()
    before = project.graph()
    project.corpus.rename(project.corpus.with_name("away"))
    build = project.build(raise_on_error=False)
    assert not build.result.success
    assert project.graph() == before


def test_a_corpus_of_blank_texts_is_a_success_with_nothing_in_it(tmp_path):
    project = make_project(tmp_path, {"a.txt": "", "b.txt": "  \n\t", "c.md": "\ufeff"})
    try:
        build = project.build()
        assert build.result.success
        assert all(build.checks.values())
        assert build.metadata["documents"]["total"] == 0
        assert build.model_calls == 0
    finally:
        project.stop()


def test_texts_given_in_the_config_are_documents_until_another_list_is_given(project):
    inline = {"ops": {"documents": {"config": {"texts": [{"text": "Emmy Noether was born in Erlangen.", "title": "Noether"}]}}}}
    assert project.build(inline).metadata["documents"]["total"] == len(TEXTS) + 1
    assert project.build().metadata["documents"]["unchanged"] == len(TEXTS) + 1
    assert project.build({"ops": {"documents": {"config": {"texts": []}}}}).metadata["documents"]["removed"] == 1


def test_labels_of_one_run_go_in_by_config(project):
    config = {"labels": ["location"]}
    build = project.build(
        {"ops": {"entities": {"config": config | {"relation_labels": []}}, "relations": {"config": {"labels": []}}}}
    )
    assert build.result.success
    assert {entity.type for entity in project.graph()["entities"]} == {"location"}


def test_a_step_without_its_upstream_says_what_to_build_first(project):
    result = (
        project.definitions()
        .resolve_job_def("build")
        .execute_in_process(asset_selection=[dg.AssetKey("graph")], raise_on_error=False)
    )
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert "nothing built yet" in str(failure.step_failure_data)
    assert "retrico build" in str(failure.step_failure_data)


def test_twenty_builds_leave_no_file_or_connection_open(project):
    project.build()
    project.build()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        project.build()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_step_that_fails_lets_go_of_everything_it_opened(project):
    project.build()
    project.build()
    before = len(os.listdir("/proc/self/fd"))
    bad = {"ops": {"chunks": {"config": {"method": "fixed", "size": 10, "overlap": 10}}}}
    for _ in range(5):
        failed = project.build(bad, raise_on_error=False)
        assert not failed.result.success
        reason = next(event.step_failure_data for event in failed.result.all_events if event.is_step_failure)
        assert "overlap" in str(reason)
        assert "size" in str(reason)
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert project.build().result.success
