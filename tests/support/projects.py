"""Small projects for tests: a folder of texts, the small model, everything under one temporary folder."""

import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from resources.graph import open_graph_store
from resources.graph.falkordb.embedded import stop_embedded
from tests.support.command import REPOSITORY, Completed, run_as_process, run_in_process

MODEL = REPOSITORY / "configs/demo/gliner-mini"

TEXTS = {
    "einstein.txt": "Albert Einstein was born in Ulm. He worked at the University of Zurich.",
    "curie.txt": "Marie Curie was born in Warsaw. She worked at the University of Paris.",
    "planck.md": "# Max Planck\n\nMax Planck was born in Kiel. Max Planck met Albert Einstein in Berlin.",
}


@dataclass(frozen=True)
class Project:
    """A project file, its corpus and its data folder."""

    file: Path
    corpus: Path
    data: Path

    def write(self, name: str, text: str) -> None:
        path = self.corpus / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def definitions(self) -> dg.Definitions:
        """The definitions, loaded for this project as Dagster would."""
        os.environ["RETRICO_PROJECT"] = str(self.file)
        sys.modules.pop("retrico_assets.definitions", None)
        return importlib.import_module("retrico_assets.definitions").defs

    def run(self, job: str, config: dict[str, Any] | None = None, **options: Any) -> dg.ExecuteInProcessResult:
        return self.definitions().resolve_job_def(job).execute_in_process(run_config=config or {}, **options)

    def build(self, config: dict[str, Any] | None = None, **options: Any) -> "Build":
        return Build(self.run("build", config, **options))

    def retrico(self, *arguments: str) -> Completed:
        """Run a command on this project in this process."""
        return run_in_process(*arguments, "--project", str(self.file))

    def retrico_process(self, *arguments: str, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
        """Run a command on this project in a process of its own."""
        return run_as_process(*arguments, "--project", str(self.file), timeout=timeout)

    def graph(self) -> dict[str, Any]:
        """Everything the graph says, in an order that does not depend on how it came there."""
        with open_graph_store("falkordb_embedded", self.data / "graph") as graph:
            entities = list(graph.entities())
            chunks = graph.chunks_of([entity.id for entity in entities])
            return {
                "stats": graph.stats(),
                "entities": entities,
                "relations": list(graph.relations()),
                "mentions": {id_: sorted((s.record.id, s.score) for s in found) for id_, found in chunks.items()},
                "fingerprints": graph.document_fingerprints(),
            }

    def facts(self) -> set[tuple[str, str, str]]:
        graph = self.graph()
        names = {entity.id: entity.label for entity in graph["entities"]}
        return {(names[r.head_id], r.label, names[r.tail_id]) for r in graph["relations"]}

    def stop(self) -> None:
        stop_embedded(self.data / "graph")


class Build:
    """A build's run and the metadata of what it made."""

    def __init__(self, result: dg.ExecuteInProcessResult) -> None:
        self.result = result
        self.metadata = {
            event.asset_key.to_user_string(): {
                name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()
            }
            for event in result.get_asset_materialization_events()
        }
        self.checks = {
            f"{check.asset_key.to_user_string()}.{check.check_name}": check.passed
            for check in result.get_asset_check_evaluations()
        }

    @property
    def model_calls(self) -> int:
        return sum(values.get("model_calls", 0) for values in self.metadata.values())

    @property
    def rows_written(self) -> int:
        stores = sum(values.get("rows_written", 0) for values in self.metadata.values())
        vectors = sum(values.get("embedded", 0) + values.get("deleted", 0) for values in self.metadata.values())
        return stores + vectors


def make_project(folder: Path, texts: dict[str, str] = TEXTS, settings: dict[str, Any] | None = None) -> Project:
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    content = {
        "labels": {"entities": ["person", "organization", "location"], "relations": ["born in", "works at"]},
        "models": {"entities": {"model": str(MODEL)}, "relations": {"model": str(MODEL)}},
    }
    file = folder / "project.yaml"
    file.write_text(json.dumps(content | (settings or {})))
    project = Project(file, corpus, folder / "data")
    for name, text in texts.items():
        project.write(name, text)
    return project
