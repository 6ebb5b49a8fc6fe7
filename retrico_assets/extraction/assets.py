"""Chunks become mentions of entities, and relations between them."""

from collections.abc import Mapping

import dagster as dg
import pandas as pd
from pydantic import Field

from resources.dagster_resources import ModelsResource
from resources.frames import entities_frame, records, relations_frame
from resources.records import Chunk, Mention, RelationMention
from retrico_assets import report
from retrico_assets.extraction.cache import CACHE_FILE, ExtractionCache
from retrico_assets.extraction.run import EntityReport, RelationReport, extract_entities, extract_relations
from retrico_assets.failures import as_dagster_failure
from retrico_assets.frames_io import FRAME
from retrico_assets.progress import reporter
from retrico_assets.project import BuildLock, ProjectResource


class EntitiesConfig(dg.Config):
    """Labels and threshold of this run, where they differ from the project file. Bounds are those of the backend's options."""

    labels: list[str] | None = Field(default=None, description="Labels of entities. Default: labels.entities.")
    threshold: float | None = Field(default=None, description="Least score of an entity. Default: models.entities.threshold.")
    relation_labels: list[str] | None = Field(
        default=None, description="Set as for the asset relations, so that one pass of a joint model serves both."
    )


class RelationsConfig(dg.Config):
    """Labels and thresholds of this run, where they differ from the project file. Bounds are those of the backend's options."""

    labels: list[str] | None = Field(default=None, description="Labels of relations. Default: labels.relations.")
    entity_labels: list[str] | None = Field(default=None, description="Set as labels of the asset entities.")
    threshold: float | None = Field(default=None, description="Set as for the asset entities.")
    relation_threshold: float | None = Field(
        default=None, description="Least score of a relation. Default: models.relations.relation_threshold."
    )


def _all_chunks_read(asset: str) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec("all_chunks_read", asset=asset, description="No chunk failed, and every word was read.")


_SPANS_MATCH = dg.AssetCheckSpec(
    "offsets_match", asset="entities", description="Each mention's text is what its chunk says between its offsets."
)
_ENDS_EXIST = dg.AssetCheckSpec(
    "ends_are_mentions", asset="relations", description="Head and tail of each relation are mentions of its chunk."
)


