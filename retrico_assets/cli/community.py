"""`retrico community`: the job `detect_communities` and what came of it, or a question to all communities of a level."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import dagster as dg

from resources.errors import SettingsError
from retrico_assets.cli.build import failures
from retrico_assets.cli.instance import opened_instance, run_job
from retrico_assets.project import project_resources
from retrico_assets.query.answering.global_answer import GlobalAnswer, answer_globally
from retrico_assets.settings import ProjectSettings, load_settings, project_file

_SHOWN = 10
_SUMMARIES = ("by_model", "extractive", "unchanged", "failed", "not_asked")


@dataclass(frozen=True)
class CommunityOutcome:
    """The summary as `--json` prints it, and what failed, in words."""

    summary: dict[str, Any]
    failures: tuple[str, ...]


def detect_communities(values: Mapping[str, Any], log_level: str) -> CommunityOutcome:
    """Run the job `detect_communities` of the project in force. ``values`` are options that differ from the project's."""
    started = time.monotonic()
    run_config = {"ops": {"communities": {"config": dict(values)}}}
    with opened_instance() as instance:
        run = run_job("detect_communities", run_config, instance, log_level)
    detection, summaries, page = (_metadata(run, name) for name in ("communities", "community_summaries", "community_report"))
    summary = {
        "method": detection.get("method", ""),
        "detected": detection.get("detected", False),
        "levels": _rows(page.get("levels") or detection.get("levels")),
        "written": detection.get("rows_written", 0),
        "summaries": {name: summaries.get(name, 0) for name in _SUMMARIES},
        "embedded": _metadata(run, "community_embeddings").get("embedded", 0),
        "largest": _with_whole_texts(_rows(page.get("communities"))),
        "report": page.get("file", ""),
        "seconds": round(time.monotonic() - started, 2),
    }
    return CommunityOutcome(summary, tuple(failures(run)))


def describe(summary: Mapping[str, Any]) -> list[str]:
    """The summary for a person, a line each."""
    lines = [f"{summary['method']}: {'detected anew' if summary['detected'] else 'nothing has changed'}"]
    lines += [
        f"level {row['level']}: {row['communities']:,} communities ({row['of_one_entity']:,} of one entity),"
        f" the largest of {row['largest']:,}, modularity {row['modularity']:.3f}"
        for row in summary["levels"]
    ]
    told = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in summary["summaries"].items())
    lines.append(f"summaries: {told}; {summary['embedded']:,} embedded")
    coarsest = max((row["level"] for row in summary["largest"]), default=0)
    largest = [row for row in summary["largest"] if row["level"] == coarsest][:_SHOWN]
    lines += [f"  {row['members']:>6,}  {row['title']}" for row in largest]
    lines.append(f"report: {summary['report']}, {summary['seconds']} s")
    return lines


def ask(question: str, level: int | None) -> GlobalAnswer:
    """Ask all communities of a level (None: chosen by size). SettingsError without a language model."""
    file = project_file()
    settings = load_settings(file)
    llm = project_resources(file, settings)["models"].llm()
    if llm is None:
        raise SettingsError(f"{file}: a question to all communities needs a language model; set models.llm")
    try:
        return answer_globally(question, _stored(settings), llm, level=level)
    finally:
        llm.close()


def answer_to_json(question: str, answer: GlobalAnswer) -> dict[str, Any]:
    """The answer as `--json` prints it."""
    return {
        "question": question,
        "answer": answer.text,
        "state": answer.state,
        "level": answer.level,
        "communities_asked": answer.asked,
        "cited": [{"id": c.id, "level": c.level, "title": c.title} for c in answer.cited],
        "points": [asdict(point) for point in answer.points],
        "errors": [asdict(failure) for failure in answer.failures],
        "notes": list(answer.notes),
        "usage": asdict(answer.usage),
    }


def answer_lines(answer: GlobalAnswer) -> list[str]:
    """The answer for a person: communities are numbered, and named below."""
    text = answer.text or ""
    for number, community in enumerate(answer.cited, 1):
        text = text.replace(f"[{community.id}]", f"[{number}]")
    lines = [text or ("not in the sources" if answer.state == "not_in_sources" else "no answer was written")]
    if answer.state == "cut":
        lines.append("(the answer is cut: the model ran into its token limit)")
    lines += [f"[{number}] {community.title} ({community.id})" for number, community in enumerate(answer.cited, 1)]
    lines += [f"note: {note}" for note in answer.notes]
    return [*lines, f"{answer.asked:,} communities of level {answer.level} were asked, {len(answer.points):,} points found"]


def _with_whole_texts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a table, where long texts are cut, with titles and summaries as they are stored."""
    stored = {community.id: community for community in _stored(load_settings())} if rows else {}
    whole = {id_: {"title": community.title, "summary": community.summary} for id_, community in stored.items()}
    return [row | whole.get(row["id"], {}) for row in rows]


def _stored(settings: ProjectSettings) -> list[Any]:
    with settings.stores.graph.open(settings.data_folder / "graph") as graph:
        return graph.communities()


def _metadata(run: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    made = [e for e in run.get_asset_materialization_events() if e.asset_key and e.asset_key.to_user_string() == asset]
    if not made:
        return {}
    values = made[0].step_materialization_data.materialization.metadata
    return {name: value if isinstance(value, dg.TableMetadataValue) else value.value for name, value in values.items()}


def _rows(table: Any) -> list[dict[str, Any]]:
    return [dict(record.data) for record in table.records] if table else []
