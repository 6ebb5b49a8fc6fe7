"""Dagster's own commands on the definitions, in processes of their own."""

import ast
import os
import subprocess
import sys

import pytest

from tests.support.command import REPOSITORY
from tests.support.projects import make_project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path):
    project = make_project(tmp_path)
    yield project
    project.stop()


def dagster(project, *arguments):
    environment = os.environ | {"RETRICO_PROJECT": str(project.file), "DAGSTER_HOME": str(project.data / "dagster")}
    (project.data / "dagster").mkdir(parents=True, exist_ok=True)
    (project.data / "dagster" / "dagster.yaml").write_text((REPOSITORY / "configs/dagster.yaml").read_text())
    return subprocess.run(
        [sys.executable, "-m", "dagster", *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_jobs_run_from_their_config_files(project):
    for job in ("build", "query"):
        run = dagster(project, "job", "execute", "-m", "retrico_assets.definitions", "-j", job, "-c", f"configs/{job}.yaml")
        assert run.returncode == 0, run.stderr[-3000:]
    assert ("Albert Einstein", "born in", "Ulm") in project.facts()


def test_every_asset_materialises_from_the_command_line(project):
    run = dagster(project, "asset", "materialize", "--select", "*", "-m", "retrico_assets.definitions")
    assert run.returncode == 0, run.stderr[-3000:]
    assert project.graph()["stats"].documents == 3


def test_the_definitions_are_valid(project):
    assert dagster(project, "definitions", "validate", "-w", "workspace.yaml").returncode == 0
    checked = subprocess.run(
        [os.path.dirname(sys.executable) + "/dg", "check", "defs"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_loading_the_definitions_imports_no_heavy_package():
    code = "import sys, retrico_assets.definitions; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    heavy = {
        "torch",
        "gliner",
        "sentence_transformers",
        "faiss",
        "pykeen",
        "openai",
        "falkordb",
        "redis",
        "neo4j",
        "transformers",
    }
    assert not heavy & set(ast.literal_eval(loaded))


def test_each_step_can_be_a_process_of_its_own(project, tmp_path):
    module = tmp_path / "parallel.py"
    module.write_text(
        "import dagster as dg\n"
        "from retrico_assets import definitions as ours\n"
        "defs = dg.Definitions(assets=ours.defs.assets, jobs=[ours.build_job], resources=ours.defs.resources,\n"
        "    executor=dg.multiprocess_executor.configured({'max_concurrent': 2, 'start_method': {'forkserver': {}}}))\n"
    )
    run = dagster(project, "job", "execute", "-f", str(module), "-j", "build")
    assert run.returncode == 0, run.stderr[-3000:]
    assert ("Albert Einstein", "born in", "Ulm") in project.facts()
