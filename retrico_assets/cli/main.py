"""The `retrico` command: thin over the same definitions and jobs as the UI. JSON alone goes to stdout."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from typer.core import TyperCommand

from resources.errors import RetricoError, RunInterruptedError, SettingsError
from retrico_assets.cli.flags import check, flags_of
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.kg.options import KGOptions
from retrico_assets.query.options import QuestionOptions
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
def init(
    folder: Annotated[Path, typer.Argument(help="Where the project is written.")] = Path("."),
    demo: Annotated[bool, typer.Option("--demo", help="With the documents of the demo.")] = False,
) -> None:
    """Write a new project: project.yaml with comments, dagster.yaml and a folder for documents."""
    from retrico_assets.cli.init import init as run

    written = run(folder, demo)
    for file in written:
        typer.echo(f"wrote {file}")
    typer.echo(f"Put documents into {folder / 'corpus'}, then run: retrico build --project {folder / 'project.yaml'}")


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


class _QueryCommand(TyperCommand):
    """Lists the strategies under its help, and only there: to say what they do, their modules are imported."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from retrico_assets.cli.query import strategy_lines

        lines = [f"{name}: {about}" for name, about, _ in strategy_lines()]
        self.epilog = "\n\n".join(["Strategies (their options: retrico strategies):", *map(escape, lines)])
        super().format_help(ctx, formatter)


_QUERY_NAMES = {"strategies": "strategy"}


