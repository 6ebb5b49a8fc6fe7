"""Retrieval measured from the command line, and the matrix of the graph as an asset: on a small project, built for real."""

import json

import pytest

from tests.support.projects import make_project

pytestmark = pytest.mark.slow

QUESTIONS = [
    {"question": "Where was Albert Einstein born?", "sources": ["einstein.txt"]},
    {"question": "Whom did Max Planck meet, and where was that person born?", "sources": ["planck.md", "einstein.txt"]},
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = make_project(tmp_path_factory.mktemp("evaluated"))
    yield made
    made.stop()


def test_the_report_scores_every_strategy_that_the_project_can_run(project):
    built = project.build()
    matrix = built.metadata["entity_graph"]
    assert (matrix["chunks"], matrix["relations"]) == (3, built.metadata["graph"]["relations"])
    assert len(list((project.data / "query_cache").glob("entity_graph-*.npz"))) == 1

    unasked = project.retrico("eval")
    assert unasked.returncode == 1
    assert "There are no questions. Write" in unasked.stderr

    (project.data / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    asked = project.retrico("eval", "--json")
    assert asked.returncode == 0, asked.stderr
    scores = {score["name"]: score for score in json.loads(asked.stdout)}
    assert {"entity", "pagerank", "keyword", "chunk_embedding", "path", "keyword + chunk_embedding"} <= scores.keys()
    assert "tool" not in scores  # there is no language model
    assert scores["pagerank"]["recall_at_2"] == 100
    assert scores["pagerank"]["errors"] == {}
    assert "retrico community" in str(scores["community"]["errors"])  # says what to build first

    shown = project.retrico("eval", "--strategy", "pagerank")
    assert shown.returncode == 0, shown.stderr
    assert "R@5" in shown.stdout


def test_a_source_that_no_document_has_is_a_warning(project):
    file = project.data / "odd.jsonl"
    file.write_text("\n".join(map(json.dumps, [*QUESTIONS, {"question": "Who?", "sources": ["gone.txt", "planck.md"]}])))
    asked = project.retrico("eval", str(file), "--strategy", "keyword", "--json")
    assert asked.returncode == 0, asked.stderr
    assert "warning: 1 expected sources match no document and count as misses: gone.txt" in asked.stderr
    assert json.loads(asked.stdout)[0]["questions"] == 3


def test_a_missing_file_of_questions_is_an_error_without_a_trace(project):
    failed = project.retrico("eval", str(project.data / "none.jsonl"))
    assert failed.returncode == 1
    assert "none.jsonl" in failed.stderr
    assert "Traceback" not in failed.stderr
