"""`retrico eval`: the asset `retrieval_report`, as a table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrico_assets.cli.build import failures
from retrico_assets.cli.instance import opened_instance, run_job


@dataclass(frozen=True)
class EvalOutcome:
    """The table as Markdown, the scores as JSON data, a line for each failure, and warnings about the figures."""

    markdown: str
    scores: list[dict[str, Any]]
    failures: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def evaluate(questions: Path | None, strategies: list[str], log_level: str) -> EvalOutcome:
    """Run the job `evaluate` of the current project."""
    config: dict[str, Any] = {}
    if questions:
        config["questions"] = str(questions.absolute())
    if strategies:
        config["strategies"] = strategies
    with opened_instance() as instance:
        run = run_job("evaluate", {"ops": {"retrieval_report": {"config": config}}}, instance, log_level)
    made = run.asset_materializations_for_node("retrieval_report") if run.success else []
    metadata: dict[str, Any] = dict(made[0].metadata) if made else {}
    if "recall" not in metadata:
        notes = [metadata["note"].value] if "note" in metadata else []
        return EvalOutcome("", [], (*failures(run), *notes))
    scores = metadata["scores"].value
    warnings = [metadata["unknown_sources"].value] if "unknown_sources" in metadata else []
    warnings += sorted({error for score in scores for error in score["errors"]})
    return EvalOutcome(metadata["recall"].value, scores, tuple(failures(run)), tuple(warnings))
