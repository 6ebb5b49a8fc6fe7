"""Assets of the KG model: its triples, the model and its vectors."""

import math
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
from pydantic import Field

from resources.dagster_resources import GraphStoreResource, VectorStoreResource
from retrico_assets import report
from retrico_assets.failures import as_dagster_failure
from retrico_assets.frames_io import FRAME
from retrico_assets.kg import model_folder, triples
from retrico_assets.kg.model_folder import MODEL_FOLDER, Card
from retrico_assets.kg.options import KGOptions, TrainingOptions
from retrico_assets.kg.pipeline import model_fingerprint
from retrico_assets.kg.report import metrics_rows, training_curve
from retrico_assets.kg.score import trained_model
from retrico_assets.kg.train import train_model
from retrico_assets.kg.triples import SPLITS, Division, ReadTriples
from retrico_assets.kg.vectors import copy_to_nodes, store_vectors
from retrico_assets.progress import reporter
from retrico_assets.project import ProjectResource, held_build_lock
from retrico_assets.run_config import RunConfig, fields_of

_COVERED = dg.AssetCheckSpec(
    "evaluation_covered_by_train",
    asset="kg_triples",
    description="Every entity and relation of the validation and test triples is in the train triples too.",
)
_UNCHANGED = "Neither the triples nor the options have changed, so no model was trained."
_FINITE = dg.AssetCheckSpec(
    "metrics_are_finite",
    asset="kg_model",
    description="The loss and the metrics are finite, or there is a reason why there are no metrics.",
)


@fields_of(KGOptions, "triples", "split", "seed")
class KGTriplesConfig(RunConfig):
    """What to learn from in this run. Values that are left out are those of `kg` in project.yaml."""


@fields_of(KGOptions, *TrainingOptions.model_fields)
class KGModelConfig(RunConfig):
    """How to train in this run. Values that are left out are those of `kg` in project.yaml."""

    retrain: bool = Field(False, description="Train even if neither the triples nor the options have changed.")


@fields_of(KGOptions, "on_nodes")
class KGEmbeddingsConfig(RunConfig):
    """Where the vectors go in this run. Values that are left out are those of `kg` in project.yaml."""


@dg.asset(group_name="kg", kinds={"pandas"}, deps=["graph"], io_manager_key="frames", dagster_type=FRAME, check_specs=[_COVERED])
@as_dagster_failure
def kg_triples(
    context: dg.AssetExecutionContext, config: KGTriplesConfig, project: ProjectResource, graph_store: GraphStoreResource
) -> dg.MaterializeResult:
    """Every relation between two entities of the graph (or of files), split into train, validation and test."""
    watch = report.Stopwatch()
    settings = config.replace_in(project.settings.kg)
    if settings.triples:
        read = triples.read_files(Path(settings.triples))
    else:
        with graph_store.connect() as graph:
            read = triples.read_graph(graph, reporter("kg_triples", context.log.info, "relations"))
    divided = triples.divide(read.frame, settings.split, settings.seed)
    for place, reason in list(read.bad_rows.items())[:20]:
        context.log.warning(f"Left out {place}: {reason}.")
    frame = divided.frame
    frame.attrs = {"revision": read.revision, "no_evaluation": divided.no_evaluation}
    note = _note_on_triples(frame, divided)
    if note:
        context.log.warning(note)
    return dg.MaterializeResult(
        value=frame,
        metadata={
            **_triples_metadata(frame, read, divided),
            **({"note": dg.MetadataValue.text(note)} if note else {}),
            "source": dg.MetadataValue.text(settings.triples or "the graph"),
            **watch.rates(len(frame)),
        },
        check_results=[_covered(frame)],
    )


@dg.asset(group_name="kg", kinds={"pytorch"}, check_specs=[_FINITE])
@as_dagster_failure
def kg_model(
    context: dg.AssetExecutionContext, config: KGModelConfig, kg_triples: pd.DataFrame, project: ProjectResource
) -> dg.MaterializeResult:
    """A PyKEEN model that scores how plausible triples are. Unchanged triples and options are not trained again."""
    settings = project.settings
    folder = settings.data_folder / MODEL_FOLDER
    if note := _nothing_to_learn(kg_triples):
        context.log.warning(note)
        finite = dg.AssetCheckResult(passed=True, check_name=_FINITE.name, metadata={"note": note})
        return dg.MaterializeResult(metadata={"note": note, "trained": False}, check_results=[finite])
    options = config.replace_in(settings.kg)
    revision = kg_triples.attrs.get("revision")
    with model_folder.training_lock(folder, lambda: context.log.info("Another training is running. Waiting for it to end.")):
        version = None if config.retrain else _version_of(folder, options, kg_triples)
        trained = version is None
        if version is None:
            context.log.info(f"Training {options.model} on {len(kg_triples):,} triples.")
            report_epoch = reporter("kg_model", context.log.info, "epochs")
            version = train_model(
                kg_triples,
                options,
                folder,
                revision=revision,
                no_evaluation=kg_triples.attrs.get("no_evaluation"),
                on_epoch=lambda epoch, epochs, loss: report_epoch(epoch, epochs),
            )
        else:
            context.log.info(_UNCHANGED)
            model_folder.set_revision(version, revision)
    card = model_folder.read_card(version)
    return dg.MaterializeResult(
        metadata=_model_metadata(card, version, trained),
        check_results=[_finite(card)],
    )


