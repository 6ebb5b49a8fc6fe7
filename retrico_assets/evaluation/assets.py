"""How good retrieval is, as an asset."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import dagster as dg
from pydantic import Field

from resources.dagster_resources import GraphStoreResource, ModelsResource, TextStoreResource, VectorStoreResource
from resources.errors import SettingsError
from retrico_assets import report
from retrico_assets.evaluation.measure import Measured, Way, measure
from retrico_assets.evaluation.questions import read_questions, unknown_sources
from retrico_assets.failures import told_plainly
from retrico_assets.kg.score import trained_model
from retrico_assets.progress import reporter
from retrico_assets.project import ProjectResource
from retrico_assets.query.answer import StrategyOptions, merged_options
from retrico_assets.query.providers.graph_handle import GRAPH_STRATEGY
from retrico_assets.query.providers.rule import serving_providers
from retrico_assets.query.retrievers.base import RETRIEVERS, Sources, check_strategies, retriever_class
from retrico_assets.settings import ProjectSettings

_FUSED = (
    ("entity", "pagerank"),
    ("keyword", "chunk_embedding"),
    ("entity", "keyword", "chunk_embedding"),
    ("pagerank", "keyword", "chunk_embedding"),
)
_LISTED = 10


class RetrievalReportConfig(dg.Config):
    """What to measure retrieval with."""

    questions: str | None = Field(
        default=None,
        description="A JSON Lines file, a line a question: question, and sources (the documents that answer it). "
        "Default: questions.jsonl in the project's data folder.",
    )
    strategies: list[str] | None = Field(default=None, description="Default: all that the project has the means for.")
    fused: list[list[str]] | None = Field(default=None, description="Sets of strategies to measure fused (rrf). Default: a few.")


@dg.asset(
    group_name="evaluation",
    deps=["entity_graph", "chunk_embeddings", "entity_embeddings", "relation_embeddings"],
    kinds={"python"},
)
@told_plainly
def retrieval_report(
    context: dg.AssetExecutionContext,
    config: RetrievalReportConfig,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    text_store: TextStoreResource,
    vector_store: VectorStoreResource,
    models: ModelsResource,
) -> dg.MaterializeResult:
    """Recall of each strategy and of some fusions, on questions whose documents are known. Without questions an empty report."""
    file = Path(config.questions).expanduser() if config.questions else project.settings.data_folder / "questions.jsonl"
    if not config.questions and not file.exists():
        note = f'no questions: write {file}, a line {{"question": "...", "sources": ["a.md"]}} each, or name another file'
        return dg.MaterializeResult(metadata={"questions": 0, "note": note})
    questions = read_questions(file)
    settings = project.settings
    with ExitStack() as opened:
        llm = models.llm()
        sources = Sources(
            graph=opened.enter_context(graph_store.connect()),
            texts=opened.enter_context(text_store.connect()),
            vectors=opened.enter_context(vector_store.connect()),
            embedder=models.embedder(),
            llm=llm and opened.enter_context(closing(llm)),
            kg=trained_model(settings.data_folder),
            cache=settings.query_cache,
            project=settings,
        )
        assert sources.texts is not None
        unknown = unknown_sources(questions, sources.texts)
        if unknown:
            context.log.warning(_unknown(unknown))
        ways = ways_to_ask(config.strategies, config.fused, sources)
        measured = measure(
            questions,
            ways,
            sources,
            models.entity_extractor(),
            _options(ways, settings),
            reporter("questions", context.log.info, "questions"),
        )
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
        note = f" ({failed} of {score.questions} failed)" if failed else ""
        lines.append(f"| {score.name}{note} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |")
    lines += ["", f"ms: median a question; reading it (names, embedding) costs {measured.reading:.1f} ms more, once."]
    return "\n".join(lines)


def ways_to_ask(strategies: Sequence[str] | None, fused: Sequence[Sequence[str]] | None, sources: Sources) -> list[Way]:
    """Each strategy and each set to fuse, once; None: those that ``sources`` can serve, and a few sets of them."""
    chosen = check_strategies(strategies) if strategies is not None else _possible(sources)
    sets = [check_strategies(names) for names in (_FUSED if fused is None else fused)]
    if fused is None:
        sets = [names for names in sets if set(names) <= set(chosen)]
    ways = {names: Way(" + ".join(names), names) for names in (*((name,) for name in chosen), *sets)}
    if not ways:
        raise SettingsError("retrieval_report has nothing to measure: name strategies or sets to fuse")
    return list(ways.values())


def _options(ways: Sequence[Way], settings: ProjectSettings) -> StrategyOptions:
    """As questions have them that say nothing of their own."""
    names = list(dict.fromkeys(name for way in ways for name in way.strategies))
    query = settings.query
    return merged_options(names, [({"hops": query.hops}, {name: own for name, own in query.options.items() if name in names})])


def _unknown(sources: Sequence[str]) -> str:
    listed = ", ".join(sources[:_LISTED]) + (f" and {len(sources) - _LISTED} more" if len(sources) > _LISTED else "")
    return (
        f"{len(sources)} of the sources are of no document and count as never found: {listed}; "
        "a source is the path of a file in corpus.path, its parts joined by /"
    )


def _possible(sources: Sources) -> tuple[str, ...]:
    """Strategies whose needs the project meets: without a language model or a graph provider, those that can do without."""
    served = sources.project is None or bool(serving_providers(sources.project))
    return tuple(
        name
        for name in RETRIEVERS
        if all(getattr(sources, need) is not None for need in retriever_class(name).needs - {"names"})
        and (served or name != GRAPH_STRATEGY)
    )