@app.command(cls=_QueryCommand)
@flags_of(
    QuestionOptions,
    "strategies",
    "top_k",
    "hops",
    "active_after",
    "active_before",
    "fusion",
    "rrf_k",
    "min_sources",
    "rerank",
    "chunk_source",
    names=_QUERY_NAMES,
)
def query(
    question: Annotated[str, typer.Argument(help="The question, as you would ask it.")],
    values: dict[str, Any],
    option: Annotated[
        list[str] | None, typer.Option(help="An option of a strategy, as entity.hops=3. Can be used several times.")
    ] = None,
    weights: Annotated[str, typer.Option(help="How much each strategy counts, as entity=2,keyword=1.")] = "",
    stream: Annotated[
        bool | None, typer.Option("--stream/--no-stream", help="Show the answer as it is written. Default: on a terminal.")
    ] = None,
    project: Project = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Ask a question: entities, relations and source chunks, and an answer in words if a language model is configured."""
    _use(project)
    from retrico_assets.cli.query import query as run
    from retrico_assets.cli.query import read_options, read_weights
    from retrico_assets.cli.stream import shown_as_written

    check(QuestionOptions(), values, _QUERY_NAMES)
    settings = values | {"options": read_options(option or []), "weights": read_weights(weights)}
    with shown_as_written(stream, as_json) as on_text:
        outcome = run(question, settings, _log_level(verbose), on_text)
    if outcome.result is not None:
        _print_json(outcome.result) if as_json else Console().print(Markdown(outcome.markdown))
    errors = [f"{error['strategy']}: {error['error']}" for error in outcome.result["errors"]] if outcome.result else []
    if outcome.answered:
        for error in errors:
            typer.echo(f"warning: {error}", err=True)
        errors = []
    _end_with((*outcome.failures, *errors))


@app.command()
@flags_of(CommunityOptions, "method", "levels", "resolution", "seed")
def community(
    values: dict[str, Any],
    ask: Annotated[str | None, typer.Option(help="Ask all communities of a level this question instead.")] = None,
    level: Annotated[int | None, typer.Option(help="With --ask: the level to ask. Default: chosen by size.")] = None,
    project: Project = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find the communities of the graph, with titles, summaries, vectors and a report.

    Nothing is computed again that has not changed. Options that are left out are those of `communities` in project.yaml.
    """
    _, settings = _use(project)
    from retrico_assets.cli import community as communities

    check(settings.communities, values)
    if level is not None and ask is None:
        raise SettingsError("--level is only used with --ask. To limit the number of levels, use --levels.")
    if ask is not None:
        answer = communities.ask(ask, level)
        if as_json:
            _print_json(communities.answer_to_json(ask, answer))
        else:
            typer.echo("\n".join(communities.answer_lines(answer)))
        _end_with(tuple(failure.error for failure in answer.failures))
        return
    outcome = communities.detect_communities(values, _log_level(verbose))
    if as_json:
        _print_json(outcome.summary | ({"errors": list(outcome.failures)} if outcome.failures else {}))
    elif outcome.summary["method"]:
        typer.echo("\n".join(communities.describe(outcome.summary)))
    _end_with(outcome.failures)


_KG_NAMES = {"model": "kg_model"}


@app.command()
@flags_of(
    KGOptions,
    "model",
    "embedding_dim",
    "epochs",
    "batch_size",
    "learning_rate",
    "negatives",
    "inverse_triples",
    "pipeline",
    "triples",
    "split",
    "seed",
    "device",
    names=_KG_NAMES,
)
def model(
    values: dict[str, Any],
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train even if neither the triples nor the options have changed.")
    ] = False,
    project: Project = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Train the KG model, which scores how plausible relations are and predicts missing ones.

    Options that are left out are those of `kg` in project.yaml.
    """
    _, settings = _use(project)
    from retrico_assets.cli.model import lines, train

    check(settings.kg, values, _KG_NAMES)
    console = Console(stderr=True)
    outcome = train(values, retrain, console if console.is_terminal else None, _log_level(verbose))
    if as_json:
        _print_json(outcome.summary | ({"errors": list(outcome.failures)} if outcome.failures else {}))
    elif summary := lines(outcome.summary):
        typer.echo("\n".join(summary))
    _end_with(outcome.failures)


@app.command()
def predict(
    relation: Annotated[str, typer.Option(help="The relation's label.")],
    head: Annotated[str | None, typer.Option(help="The head's name or id. Left out: heads are predicted.")] = None,
    tail: Annotated[str | None, typer.Option(help="The tail's name or id. Left out: tails are predicted.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many at most.")] = 10,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="The least score.")] = 0.0,
    project: Project = None,
    as_json: Json = False,
) -> None:
    """Ask the KG model for relations that nobody states, or how plausible one is: scores of 0 to 1, 0.5 being the middle."""
    _, settings = _use(project)
    from retrico_assets.cli.predict import lines
    from retrico_assets.cli.predict import predict as run

    result, warning = run(settings, head, relation, tail, top, threshold)
    _print_json(result) if as_json else typer.echo("\n".join(lines(result)))
    if warning:
        typer.echo(f"warning: {warning}", err=True)


@app.command()
def strategies() -> None:
    """List the ways to look for an answer, and the options of each."""
    from retrico_assets.cli.query import strategy_lines

    for name, about, options in strategy_lines():
        typer.echo(f"{name}\n  {about}")
        if options:
            typer.echo(f"  options: {', '.join(options)}")


@app.command("eval")
def evaluate(
    questions: Annotated[
        Path | None, typer.Argument(help="JSON Lines: question, and sources. Default: questions.jsonl in the data folder.")
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option(help="Strategies, separated by commas. Default: all that the project can run.")
    ] = None,
    project: Project = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure how well each strategy finds the documents that questions need, in percent."""
    _use(project)
    from retrico_assets.cli.evaluate import evaluate as run

    outcome = run(questions, _split(",".join(strategy or [])), _log_level(verbose))
    if outcome.scores:
        _print_json(outcome.scores) if as_json else Console().print(Markdown(outcome.markdown))
    for warning in outcome.warnings:
        typer.echo(f"warning: {warning}", err=True)
    _end_with(outcome.failures)


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
    from resources.graph.falkordb.embedded import stop_embedded

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
    except SystemExit as end:
        if end.code == 130:  # Ctrl-C outside of a run, which typer turns into this exit code without a word
            typer.echo("Interrupted.", err=True)
        raise
    except RunInterruptedError as error:
        typer.echo(str(error), err=True)
        raise SystemExit(130) from None
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


if __name__ == "__main__":
    main()