@dg.asset(
    group_name="extraction",
    io_manager_key="frames",
    dagster_type=FRAME,
    kinds={"huggingface"},
    check_specs=[_all_chunks_read("entities"), _SPANS_MATCH],
)
@as_dagster_failure
def entities(
    context: dg.AssetExecutionContext,
    config: EntitiesConfig,
    chunks: pd.DataFrame,
    project: ProjectResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """Every place where a chunk names an entity, a row a mention.

    Idempotent and resumable: what a model said of a text is cached as work proceeds, so an unchanged chunk is not read
    again and a killed build goes on where it stopped. A chunk that fails is reported; the others are kept.
    """
    watch = report.Stopwatch()
    pieces = records(chunks, Chunk)
    changes = {"threshold": config.threshold}
    extractor = models.entity_extractor(config.labels, changes)
    joint = models.relation_extractor(config.relation_labels, entity_labels=config.labels, entity_changes=changes)
    with ExtractionCache(project.settings.data_folder / CACHE_FILE) as cache:
        result = extract_entities(
            pieces, extractor, cache, joint=joint, on_progress=reporter("entities", context.log.info, "chunks")
        )
    frame = entities_frame(result.mentions)
    return dg.MaterializeResult(
        value=frame,
        metadata={
            **report.sample(frame, ["text", "label", "score", "start", "end", "chunk_id"]),
            **_mentions_by_label(frame["label"]),
            **_extraction_counts(result, len(pieces)),
            **watch.rates(len(pieces)),
        },
        check_results=[_chunks_read(context, result), _spans_match(pieces, result.mentions)],
    )


@dg.asset(
    group_name="extraction",
    io_manager_key="frames",
    dagster_type=FRAME,
    kinds={"huggingface"},
    check_specs=[_all_chunks_read("relations"), _ENDS_EXIST],
)
@as_dagster_failure
def relations(
    context: dg.AssetExecutionContext,
    config: RelationsConfig,
    chunks: pd.DataFrame,
    entities: pd.DataFrame,
    project: ProjectResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """Every place where a chunk states a relation between two of its mentions.

    When one model serves both, its pass over the text for ``entities`` already found these, and no model is called.
    Otherwise the mentions are handed to the relation model as spans. Cached and resumable as ``entities``.
    """
    watch = report.Stopwatch()
    pieces = records(chunks, Chunk)
    mentions = records(entities, Mention)
    extractor = models.relation_extractor(
        config.labels,
        {"relation_threshold": config.relation_threshold},
        entity_labels=config.entity_labels,
        entity_changes={"threshold": config.threshold},
    )
    if extractor is None:
        context.log.info("No relations are extracted: labels.relations is empty.")
        result = RelationReport(relations=(), failed={}, truncated={}, cached=0, model_calls=0)
    else:
        with ExtractionCache(project.settings.data_folder / CACHE_FILE) as cache:
            result = extract_relations(
                pieces, mentions, extractor, cache, on_progress=reporter("relations", context.log.info, "chunks")
            )
    frame = relations_frame(result.relations)
    return dg.MaterializeResult(
        value=frame,
        metadata={
            **report.sample(frame, ["head_text", "relation", "tail_text", "score", "head_label", "tail_label", "chunk_id"]),
            **_mentions_by_label(frame["relation"]),
            **_extraction_counts(result, len(pieces)),
            **report.listing("crowded_chunks", {c: f"{n} mentions not paired" for c, n in result.dropped.items()}),
            **watch.rates(len(pieces)),
        },
        check_results=[_chunks_read(context, result), _ends_exist(mentions, result.relations)],
    )


def _mentions_by_label(labels: pd.Series) -> Mapping[str, dg.MetadataValue]:
    rows = [{"label": str(label), "count": int(count)} for label, count in labels.value_counts().items()]
    return {"by_label": report.table(rows)} if rows else {}


def _extraction_counts(result: EntityReport | RelationReport, chunks: int) -> Mapping[str, dg.MetadataValue]:
    return {
        **report.counts(
            chunks=chunks,
            cached=result.cached,
            failed=len(result.failed),
            truncated=len(result.truncated),
            model_calls=result.model_calls,
        ),
        **report.listing("failed_chunks", result.failed),
        **report.listing("truncated_chunks", {chunk: f"{words} words not read" for chunk, words in result.truncated.items()}),
    }


def _chunks_read(context: dg.AssetExecutionContext, result: EntityReport | RelationReport) -> dg.AssetCheckResult:
    for chunk, reason in result.failed.items():
        context.log.error(f"chunk {chunk} failed: {reason}")
    return dg.AssetCheckResult(
        passed=not result.failed and not result.truncated,
        check_name="all_chunks_read",
        metadata=report.counts(failed=len(result.failed), truncated=len(result.truncated))
        | report.listing("failed_chunks", result.failed),
    )


def _spans_match(chunks: list[Chunk], mentions: tuple[Mention, ...]) -> dg.AssetCheckResult:
    by_id = {chunk.id: chunk for chunk in chunks}
    wrong = {}
    for mention in mentions:
        chunk = by_id[mention.chunk_id]
        if chunk.text[mention.start - chunk.start : mention.end - chunk.start] != mention.text:
            wrong[f"{mention.text} in {chunk.id}"] = f"{mention.start} to {mention.end}"
    return dg.AssetCheckResult(passed=not wrong, check_name=_SPANS_MATCH.name, metadata=report.listing("misplaced", wrong))


def _ends_exist(mentions: list[Mention], relations: tuple[RelationMention, ...]) -> dg.AssetCheckResult:
    places = {(mention.chunk_id, mention.start, mention.end) for mention in mentions}
    missing = {
        f"{r.head_text} {r.relation} {r.tail_text}": f"in chunk {r.chunk_id}"
        for r in relations
        if not {(r.chunk_id, r.head_start, r.head_end), (r.chunk_id, r.tail_start, r.tail_end)} <= places
    }
    return dg.AssetCheckResult(passed=not missing, check_name=_ENDS_EXIST.name, metadata=report.listing("missing_ends", missing))
