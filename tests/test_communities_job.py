"""The job `detect_communities` on a real build: communities, summaries, vectors, report, and answers from them."""

import json
import shutil

import pytest

from resources.graph import open_graph_store
from resources.texts import open_text_store
from resources.vectors import open_vector_store
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.llm_stub import says, scripted_llm
from tests.support.models import sentence_embedder
from tests.support.projects import REPOSITORY, Build, Project, make_project

pytestmark = pytest.mark.slow

WRITTEN = says('{"title": "A community", "summary": "They belong together."}')


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A copy of the demo project, built."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(REPOSITORY / "configs/demo", folder / "demo")
    file = folder / "demo/project.yaml"
    file.write_text(file.read_text().replace("data: ../../data/demo", "data: ../data"))
    project = Project(file, folder / "demo/corpus", folder / "data")
    project.build()
    yield project
    project.stop()


def detect(project, **options):
    return Build(project.run("detect_communities", **options))


def stored(project):
    with open_graph_store("falkordb_embedded", project.data / "graph") as graph:
        return graph.communities(), graph.revision()


def test_the_demo_falls_into_communities_and_a_second_run_does_nothing(demo):
    first = detect(demo)
    assert all(first.checks.values()), first.checks
    communities, revision = stored(demo)
    with open_graph_store("falkordb_embedded", demo.data / "graph") as graph:
        entities = {entity.id for entity in graph.entities()}
    for level in {community.level for community in communities}:
        members = [id_ for community in communities if community.level == level for id_ in community.member_ids]
        assert sorted(members) == sorted(entities)
    assert max(len(community.member_ids) for community in communities) > 3
    assert all(community.title and community.summary for community in communities)
    assert first.metadata["communities"]["detected"]
    assert first.metadata["community_embeddings"]["embedded"] == sum(len(c.member_ids) > 1 for c in communities)
    page = (demo.data / "reports/communities.html").read_text()
    assert first.metadata["community_report"]["file"] == str(demo.data / "reports/communities.html")
    assert "Albert Einstein" in page
    assert "data:image/svg+xml;base64," in first.metadata["community_report"]["picture"]
    assert len(first.metadata["community_report"]["picture"]) < 300_000

    second = detect(demo)
    assert not second.metadata["communities"]["detected"]
    assert second.metadata["communities"]["rows_written"] == second.metadata["community_summaries"]["rows_written"] == 0
    assert second.metadata["community_summaries"]["extractive"] == 0
    assert second.metadata["community_embeddings"]["model_calls"] == 0
    assert not second.metadata["community_report"]["file_rewritten"]
    assert stored(demo) == (communities, revision)


def test_the_community_strategy_answers_from_them(demo):
    detect(demo)
    with (
        open_graph_store("falkordb_embedded", demo.data / "graph") as graph,
        open_text_store("sqlite", demo.data / "texts") as texts,
        open_vector_store("faiss", demo.data / "vectors") as vectors,
    ):
        sources = Sources(graph, texts, vectors, sentence_embedder())
        found = make_retriever("community", sources).retrieve(Question("Who were Marie and Pierre Curie?"), 10)
    assert {"Marie Curie", "Pierre Curie"} <= {scored.record.label for scored in found.entities}
    assert any("Curie" in scored.record.text for scored in found.chunks)


def test_the_command_line_detects_and_says_what_it_found(demo):
    run = demo.retrico("community", "--levels", "2", "--resolution", "1.5", "--json")
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert summary["detected"]
    assert [row["level"] for row in summary["levels"]] == [0, 1]
    whole = {c.id: (c.title, c.summary) for c in stored(demo)[0]}
    assert all((row["title"], row["summary"]) == whole[row["id"]] for row in summary["largest"])
    assert len(summary["largest"][0]["summary"]) > 80
    assert summary["report"] == str(demo.data / "reports/communities.html")
    run = demo.retrico("community", "--levels", "2", "--resolution", "1.5")
    assert run.returncode == 0, run.stderr
    assert "nothing has changed" in run.stdout
    assert "level 1:" in run.stdout


def test_mistakes_on_the_command_line_are_said_in_a_line(demo):
    for arguments, message in [
        (("--levels", "0"), "--levels is 0. It must be between 1 and 10."),
        (("--method", "infomap"), "It must be 'auto', 'louvain' or 'leiden'."),
        (("--level", "1"), "--ask"),
        (("--ask", "What is it about?"), "models.llm"),
    ]:
        run = demo.retrico("community", *arguments)
        assert run.returncode == 1
        assert message in run.stderr
        assert "Traceback" not in run.stderr


def test_what_a_run_may_not_say_fails_in_a_line(demo):
    run = demo.run("detect_communities", {"ops": {"community_summaries": {"config": {"top_k": 0}}}}, raise_on_error=False)
    failure = next(event for event in run.all_events if event.is_step_failure)
    told = failure.step_failure_data.user_failure_data.description
    assert told == "config.top_k is 0. It must be between 1 and 100."


def test_a_model_writes_the_summaries_and_answers_questions_about_everything(tmp_path):
    said = says('{"points": [{"text": "Science", "score": 80, "ids": ["g1"]}]}')
    with scripted_llm(WRITTEN) as stub:
        llm = {"base_url": stub.base_url, "model": "scripted", "max_retries": 0}
        project = make_project(tmp_path)
        content = json.loads(project.file.read_text())
        content["models"]["llm"] = llm
        project.file.write_text(json.dumps(content))
        try:
            project.build()
            first = detect(project)
            assert all(first.checks.values()), first.checks
            asked = len(stub.requests)
            assert first.metadata["community_summaries"]["by_model"] == asked > 0
            assert first.metadata["community_summaries"]["usage"]["requests"] == asked
            assert detect(project).metadata["community_summaries"]["by_model"] == 0
            assert len(stub.requests) == asked
            stub.replies[:] = [WRITTEN] * asked + [said, says('{"answer": "It is about science [g1].", "found": true}')]
            run = project.retrico("community", "--ask", "What is it about?", "--json")
            assert run.returncode == 0, run.stderr
            answer = json.loads(run.stdout)
            assert answer["answer"] == f"It is about science [{answer['cited'][0]['id']}]."
            assert answer["cited"][0]["title"] == "A community"
        finally:
            project.stop()


def test_a_model_that_fails_fails_the_check_and_nothing_else(tmp_path):
    with scripted_llm(says("")) as stub:
        project = make_project(tmp_path)
        content = json.loads(project.file.read_text())
        content["models"]["llm"] = {"base_url": stub.base_url, "model": "scripted", "max_retries": 0}
        project.file.write_text(json.dumps(content))
        try:
            project.build()
            run = detect(project, raise_on_error=False)
            assert run.checks["community_summaries.all_summarised"] is False
            assert run.metadata["community_summaries"]["failed"] > 0
            assert all(community.summary for community in stored(project)[0])
            assert run.metadata["community_embeddings"]["embedded"] > 0
        finally:
            project.stop()


def test_an_empty_corpus_is_a_success_with_nothing_in_it(tmp_path):
    project = make_project(tmp_path, {"a.txt": ""})
    try:
        project.build()
        run = detect(project)
        assert run.result.success
        assert all(run.checks.values())
        assert run.metadata["communities"]["dagster/row_count"] == 0
        assert run.metadata["community_embeddings"]["embedded"] == 0
    finally:
        project.stop()
