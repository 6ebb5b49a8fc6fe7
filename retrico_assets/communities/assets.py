"""Assets of communities: detected, summarised, embedded and drawn."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from resources.dagster_resources import GraphStoreResource, ModelsResource, TextStoreResource, VectorStoreResource
from retrico_assets import report
from retrico_assets.communities.detect import relation_row, weighted_graph
from retrico_assets.communities.embedding import EmbedderOfRepeatedTexts, embedding_text
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.communities.page import CommunityPage
from retrico_assets.communities.summarise import Summarised, summarise_communities
from retrico_assets.communities.update import LevelFigures, Update, level_figures, level_modularity, update_communities
from retrico_assets.embeddings.sync import COMMUNITY_INDEX, sync_index
from retrico_assets.failures import as_dagster_failure
from retrico_assets.progress import reporter
from retrico_assets.project import BuildLock, ProjectResource
from retrico_assets.run_config import RunConfig, fields_of

_EACH_IN_ONE = dg.AssetCheckSpec(
    "each_entity_in_one", asset="communities", description="On each level, every entity of the graph is in exactly one community."
)
_ALL_SUMMARISED = dg.AssetCheckSpec(
    "all_summarised",
    asset="community_summaries",
    description="The language model wrote a summary for every community it was given.",
)


@fields_of(CommunityOptions, "method", "levels", "resolution", "seed")
class CommunitiesConfig(RunConfig):
    """How to detect communities in this run. Values that are left out are those of `communities` in project.yaml."""


@fields_of(CommunityOptions, "top_k", "token_budget", "token_limit")
class CommunitySummariesConfig(RunConfig):
    """How to summarise in this run. Values that are left out are those of `communities` in project.yaml."""


@dg.asset(group_name="communities", kinds={"graph"}, deps=["graph"], check_specs=[_EACH_IN_ONE])
@as_dagster_failure
def communities(
    context: dg.AssetExecutionContext,
    config: CommunitiesConfig,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """Entities that belong together, level by level, in the graph store.

    Idempotent: communities are detected again only if relations or options have changed, and only differences are written. A
    community with the same members keeps its id, title, summary and vector.
    """
    watch = report.Stopwatch()
    options = config.replace_in(project.settings.communities)
    with graph_store.connect() as store:
        update = update_communities(store, options, _state(project, "communities.json"))
    context.log.info(
        f"Detected {len(update.communities):,} communities on {len(update.levels)} levels by {update.method}."
        if update.detected
        else "The graph has not changed, so communities were not detected again."
    )
    return dg.MaterializeResult(
        metadata=_update_metadata(update) | watch.rates(update.entities), check_results=[_each_in_one(update)]
    )


@dg.asset(group_name="communities", kinds={"graph"}, deps=["communities"], check_specs=[_ALL_SUMMARISED])
@as_dagster_failure
def community_summaries(
    context: dg.AssetExecutionContext,
    config: CommunitySummariesConfig,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    text_store: TextStoreResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """A title and a summary of each community, by the language model if the project has one, else extractive.

    Idempotent: only communities whose members, relations, chunks or parts have changed are summarised again.
    """
    watch = report.Stopwatch()
    settings = config.replace_in(project.settings.communities)
    llm = models.llm()
    try:
        with graph_store.connect() as store, text_store.connect() as texts:
            result = summarise_communities(
                store,
                texts,
                llm,
                _state(project, "community_summaries.json"),
                settings,
                on_progress=reporter("summaries", context.log.info, "communities"),
            )
        metadata = _summary_metadata(result) | ({"usage": dg.MetadataValue.json(asdict(llm.usage))} if llm else {})
    finally:
        if llm:
            llm.close()
    # Communities beyond token_limit are not failures. They have an extractive summary, like those that failed.
    failed = len(result.failures) - result.not_asked
    return dg.MaterializeResult(
        metadata=metadata | watch.rates(result.by_model + result.extractive),
        check_results=[
            dg.AssetCheckResult(
                passed=not failed,
                check_name=_ALL_SUMMARISED.name,
                metadata=report.listing("failures", result.failures) | report.counts(failed=failed, not_asked=result.not_asked),
            )
        ],
    )


@dg.asset(group_name="communities", kinds={"faiss"}, deps=["community_summaries"])
@as_dagster_failure
def community_embeddings(
    context: dg.AssetExecutionContext,
    graph_store: GraphStoreResource,
    vector_store: VectorStoreResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """A vector of each community's title and summary.

    Idempotent: only new texts are embedded, and vectors of removed texts are deleted. A text that communities of several levels
    share is embedded once. A community of one entity has no vector: its name is in entity_embeddings.
    """
    watch = report.Stopwatch()
    with graph_store.connect() as store:
        texts = {c.id: embedding_text(c) for c in store.communities() if c.summary and len(c.member_ids) > 1}
    embedder = EmbedderOfRepeatedTexts(models.embedder(), texts.values())
    with vector_store.connect() as vectors:
        result = sync_index(vectors, COMMUNITY_INDEX, embedder, texts, reporter(COMMUNITY_INDEX, context.log.info, "texts"))
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": dg.MetadataValue.int(len(texts)),
            **report.counts(**result.counts()),
            "model": dg.MetadataValue.text(embedder.name),
            **watch.rates(result.embedded),
        }
    )


@dg.asset(group_name="communities", kinds={"html"}, deps=["community_summaries"])
@as_dagster_failure
def community_report(project: ProjectResource, graph_store: GraphStoreResource) -> dg.MaterializeResult:
    """The communities as pictures and tables, in the UI and in an HTML file that needs no network."""
    with graph_store.connect() as store:
        stored = store.communities()
        names = {entity.id: entity.label for entity in store.entities()}
        graph = weighted_graph(names, map(relation_row, store.relations()))
    figures = level_figures(stored, level_modularity(graph, stored))
    page = CommunityPage(graph, stored, figures, names)
    file = project.settings.data_folder / "reports" / "communities.html"
    rewritten = _write_if_changed(file, page.html().encode("utf-8", "replace"))
    top = page.top()
    return dg.MaterializeResult(
        metadata={
            "picture": dg.MetadataValue.md(page.markdown()),
            **({"levels": report.table(_level_rows(figures))} if figures else {}),
            **({"communities": report.table(top)} if top else {}),
            "file": dg.MetadataValue.path(str(file)),
            "file_rewritten": dg.MetadataValue.bool(rewritten),
        }
    )


def _write_if_changed(file: Path, content: bytes) -> bool:
    if file.is_file() and file.read_bytes() == content:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return True


def _each_in_one(update: Update) -> dg.AssetCheckResult:
    members: dict[int, list[str]] = {}
    for community in update.communities:
        members.setdefault(community.level, []).extend(community.member_ids)
    wrong_levels = [level for level, ids in members.items() if len(ids) != update.entities or len(set(ids)) != update.entities]
    return dg.AssetCheckResult(
        passed=not wrong_levels,
        check_name=_EACH_IN_ONE.name,
        metadata=report.listing("wrong", {f"level {level}": f"{len(set(members[level])):,} entities" for level in wrong_levels}),
    )


def _state(project: ProjectResource, name: str) -> Path:
    return project.settings.data_folder / name


def _update_metadata(update: Update) -> dict[str, dg.MetadataValue]:
    return {
        "dagster/row_count": dg.MetadataValue.int(len(update.communities)),
        **({"levels": report.table(_level_rows(update.levels))} if update.levels else {}),
        "detected": dg.MetadataValue.bool(update.detected),
        "method": dg.MetadataValue.text(update.method),
        **report.counts(
            entities=update.entities,
            edges=update.edges,
            rows_written=update.written,
            communities_kept=update.kept,
            communities_new=len(update.communities) - update.kept,
        ),
    }


def _level_rows(figures: Sequence[LevelFigures]) -> list[dict[str, object]]:
    return [
        {
            "level": f.level,
            "communities": f.communities,
            "largest": f.largest,
            "of_one_entity": f.alone,
            "modularity": f.modularity,
        }
        for f in figures
    ]


def _summary_metadata(result: Summarised) -> dict[str, dg.MetadataValue]:
    largest = sorted(result.communities, key=lambda c: (-c.level, -len(c.member_ids), c.id))[: report.SAMPLE_ROWS]
    rows = [{"level": c.level, "members": len(c.member_ids), "title": c.title, "summary": c.summary} for c in largest]
    return {
        "dagster/row_count": dg.MetadataValue.int(len(result.communities)),
        **({"sample": report.table(rows)} if rows else {}),
        **report.counts(
            by_model=result.by_model,
            extractive=result.extractive,
            same_as_their_only_part=result.same,
            unchanged=result.unchanged,
            failed=len(result.failures) - result.not_asked,
            not_asked=result.not_asked,
            rows_written=result.written,
        ),
        **report.listing("failures", result.failures),
        **report.listing("notes", result.notes),
    }