@dg.asset(group_name="kg", kinds={"faiss"}, deps=["kg_model"])
@as_dagster_failure
def kg_embeddings(
    context: dg.AssetExecutionContext,
    config: KGEmbeddingsConfig,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    vector_store: VectorStoreResource,
) -> dg.MaterializeResult:
    """Vectors of the model's entities and relations. Vectors that are stored already are not written again."""
    watch = report.Stopwatch()
    on_nodes = config.replace_in(project.settings.kg).on_nodes
    # Not a resource of the asset: the run would hold the lock while the model is trained, and builds could not run meanwhile.
    with held_build_lock(project.settings.data_folder, context.run_id, context.log):
        model = trained_model(project.settings.data_folder)
        if model is None:
            note = "No KG model is trained yet, so there are no vectors."
            context.log.warning(note)
            return dg.MaterializeResult(metadata={"note": note, **report.counts(written=0)})
        with vector_store.connect() as vectors:
            written = store_vectors(vectors, model)
        with graph_store.connect() as graph:
            copied = copy_to_nodes(graph, model) if on_nodes else graph.replace_entity_vectors({})
    rows = [
        {"index": name, "vectors": stored.total, "dimension": stored.dimension, "written": stored.written}
        for name, stored in written.items()
    ]
    left_out = {id_: "The vector is zero or not finite." for stored in written.values() for id_ in stored.left_out}
    number = sum(stored.written for stored in written.values())
    note = "No node has a vector: the graph has none of the model's entities." if on_nodes and not copied.held else ""
    if note:
        context.log.warning(note)
    return dg.MaterializeResult(
        metadata={
            **({"note": dg.MetadataValue.text(note)} if note else {}),
            "indexes": report.table(rows),
            **report.counts(written=number, unchanged=sum(stored.total for stored in written.values()) - number),
            **report.listing("left_out", left_out),
            **report.counts(nodes=copied.held, nodes_written=copied.written, nodes_cleared=copied.removed),
            "model": dg.MetadataValue.text(f"{model.card.model} {model.version.name}"),
            **watch.rates(number),
        }
    )


def _version_of(folder: Path, options: TrainingOptions, frame: pd.DataFrame) -> Path | None:
    """The current version if it was trained with these options on these triples."""
    version = model_folder.current_version(folder)
    fingerprint = model_fingerprint(options, triples.fingerprint(frame))
    return version if version is not None and version.name.startswith(f"{fingerprint}-") else None


def _nothing_to_learn(frame: pd.DataFrame) -> str:
    """Why no model can be trained on these triples; empty if one can."""
    if frame.empty:
        return "There are no triples, so no model was trained. Build the graph first, or name a file in kg.triples."
    if len({*frame["head_id"], *frame["tail_id"]}) == 1:  # a corrupted triple needs another entity
        return "All triples join one entity with itself, so no model was trained. Add relations between different entities."
    return ""


def _note_on_triples(frame: pd.DataFrame, divided: Division) -> str:
    if frame.empty:
        return "There are no triples. Build a graph with relations, or name a file in kg.triples."
    return f"All triples are train triples, so there is no evaluation: {divided.no_evaluation}." if divided.no_evaluation else ""


def _triples_metadata(frame: pd.DataFrame, read: ReadTriples, divided: Division) -> dict[str, dg.MetadataValue]:
    return {
        **report.sample(frame, ["head", "relation", "tail", "split"]),
        **report.counts(
            triples=len(frame),
            entities=len({*frame["head_id"], *frame["tail_id"]}),
            relations=frame["relation"].nunique(),
            **{split: int((frame["split"] == split).sum()) for split in SPLITS},
            repeated=read.repeated,
            bad_rows=len(read.bad_rows),
            left_out=len(divided.left_out),
        ),
        **report.listing("bad rows", read.bad_rows),
        **report.listing("left out of evaluation", divided.left_out),
    }


def _model_metadata(card: Card, version: Path, trained: bool) -> dict[str, Any]:
    note = None if trained else _UNCHANGED
    shown: dict[str, Any] = {
        "trained": trained,
        "note": " ".join(filter(None, (note, card.no_evaluation and f"No evaluation: {card.no_evaluation}."))),
        **({"metrics": report.table(metrics_rows(card))} if card.metrics else {}),
        "training curve": dg.MetadataValue.md(training_curve(card)),
        **{name: dg.MetadataValue.float(value) for name, value in card.metrics.items()},
        **report.counts(**card.counts),
        "best epoch": card.best_epoch,
        "final loss": card.losses[-1],
        "seconds": card.seconds,
        "device": card.device,
        "model": card.model,
        "folder": dg.MetadataValue.path(str(version)),
        "graph revision": card.revision,
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}


def _covered(frame: pd.DataFrame) -> dg.AssetCheckResult:
    uncovered = triples.uncovered(frame)
    return dg.AssetCheckResult(
        passed=not uncovered,
        check_name=_COVERED.name,
        metadata=report.listing("not in train", dict.fromkeys(uncovered, "only in validation or test")),
    )


def _finite(card: Card) -> dg.AssetCheckResult:
    figures = {**card.metrics, "final loss": card.losses[-1]}
    infinite = {name: str(value) for name, value in figures.items() if not math.isfinite(value)}
    explained = bool(card.metrics) or card.no_evaluation is not None
    note = {} if explained else {"note": "There are no metrics and no reason for it."}
    return dg.AssetCheckResult(
        passed=not infinite and explained,
        check_name=_FINITE.name,
        metadata={**report.listing("not finite", infinite), **note},
    )
