"""The `retrico` command: thin over the same definitions and jobs as the UI. JSON alone goes to stdout."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown

from resources.errors import RetricoError
from retrico_assets.settings import ProjectSettings, load_settings, project_file

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A knowledge graph from your documents, and answers from it.",
)

Project = Annotated[
    Path | None, typer.Option("--project", "-p", help="The project file. Default: RETRICO_PROJECT, else configs/project.yaml.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Dagster's log on stderr.")]


@app.command()
def build(
    path: Annotated[Path | None, typer.Argument(help="Folder of documents. Default: the project's corpus.path.")] = None,
    entity_labels: Annotated[str, typer.Option(help="Entity types to look for, separated by commas.")] = "",
    relation_labels: Annotated[str, typer.Option(help="Relations to look for, separated by commas.")] = "",
    project: Project = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Bring the graph and all that belongs to it up to date with the documents.

    What has not changed is not done again; a killed build goes on where it stopped. Exit code 0 only when nothing failed.
    """
    _use(project)
    from retrico_assets.cli.build import build as run

    console = Console(stderr=True)
    labels = _split(entity_labels), _split(relation_labels)
    outcome = run(path, *labels, console if console.is_terminal else None, _log_level(verbose))
    if as_json:
        _print_json(outcome.summary | ({"errors": list(outcome.failures)} if outcome.failures else {}))
    else:
        _say_build(outcome.summary)
    _end_with(outcome.failures)


@app.command()
def query(
    question: Annotated[str, typer.Argument(help="The question, as you would ask it.")],
    strategy: Annotated[
        str, typer.Option(help="Strategies, separated by commas: entity, chunk_embedding, keyword. Default: all.")
    ] = "",
    top_k: Annotated[int | None, typer.Option(min=1, help="How many entities, relations and chunks at most.")] = None,
    hops: Annotated[int | None, typer.Option(min=0, help="How far from the question's entities to look.")] = None,
    project: Project = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Ask a question: entities, relations and source chunks, and an answer in words if a language model is configured."""
    _use(project)
    from retrico_assets.cli.query import query as run

    outcome = run(question, _split(strategy), top_k, hops, _log_level(verbose))
    if outcome.result is not None:
        _print_json(outcome.result) if as_json else Console().print(Markdown(outcome.markdown))
    errors = [f"{error['strategy']}: {error['error']}" for error in outcome.result["errors"]] if outcome.result else []
    if outcome.answered:
        for error in errors:
            typer.echo(f"warning: {error}", err=True)
        errors = []
    _end_with((*outcome.failures, *errors))


@app.command()
def stats(project: Project = None, as_json: Json = False) -> None:
    """Count what the graph holds."""
    _, settings = _use(project)
    from retrico_assets.cli.build import stored_counts

    counts = stored_counts(settings)
    _print_json(counts) if as_json else typer.echo("\n".join(f"{name:10} {number:>10,}" for name, number in counts.items()))


@app.command()
def stop(project: Project = None) -> None:
    """Save and stop the project's embedded graph database. It also stops by itself a while after its last user has left."""
    _, settings = _use(project)
    if settings.stores.graph.backend != "falkordb_embedded":
        typer.echo(f"the graph store is {settings.stores.graph.backend}: there is nothing to stop")
        return
    from resources.graph.embedded import stop_embedded

    stopped = stop_embedded(settings.data_folder / "graph")
    typer.echo("the graph database is saved and stopped" if stopped else "no graph database was running")


@app.command()
def ui(
    project: Project = None,
    host: Annotated[str, typer.Option(help="Address to listen on. There is no password: keep it on this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 3000,
) -> None:
    """Open Dagster's web UI and its daemon (sensors, schedules) on this project, until Ctrl-C."""
    home, _ = _use(project)
    typer.echo(f"project {os.environ['RETRICO_PROJECT']}, records in {home}: http://{host}:{port}", err=True)
    arguments = ["dev", "--module-name", "retrico_assets.definitions", "--host", host, "--port", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "dagster", *arguments])


def main() -> None:
    """Entry point: what a user can mend is one line on stderr and exit code 1, never a trace."""
    try:
        app()
    except RetricoError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from None


def _use(project: Path | None) -> tuple[Path, ProjectSettings]:
    from retrico_assets.cli.instance import prepare_home

    file = project_file(project)
    settings = load_settings(file)
    return prepare_home(file, settings), settings


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _log_level(verbose: bool) -> str:
    return "INFO" if verbose else "CRITICAL"


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _say_build(summary: dict[str, Any]) -> None:
    documents = ", ".join(f"{number} {name}" for name, number in summary["documents"].items())
    typer.echo(f"documents: {documents}")
    typer.echo(", ".join(f"{summary[name]:,} {name}" for name in ("chunks", "mentions", "entities", "relations")))
    typer.echo(f"{summary['model_calls']:,} texts sent to a model, {summary['seconds']} s")


def _end_with(failures: tuple[str, ...]) -> None:
    for failure in failures:
        typer.echo(f"failed: {failure}", err=True)
    if failures:
        raise typer.Exit(1)
