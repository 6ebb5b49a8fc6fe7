"""The frames that assets hand on: their columns, and records to rows and back.

Metadata and properties are JSON text in a frame, since their keys differ from row to row.
"""

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

import pandas as pd

from resources.records import Chunk, Document, Mention, RelationMention

DOCUMENT_COLUMNS = ("document_id", "source", "title", "text", "metadata", "text_hash")
CHUNK_COLUMNS = ("chunk_id", "document_id", "index", "text", "start", "end", "metadata")
ENTITY_COLUMNS = tuple(f.name for f in fields(Mention))
RELATION_COLUMNS = tuple(f.name for f in fields(RelationMention))

_JSON = ("metadata", "properties")
_INTEGERS = ("index", "start", "end", "head_start", "head_end", "tail_start", "tail_end")
_ID = {Document: "document_id", Chunk: "chunk_id"}

R = TypeVar("R", Document, Chunk, Mention, RelationMention)


def documents_frame(documents: Iterable[Document]) -> pd.DataFrame:
    return _frame(documents, DOCUMENT_COLUMNS, "document_id")


def chunks_frame(chunks: Iterable[Chunk]) -> pd.DataFrame:
    return _frame(chunks, CHUNK_COLUMNS, "chunk_id")


def entities_frame(mentions: Iterable[Mention]) -> pd.DataFrame:
    return _frame(mentions, ENTITY_COLUMNS)


def relations_frame(relations: Iterable[RelationMention]) -> pd.DataFrame:
    return _frame(relations, RELATION_COLUMNS)


def records(frame: pd.DataFrame, record: type[R]) -> list[R]:
    """The records of a frame, in its order."""
    names = ["id" if name == _ID.get(record) else str(name) for name in frame.columns]
    columns = [_from_column(name, frame[column]) for name, column in zip(names, frame.columns, strict=True)]
    return [record(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _frame(items: Iterable[Any], columns: tuple[str, ...], id_column: str | None = None) -> pd.DataFrame:
    names = ["id" if column == id_column else column for column in columns]
    rows = [[_to_cell(name, getattr(item, name)) for name in names] for item in items]
    frame = pd.DataFrame(rows, columns=list(columns))
    types = {c: "int64" if c in _INTEGERS else "float64" if c == "score" else "str" for c in columns}
    return frame.astype(types)


def _to_cell(name: str, value: Any) -> Any:
    return json.dumps(dict(value), ensure_ascii=False, sort_keys=True, default=str) if name in _JSON else value


def _from_column(name: str, column: pd.Series) -> list[Any]:
    values = column.tolist()
    if name in _JSON:
        return [{} if value == "{}" else json.loads(value) for value in values]
    return (
        [None if missing else value for value, missing in zip(values, column.isna(), strict=True)] if column.hasnans else values
    )
