"""How well retrieval finds the documents that questions need, as an asset."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import dagster as dg
from pydantic import Field

from resources.dagster_resources import GraphStoreResource, ModelsResource, TextStoreResource, VectorStoreResource
from retrico_assets import report
from retrico_assets.evaluation.measure import Measured, Way, measure
from retrico_assets.evaluation.questions import read_questions, unknown_sources
from retrico_assets.failures import as_dagster_failure
from retrico_assets.progress import reporter
from retrico_assets.project import ProjectResource
from retrico_assets.query.plan import StrategyOptions, merge_options, project_layer
from retrico_assets.query.project_session import project_session
from retrico_assets.query.providers.graph_handle import GRAPH_STRATEGY
from retrico_assets.query.providers.rule import serving_providers
from retrico_assets.query.retrievers.base import check_strategies, known_strategies, retriever_class
from retrico_assets.query.session import QuerySession
from retrico_assets.settings import ProjectSettings

_FUSED: tuple[tuple[str, ...], ...] = (
    ("entity", "pagerank"),
    ("keyword", "chunk_embedding"),
    ("entity", "keyword", "chunk_embedding"),
    ("pagerank", "keyword", "chunk_embedding"),
)
_LISTED = 10


class RetrievalReportConfig(dg.Config):
    """Which questions and strategies to measure."""

    questions: str | None = Field(
        default=None,
        description="A JSON Lines file with one question per line: question, and sources (the documents that answer it). "
        "Default: questions.jsonl in the project's data folder.",
    )
    strategies: list[str] | None = Field(
        default=None, description="Strategies to measure. Default: all whose sources the project has."
    )
    fused: list[list[str]] | None = Field(
        default=None, description="Sets of strategies to fuse (rrf) and measure. Default: some sets of the strategies."
    )


@dg.asset(
    group_name="evaluation",
    deps=["entity_graph", "chunk_embeddings", "entity_embeddings", "relation_embeddings"],
    kinds={"python"},
)
@as_dagster_failure
def retrieval_report(
    context: dg.AssetExecutionContext,
    config: RetrievalReportConfig,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    text_store: TextStoreResource,
    vector_store: VectorStoreResource,
    models: ModelsResource,
) -> dg.MaterializeResult[None]:
    """Recall of each strategy and of some fusions, on questions whose documents are known. Empty without questions."""
    file = Path(config.questions).expanduser() if config.questions else project.settings.data_folder / "questions.jsonl"
    if not config.questions and not file.exists():
        note = f'There are no questions. Write {file}, with a line {{"question": "...", "sources": ["a.md"]}} for each.'
        return dg.MaterializeResult(metadata={"questions": 0, "note": note})
    questions = read_questions(file)
    settings = project.settings
    with project_session(
        graph_store,
        text_store,
        vector_store,
        models,
        data_folder=settings.data_folder,
        cache=settings.query_cache,
        project=settings.retrieval_facts,
        warn=context.log.warning,
    ) as session:
        session.open("graph")  # without it, or the texts, there is nothing to measure
        unknown = unknown_sources(questions, session.open("texts"))
        if unknown:
            context.log.warning(_unknown(unknown))
        strategies = _available(session, settings) if config.strategies is None else config.strategies
        ways = ways_to_measure(strategies, config.fused)
        progress = reporter("questions", context.log.info, "questions")
        measured = measure(questions, ways, session, _options(ways, settings), progress)
    errors = {f"{score.name}: {error}": times for score in measured.scores for error, times in score.errors.items()}
    return dg.MaterializeResult(
        metadata={
            "recall": dg.MetadataValue.md(markdown(measured)),
            "scores": dg.MetadataValue.json([asdict(score) for score in measured.scores]),
            "questions": dg.MetadataValue.int(len(questions)),
            "reading_milliseconds": dg.MetadataValue.float(round(measured.reading, 2)),
            **({"unknown_sources": _unknown(unknown)} if unknown else {}),
            **report.listing("errors", errors),
        }
    )


def markdown(measured: Measured) -> str:
    """The table of scores, best recall at 5 first."""
    lines = ["| way | R@2 | R@5 | R@10 | all@8 | ms |", "|---|---:|---:|---:|---:|---:|"]
    for score in sorted(measured.scores, key=lambda s: (-s.recall_at_5, s.name)):
        figures = (score.recall_at_2, score.recall_at_5, score.recall_at_10, score.all_at_8, score.milliseconds)
        failed = sum(score.errors.values())
        note = f" ({failed} errors)" if failed else ""
        lines.append(f"| {score.name}{note} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |")
    lines += ["", f"ms: median per question. Reading it (names, embedding) takes {measured.reading:.1f} ms more, once."]
    return "\n".join(lines)


def ways_to_measure(strategies: Sequence[str], fused: Sequence[Sequence[str]] | None) -> list[Way]:
    """Each strategy and each set of strategies to fuse, once. Without ``fused``: some sets of these strategies.

    Raises:
        SettingsError: a strategy is unknown, or there is none.
    """
    chosen = check_strategies(strategies)
    if fused is None:
        sets = [names for names in _FUSED if set(names) <= set(chosen)]
    else:
        sets = [check_strategies(names) for names in fused]
    combinations = dict.fromkeys([*((name,) for name in chosen), *sets])
    return [Way(" + ".join(names), names) for names in combinations]


def _available(session: QuerySession, settings: ProjectSettings) -> tuple[str, ...]:
    """The strategies whose sources the project has: some need a language model, a KG model or a graph provider."""
    graph_is_served = bool(serving_providers(settings.retrieval_facts))
    return tuple(
        name for name in known_strategies() if _has_sources(session, name) and (graph_is_served or name != GRAPH_STRATEGY)
    )


def _has_sources(session: QuerySession, strategy: str) -> bool:
    return all(session.open(need) is not None for need in retriever_class(strategy).needs if need != "names")


def _options(ways: Sequence[Way], settings: ProjectSettings) -> StrategyOptions:
    """The options of the strategies as the project sets them."""
    names = list(dict.fromkeys(name for way in ways for name in way.strategies))
    query = settings.query
    return merge_options(names, [project_layer(query, names)])


def _unknown(sources: Sequence[str]) -> str:
    listed = ", ".join(sources[:_LISTED])
    if len(sources) > _LISTED:
        listed += f" and {len(sources) - _LISTED} more"
    return (
        f"{len(sources)} expected sources match no document and count as misses: {listed}. "
        "A source is the path of a file below corpus.path, with / between its parts."
    )
