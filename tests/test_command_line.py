"""The `retrico` command."""

import contextlib
import json
import os
import random
import signal
import subprocess

import pytest

from tests.support.command import COMMAND, run_as_process
from tests.support.llm_stub import says, scripted_llm
from tests.support.projects import MODEL, REPOSITORY, TEXTS, make_project

pytestmark = pytest.mark.slow

MORE = {
    f"note{i}.txt": f"Person {i} Smith was born in Paris. John Miller {i} worked at the University of Bonn." for i in range(12)
}


@pytest.fixture
def project(tmp_path):
    project = make_project(tmp_path)
    yield project
    project.stop()


def test_build_stats_query_and_stop_print_json_alone(project):
    built = project.retrico("build", "--json")
    assert built.returncode == 0, built.stderr
    summary = json.loads(built.stdout)
    assert summary["documents"] == {"total": 3, "new": 3, "changed": 0, "removed": 0, "unchanged": 0, "failed": 0}
    assert summary["model_calls"] > 0

    again = json.loads(project.retrico("build", str(project.corpus), "--json").stdout)
    assert again["documents"]["unchanged"] == 3
    assert again["model_calls"] == 0

    stats = json.loads(project.retrico("stats", "--json").stdout)
    assert stats["documents"] == 3
    assert {name: summary[name] for name in ("chunks", "mentions", "entities", "relations")} == {
        name: stats[name] for name in ("chunks", "mentions", "entities", "relations")
    }

    asked = project.retrico("query", "Where was Albert Einstein born?", "--strategy", "entity,keyword", "--top-k", "3", "--json")
    result = json.loads(asked.stdout)
    assert {"question", "strategies", "answer", "entities", "relations", "chunks", "errors"} <= set(result)
    assert (result["answer"], result["errors"]) == (None, [])
    assert len(result["chunks"]) <= 3
    facts = {(r["head"], r["relation"], r["tail"]) for r in result["relations"]}
    assert ("Albert Einstein", "born in", "Ulm") in facts

    project.retrico("stats")
    assert "stopped" in project.retrico("stop").stdout
    assert "no graph database" in project.retrico("stop").stdout


def test_what_failed_is_told_and_the_exit_code_is_one(project):
    (project.corpus / "broken.txt").write_bytes(b"\x00\x01\x02\xff" * 100)
    built = project.retrico("build", "--json")
    assert built.returncode == 1
    assert json.loads(built.stdout)["documents"]["failed"] == 1
    assert "broken.txt" in built.stderr

    missing = project.retrico("build", str(project.corpus / "nowhere"))
    assert missing.returncode == 1
    assert "nowhere" in missing.stderr
    assert "Traceback" not in missing.stderr

    unknown = project.retrico("query", "Who?", "--strategy", "oracle")
    assert unknown.returncode == 1
    assert "oracle" in unknown.stderr
    unread = project.retrico("query", "Who?", "--option", "hops=3")
    assert (unread.returncode, unread.stdout) == (1, "")
    assert "error: --option is 'hops=3'. It must be strategy.option=value" in unread.stderr


def test_a_question_with_all_there_is_to_choose(tmp_path):
    with scripted_llm(says('{"answer": "In Ulm [c1].", "chunk_ids": ["c1"]}')) as stub:
        models = {name: {"model": str(MODEL)} for name in ("entities", "relations")}
        settings = {
            "models": models | {"llm": {"base_url": stub.base_url, "model": "scripted"}},
            "query": {"strategies": ["keyword"], "reranker": {"backend": "embedder"}},
        }
        project = make_project(tmp_path, settings=settings)
        try:
            assert project.retrico("build", "--json").returncode == 0
            choices = "--strategy entity --strategy keyword --option entity.hops=1 --fusion weighted --top-k 2"
            words = [
                *choices.split(),
                "--weights",
                "entity=2,keyword=1",
                "--chunk-source",
                "both",
                "--rerank",
                "--stream",
                "--json",
            ]
            asked = project.retrico("query", "Where was Albert Einstein born?", *words)
            nothing = project.retrico("query", "", "--json")
        finally:
            project.stop()
    assert asked.returncode == 0, asked.stderr
    result = json.loads(asked.stdout)
    assert result["strategies"] == ["entity", "keyword"]
    assert result["errors"] == []
    assert "born in Ulm" in result["chunks"][0]["text"]
    assert result["answer"] == f"In Ulm [{result['chunks'][0]['id']}]."
    assert "In Ulm [1]." in asked.stderr
    assert nothing.returncode == 0, nothing.stderr
    empty = json.loads(nothing.stdout)
    assert (empty["strategies"], empty["chunks"], empty["answer"], empty["errors"]) == (["keyword"], [], None, [])


SMALL_CHUNKS = {"corpus": {"chunking": {"size": 60}}}


def test_a_build_killed_again_and_again_ends_in_the_same_graph(tmp_path):
    calm = make_project(tmp_path / "calm", TEXTS | MORE, SMALL_CHUNKS)
    wild = make_project(tmp_path / "wild", TEXTS | MORE, SMALL_CHUNKS)
    dice = random.Random()
    try:
        calm.build()
        for victims in (("build",), ("database",), ("build", "database"), ("build",), ("database",)):
            process = start(wild, "build")
            # Long enough for the step to be any of them: models load in some six seconds, the rest takes as long.
            wait(process, 4 + 12 * dice.random())
            if "build" in victims:
                process.kill()
            if "database" in victims:
                kill_database(wild)
            process.communicate(timeout=300)
        ended = wild.retrico("build", "--json")
        assert ended.returncode == 0, ended.stderr
        assert wild.graph() == calm.graph()
    finally:
        calm.stop()
        wild.stop()


def start(project, *arguments):
    return subprocess.Popen(
        [*COMMAND, *arguments, "--project", str(project.file)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait(process, seconds):
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def kill_database(project):
    for line in subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines():
        if "redis-server" in line and str(project.data) in line:
            os.kill(int(line.split()[0]), signal.SIGKILL)


def test_two_questions_and_a_build_at_once(project):
    project.build()
    project.write("bohr.txt", "Niels Bohr was born in Copenhagen.")
    arguments = [
        ["query", "Where was Albert Einstein born?", "--json"],
        ["query", "Where was Marie Curie born?", "--strategy", "keyword,entity", "--json"],
        ["build", "--json"],
    ]
    processes = [start(project, *words) for words in arguments]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], [error for _, error in outputs]
    assert "Ulm" in outputs[0][0]
    assert "Warsaw" in outputs[1][0]
    assert json.loads(outputs[2][0])["documents"]["new"] == 1
    assert ("Niels Bohr", "born in", "Copenhagen") in project.facts()


def test_commands_start_as_processes_of_their_own(project):
    runs = [project.retrico_process("stats", "--json"), run_as_process("strategies"), project.retrico_process("stop")]
    assert [run.returncode for run in runs] == [0, 0, 0], [run.stderr for run in runs]
    assert all(run.stdout for run in runs)


def test_ctrl_c_ends_a_build_in_one_line_with_exit_code_130(project):
    process = start(project, "build")
    wait(process, 6)  # models load in about six seconds: a step is running
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert output == ""
    assert errors.strip().splitlines()[-1].startswith("Interrupted.")
    assert "Traceback" not in errors
