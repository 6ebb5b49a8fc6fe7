"""`retrico model`: the job `train_kg_model`, and what came of it."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from retrico_assets.cli.build import bars, failures, metadata_by_asset
from retrico_assets.cli.instance import opened_instance, run_job
from retrico_assets.kg.assets import KGModelConfig, KGTriplesConfig

_COUNTS = ("entities", "relations", "train", "validation", "test", "epochs")
_METRICS = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")


@dataclass(frozen=True)
class ModelOutcome:
    """The summary as `--json` prints it, and what failed, in words."""

    summary: dict[str, Any]
    failures: tuple[str, ...]


def train(values: Mapping[str, Any], retrain: bool, console: Console | None, log_level: str) -> ModelOutcome:
    """Run the job `train_kg_model` of the project in force, with progress bars on ``console`` if there is one.

    ``values`` are options of KG models; those that are left out are the project's.
    """
    triples = {name: value for name, value in values.items() if name in KGTriplesConfig.model_fields}
    model = {name: value for name, value in values.items() if name in KGModelConfig.model_fields}
    config = {"kg_triples": {"config": triples}, "kg_model": {"config": model | {"retrain": retrain}}}
    with opened_instance() as instance, bars(console) if console else nullcontext():
        run = run_job("train_kg_model", {"ops": config}, instance, log_level)
    found = metadata_by_asset(run)
    summary = _summary(found.get("kg_model", {})) | {"left_out": _left_out(found.get("kg_triples", {}))}
    return ModelOutcome(summary, tuple(failures(run)))


def lines(summary: Mapping[str, Any]) -> list[str]:
    """The summary for people; nothing if there is none."""
    left_out = [f"left out: {row['what']}{': ' if row['why'] else ''}{row['why']}" for row in summary["left_out"]]
    if not summary.get("folder"):
        return [*left_out, *([summary["note"]] if "note" in summary else [])]
    counts = ", ".join(f"{summary[name]:,} {name}" for name in _COUNTS)
    metrics = "  ".join(f"{name} {summary['metrics'][name]:.4f}" for name in _METRICS if name in summary["metrics"])
    told = [f"{summary['model']} of {counts}", metrics, summary.get("note", "")]
    return [*left_out, *filter(None, told), f"{summary['seconds']} s of training on {summary['device']}", summary["folder"]]


def _summary(found: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: found[name] for name in ("trained", "note", "model", "folder", "seconds", "device", *_COUNTS) if name in found}
    return told | {"metrics": {name: found[name] for name in _METRICS if name in found}}


def _left_out(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of files that could not be read, and triples that can't be evaluated: what, and why."""
    tables = [found[name] for name in ("bad rows", "left out of evaluation") if name in found]
    return [dict(record.data) for table in tables for record in table.records]
