"""A secret is an environment reference, and appears nowhere: not in records, logs, metadata, errors or the UI's config."""

import json

import pytest

from tests.support.llm_stub import says, scripted_llm
from tests.support.projects import make_project

CANARY = "sk-CANARY-1"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("port_is_right", [True, False])
def test_the_key_of_the_language_model_is_seen_nowhere(tmp_path, monkeypatch, capfd, port_is_right):
    monkeypatch.setenv("MY_KEY", CANARY)
    with scripted_llm(says('{"answer": "In Warsaw [c1].", "chunk_ids": ["c1"]}')) as stub:
        url = stub.base_url if port_is_right else "http://127.0.0.1:1/v1"
        llm = {"base_url": url, "model": "m", "api_key": {"env": "MY_KEY"}, "max_retries": 0, "timeout": 5}
        project = make_project(tmp_path, {"a.txt": "Marie Curie was born in Warsaw."})
        settings = json.loads(project.file.read_text())
        settings["models"]["llm"] = llm
        project.file.write_text(json.dumps(settings))
        try:
            project.build()
            run = project.run("query", {"ops": {"parse_question": {"config": {"question": "Where was Marie Curie born?"}}}})
        finally:
            project.stop()
    result = run.output_for_node("reason")
    assert (result["answer"] is not None) == port_is_right
    seen = [str(event) for event in run.all_events] + [json.dumps(result), *capfd.readouterr()]
    seen += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(CANARY in text for text in seen)
