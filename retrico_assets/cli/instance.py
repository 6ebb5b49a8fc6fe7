"""Dagster's own records of a project, and running its jobs in this process."""

import gc
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from resources.errors import RunInterruptedError
from resources.files.locking import locked
from retrico_assets.package_files import configs_folder
from retrico_assets.settings import ProjectSettings

_TAG_PROCESS, _TAG_HOST = "retrico/pid", "retrico/host"


def prepare_home(project: Path, settings: ProjectSettings) -> Path:
    """Make the project's DAGSTER_HOME (unless the environment names one) and set the environment for this project.

    The configuration of the instance is the dagster.yaml beside the project file or one folder above it, else that of the
    package.
    """
    os.environ["RETRICO_PROJECT"] = str(project)
    home = Path(os.environ.get("DAGSTER_HOME") or settings.data_folder / "dagster").absolute()
    home.mkdir(parents=True, exist_ok=True)
    if "DAGSTER_HOME" not in os.environ:
        candidates = [folder / "dagster.yaml" for folder in project.parents[:2]]
        source = next((file for file in candidates if file.is_file()), configs_folder() / "dagster.yaml")
        shutil.copyfile(source, home / "dagster.yaml")
        os.environ["DAGSTER_HOME"] = str(home)
    return home


@contextmanager
def opened_instance() -> Iterator[dg.DagsterInstance]:
    """The Dagster instance. Runs of this command that were killed are marked as failed, since nobody else can tell."""
    with ExitStack() as stack:
        with _first_opener_alone():
            instance = stack.enter_context(dg.DagsterInstance.get())
        _close_dead_runs(instance)
        yield instance


@contextmanager
def _first_opener_alone() -> Iterator[None]:
    """Dagster makes the tables of a new home without a lock: two commands at once would both try."""
    with locked(Path(os.environ["DAGSTER_HOME"]) / "open.lock"):
        yield


def run_job(name: str, run_config: dict[str, Any], instance: dg.DagsterInstance, log_level: str) -> dg.ExecuteInProcessResult:
    """Run a job of the definitions in this process, recorded in the instance as any other run. A step that fails does not raise.

    Raises:
        RunInterruptedError: the user pressed Ctrl-C.
    """
    from retrico_assets.definitions import defs

    gc.freeze()  # what is loaded so far stays: looking through it at every collection would double the cost of a small build
    console = {"loggers": {"console": {"config": {"log_level": log_level}}}}
    result = defs.resolve_job_def(name).execute_in_process(
        instance=instance,
        run_config=run_config | console,
        tags={_TAG_PROCESS: str(os.getpid()), _TAG_HOST: socket.gethostname()},
        raise_on_error=False,
    )
    if any(_was_interrupted(event) for event in result.all_events):
        raise RunInterruptedError("Interrupted. What was finished is kept; run the same command again to continue.")
    return result


def _was_interrupted(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error if event.is_step_failure else None
    while error is not None:
        if error.cls_name in ("DagsterExecutionInterruptedError", "KeyboardInterrupt"):
            return True
        error = error.cause
    return False


def _close_dead_runs(instance: dg.DagsterInstance) -> None:
    started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED], tags={_TAG_HOST: socket.gethostname()})
    for run in instance.get_runs(filters=started):
        if not _is_alive(int(run.tags.get(_TAG_PROCESS, "0"))):
            instance.report_run_failed(run, message="the process of this run was killed; the next build goes on where it stopped")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
