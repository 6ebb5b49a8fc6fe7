"""The folder sensor: its ticks one by one, and once under a running daemon."""

import os
import signal
import subprocess
import sys
import time

import dagster as dg
import pytest

from retrico_assets.corpus.sensor import corpus_sensor
from retrico_assets.project import ProjectResource
from tests.support.projects import REPOSITORY, make_project


@pytest.fixture
def project(tmp_path):
    project = make_project(tmp_path, {"a.txt": "Marie Curie was born in Warsaw."}, {"corpus": {"settle_seconds": 0}})
    yield project
    project.stop()


@pytest.fixture
def tick(project):
    resources = {"project": ProjectResource(file=str(project.file))}
    cursor = None

    def evaluate():
        nonlocal cursor
        context = dg.build_sensor_context(cursor=cursor, resources=resources)
        data = corpus_sensor.evaluate_tick(context)
        cursor = data.cursor or cursor
        return data

    return evaluate


def runs(tick, ticks=3):
    """Run keys of some ticks: a file needs a second tick to be seen as complete."""
    return [request.run_key for _ in range(ticks) for request in tick().run_requests]


def test_a_new_a_changed_and_a_removed_file_start_one_build_each(project, tick):
    first = runs(tick)
    assert len(first) == 1
    assert runs(tick) == []
    project.write("b.txt", "Max Planck was born in Kiel.")
    second = runs(tick)
    project.write("b.txt", "Max Planck was born in Munich.")
    third = runs(tick)
    (project.corpus / "a.txt").unlink()
    fourth = runs(tick)
    assert [len(keys) for keys in (second, third, fourth)] == [1, 1, 1]
    assert len({*first, *second, *third, *fourth}) == 4


def test_an_unreachable_folder_starts_nothing_and_says_so(project, tick):
    runs(tick)
    project.corpus.rename(project.corpus.with_name("away"))
    data = tick()
    assert not data.run_requests
    assert str(project.corpus) in data.skip_message
    project.corpus.with_name("away").rename(project.corpus)
    assert runs(tick) == []


def test_the_sensor_and_the_schedule_can_be_switched_in_the_ui(project):
    repository = project.definitions().get_repository_def()
    assert repository.has_sensor_def("corpus_sensor")
    assert repository.has_schedule_def("nightly_build")
    assert repository.get_schedule_def("nightly_build").default_status == dg.DefaultScheduleStatus.STOPPED


@pytest.mark.slow
def test_a_running_daemon_builds_what_appears_in_the_folder(project):
    home = project.data / "dagster"
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text((REPOSITORY / "configs/dagster.yaml").read_text())
    environment = os.environ | {"RETRICO_PROJECT": str(project.file), "DAGSTER_HOME": str(home)}

    def dagster(*arguments):
        return [sys.executable, "-m", *arguments, "-w", str(REPOSITORY / "workspace.yaml")]

    started = subprocess.run(
        dagster("dagster", "sensor", "start", "corpus_sensor"), env=environment, cwd=REPOSITORY, capture_output=True, text=True
    )
    assert started.returncode == 0, started.stderr
    log = (home / "daemon.log").open("w")
    daemon = subprocess.Popen(
        dagster("dagster._daemon", "run"), env=environment, cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True
    )
    try:
        with dg.DagsterInstance.from_config(str(home)) as instance:
            run = _finished_run(instance, time.monotonic() + 240)
        assert run is not None, (home / "daemon.log").read_text()[-3000:]
        assert run.status == dg.DagsterRunStatus.SUCCESS
        assert ("Marie Curie", "born in", "Warsaw") in project.facts()
    finally:
        os.killpg(daemon.pid, signal.SIGTERM)
        daemon.wait(30)
        log.close()


def _finished_run(instance, deadline):
    while time.monotonic() < deadline:
        for run in instance.get_runs():
            if run.is_finished:
                return run
        time.sleep(1)
    return None
