"""The three tools that read the text store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from resources.records import Chunk
from resources.texts.base import TextStore
from resources.texts.structured import MOST_ROWS, NUMBER_FIELDS, OPERATORS, TEXT_FIELDS, ChunkRow, Filter, Sort
from retrico_assets.query.tools.schema import Tool

Row = dict[str, Any]
_MOST_HITS = 100


@dataclass(frozen=True, slots=True)
class ChunkTool(Tool):
    """``read`` gives rows for checked arguments."""

    read: Callable[[TextStore, Mapping[str, Any]], list[Row]]


def _search_chunks(texts: TextStore, arguments: Mapping[str, Any]) -> list[Row]:
    hits = texts.search(arguments["query"], arguments["limit"])
    return [{**_row(hit.record), "score": hit.score} for hit in hits]


def _get_chunk(texts: TextStore, arguments: Mapping[str, Any]) -> list[Row]:
    return [_full_row(row) for row in texts.query_chunks([Filter("id", "eq", arguments["chunk_id"])], limit=1)]


def _query_records(texts: TextStore, arguments: Mapping[str, Any]) -> list[Row]:
    filters = [Filter(one["field"], one["operator"], one["value"]) for one in arguments.get("filters", ())]
    sort = [Sort(one["field"], one["descending"]) for one in arguments.get("sort", ())]
    return [_full_row(row) for row in texts.query_chunks(filters, sort, arguments["limit"], arguments["offset"])]


def _row(chunk: Chunk) -> Row:
    return {"chunk_id": chunk.id, "document_id": chunk.document_id, "index": chunk.index, "text": chunk.text}


def _full_row(row: ChunkRow) -> Row:
    chunk = row.chunk
    place = {"start": chunk.start, "end": chunk.end, "source": row.source, "title": row.title}
    return {**_row(chunk), **place, "metadata": dict(chunk.metadata) or None}


_FIELD = {
    "type": "string",
    "description": f"one of {', '.join((*TEXT_FIELDS, *NUMBER_FIELDS))}, or a key of the metadata",
    "minLength": 1,
    "maxLength": 200,
}
_FILTER = {
    "type": "object",
    "properties": {
        "field": _FIELD,
        "operator": {"type": "string", "enum": list(OPERATORS)},
        "value": {
            "type": ["string", "number", "boolean"],
            "description": "what to compare with; numbers may be written as text",
            "maxLength": 500,
        },
    },
    "required": ["field", "operator", "value"],
    "additionalProperties": False,
}
_SORT = {
    "type": "object",
    "properties": {"field": _FIELD, "descending": {"type": "boolean", "default": False}},
    "required": ["field"],
    "additionalProperties": False,
}

CHUNK_TOOLS: tuple[ChunkTool, ...] = (
    ChunkTool(
        "search_chunks",
        "Full-text search over the pieces of text, best first. Nothing in the query is search syntax.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "words to look for", "minLength": 1, "maxLength": 2000},
                "limit": {"type": "integer", "description": "pieces at most", "minimum": 1, "maximum": _MOST_HITS, "default": 10},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        _search_chunks,
    ),
    ChunkTool(
        "get_chunk",
        "One piece of text by its id, with the document it is from.",
        {
            "type": "object",
            "properties": {"chunk_id": {"type": "string", "description": "id of the piece", "minLength": 1, "maxLength": 500}},
            "required": ["chunk_id"],
            "additionalProperties": False,
        },
        _get_chunk,
    ),
    ChunkTool(
        "query_records",
        "Pieces of text whose fields fulfil conditions, for example those of one document in order of index. Numbers compare as "
        "numbers; contains and starts_with ignore case.",
        {
            "type": "object",
            "properties": {
                "filters": {"type": "array", "description": "all must hold", "items": _FILTER, "maxItems": 10},
                "sort": {"type": "array", "description": "first key first", "items": _SORT, "maxItems": 5},
                "limit": {"type": "integer", "description": "rows at most", "minimum": 1, "maximum": MOST_ROWS, "default": 20},
                "offset": {"type": "integer", "description": "rows to pass over", "minimum": 0, "maximum": 10**9, "default": 0},
            },
            "required": [],
            "additionalProperties": False,
        },
        _query_records,
    ),
)
