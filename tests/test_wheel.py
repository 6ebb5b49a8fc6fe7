"""The wheel alone can make a project, build it and answer a question."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.command import REPOSITORY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(REPOSITORY),
    ]
    run = subprocess.run(build, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A new environment that holds the wheel, and sees the dependencies of the one that runs the tests."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    purelib = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # A folder named in a .pth file is searched, but its own .pth files are not read: the checkout stays invisible.
    (Path(purelib) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return folder


def run(environment, folder, *arguments, **variables):
    hidden = ("PYTHONPATH", "RETRICO_PROJECT", "DAGSTER_HOME")
    env = {name: value for name, value in os.environ.items() if name not in hidden} | variables
    return subprocess.run(
        [str(environment / "bin" / arguments[0]), *arguments[1:]], cwd=folder, env=env, capture_output=True, text=True
    )


def test_the_wheel_holds_types_templates_and_the_demo(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "resources/py.typed",
        "retrico_assets/py.typed",
        "retrico_assets/configs/project.yaml",
        "retrico_assets/configs/dagster.yaml",
        "retrico_assets/configs/demo/gliner-mini/model.safetensors",
        "retrico_assets/communities/templates/page.html",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]


def test_the_wheel_alone_makes_a_project_builds_it_and_answers(environment, tmp_path):
    made = run(environment, tmp_path, "retrico", "init", "--demo", "mine")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "mine" / "corpus" / "albert_einstein.txt").is_file()
    again = run(environment, tmp_path, "retrico", "init", "mine")
    assert again.returncode == 1
    assert "project.yaml exists already" in again.stderr
    project = ("--project", str(tmp_path / "mine" / "project.yaml"))
    try:
        built = run(environment, tmp_path, "retrico", "build", *project)
        assert built.returncode == 0, built.stderr
        assert "retention:" in (tmp_path / "mine" / "data" / "dagster" / "dagster.yaml").read_text()
        answered = run(environment, tmp_path, "retrico", "query", "Where was Albert Einstein born?", "--json", *project)
        assert answered.returncode == 0, answered.stderr
        assert '"tail": "Ulm"' in answered.stdout
    finally:
        stopped = run(environment, tmp_path, "retrico", "stop", *project)
    assert stopped.returncode == 0, stopped.stderr


def test_a_foreign_package_named_resources_is_reported(environment, tmp_path):
    foreign = tmp_path / "resources"
    foreign.mkdir()
    (foreign / "__init__.py").touch()
    clash = run(environment, tmp_path, "python", "-c", "import retrico_assets", PYTHONPATH=str(tmp_path))
    assert clash.returncode == 1
    assert f"The package 'resources' in {foreign} hides" in clash.stderr
