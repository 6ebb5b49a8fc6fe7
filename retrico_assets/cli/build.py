"""`retrico build`: the job `build`, and what came of it in one object."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from retrico_assets.cli.instance import opened_instance, run_job
from retrico_assets.progress import listening
from retrico_assets.settings import ProjectSettings, load_settings

_DOCUMENT_COUNTS = ("total", "new", "changed", "removed", "unchanged", "failed")
_GRAPH_COUNTS = ("chunks", "mentions", "entities", "relations")


@dataclass(frozen=True)
class BuildOutcome:
    """The summary as `--json` prints it, and what failed, in words."""

    summary: dict[str, Any]
    failures: tuple[str, ...]


def build(
    path: Path | None, entity_labels: Sequence[str], relation_labels: Sequence[str], console: Console | None, log_level: str
) -> BuildOutcome:
    """Run the job `build` of the project in force, with bars on ``console`` if there is one."""
    started = time.monotonic()
    with opened_instance() as instance, bars(console) if console else nullcontext():
        result = run_job("build", build_config(path, entity_labels, relation_labels), instance, log_level)
    metadata = metadata_by_asset(result)
    documents, graph = metadata.get("documents", {}), metadata.get("graph") or stored_counts(load_settings())
    summary = {
        "documents": {name: int(documents.get(name, 0)) for name in _DOCUMENT_COUNTS},
        **{name: int(graph.get(name, 0)) for name in _GRAPH_COUNTS},
        "model_calls": sum(int(values.get("model_calls", 0)) for values in metadata.values()),
        "seconds": round(time.monotonic() - started, 2),
    }
    return BuildOutcome(summary, tuple(failures(result)))


def build_config(path: Path | None, entity_labels: Sequence[str], relation_labels: Sequence[str]) -> dict[str, Any]:
    """Run config of the job `build` for what differs from the project file."""
    documents = {"path": str(path.absolute())} if path else {}
    entities: dict[str, Any] = {}
    relations: dict[str, Any] = {}
    if entity_labels:
        entities["labels"] = relations["entity_labels"] = list(entity_labels)
    if relation_labels:
        entities["relation_labels"] = relations["labels"] = list(relation_labels)
    parts = {"documents": documents, "entities": entities, "relations": relations}
    return {"ops": {name: {"config": config} for name, config in parts.items() if config}}


def failures(result: dg.ExecuteInProcessResult) -> Iterator[str]:
    """What failed in a run: steps, then asset checks with their details, else the reason why the run itself failed."""
    messages = [*_failed_steps(result), *_failed_checks(result)]
    if not messages and not result.success:
        messages.append(_run_failure(result))
    yield from messages


def _run_failure(result: dg.ExecuteInProcessResult) -> str:
    for event in reversed(result.all_events):
        if event.event_type == dg.DagsterEventType.RUN_FAILURE:
            return _innermost(event.job_failure_data.error) if event.job_failure_data.error else str(event.message)
    return "The run failed."


def _failed_steps(result: dg.ExecuteInProcessResult) -> Iterator[str]:
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            cause = event.step_failure_data.user_failure_data
            message = cause.description if cause and cause.description else _innermost(error)
            yield f"{event.step_key}: {message}"


def _failed_checks(result: dg.ExecuteInProcessResult) -> Iterator[str]:
    for check in result.get_asset_check_evaluations():
        if not check.passed:
            yield f"{check.asset_key.to_user_string()}: check {check.check_name} failed{_details(check.metadata)}"


def stored_counts(settings: ProjectSettings) -> dict[str, int]:
    """What the project's graph holds."""
    with settings.stores.graph.open(settings.data_folder / "graph") as graph:
        return asdict(graph.stats())


def metadata_by_asset(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """What each asset of a run told of itself, as plain values."""
    return {
        event.asset_key.to_user_string(): {
            name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
        if event.asset_key
    }


def _innermost(error: Any) -> str:
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error is not None else "failed"


def _details(metadata: Any) -> str:
    for value in metadata.values():
        if isinstance(value, dg.TableMetadataValue):
            return "".join(
                "\n  " + ": ".join(str(cell) for cell in record.data.values() if cell != "") for record in value.records
            )
    return ""


@contextmanager
def bars(console: Console) -> Iterator[None]:
    """Show the progress of what runs meanwhile, a bar a kind of work."""
    columns = (SpinnerColumn(), TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=False) as progress:
        tasks: dict[str, Any] = {}

        def show(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=total)
            progress.update(tasks[step], completed=done, total=total)

        with listening(show):
            yield
