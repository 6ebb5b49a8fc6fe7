"""A text store of your own: SQLite that keeps a copy of each document before it is deleted.

stores:
  texts: {backend: "examples.archiving_text_store:ArchivingTextStore"}
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from resources.texts.sqlite import SqliteTextStore


class ArchivingTextStore(SqliteTextStore):
    """Appends deleted documents to archive.jsonl, beside the database."""

    @classmethod
    def open(cls, options: Any, folder: Path) -> Self:
        return cls(folder / "texts.db")

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        documents = self.get_documents(document_ids)
        with (self.path.parent / "archive.jsonl").open("a", encoding="utf-8") as file:
            for document in documents.values():
                file.write(json.dumps({"source": document.source, "text": document.text}) + "\n")
        return super().delete_documents(document_ids)
