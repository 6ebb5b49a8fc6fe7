"""A graph store of your own: FalkorDB with an audit log of every change to the documents.

stores:
  graph: {backend: "examples.audited_graph_store:AuditedGraphStore", log: audit.jsonl}
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field

from resources.graph.falkordb.embedded import EmbeddedFalkorDB
from resources.graph.falkordb.options import EmbeddedFalkorDBOptions
from resources.records import DocumentGraph


class AuditOptions(EmbeddedFalkorDBOptions):
    """The options of the embedded store, and the name of the log."""

    log: str = Field(default="audit.jsonl", min_length=1, description="The log's file name, in the folder of the graph.")


class AuditedGraphStore(EmbeddedFalkorDB):
    """Writes one line of JSON for each change: the time, what was done, and to which documents."""

    options: ClassVar[type[AuditOptions]] = AuditOptions

    def __init__(self, folder: Path, options: AuditOptions) -> None:
        super().__init__(folder, idle_seconds=options.idle_seconds)
        self._log = folder / options.log

    @classmethod
    def open(cls, options: AuditOptions, folder: Path) -> Self:  # type: ignore[override]
        return cls(folder, options)

    def replace_documents(self, documents: Sequence[DocumentGraph]) -> int:
        written = super().replace_documents(documents)
        self._write("replaced", [graph.document.source for graph in documents])
        return written

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        deleted = super().delete_documents(document_ids)
        self._write("deleted", list(document_ids))
        return deleted

    def _write(self, action: str, documents: list[str]) -> None:
        if documents:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"time": time.time(), "action": action, "documents": documents}) + "\n")
