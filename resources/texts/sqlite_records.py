"""Structured questions in SQLite. Values and the keys of metadata are parameters: nothing that is asked stands in a statement."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from resources.errors import StoreError
from resources.text.characters import storable
from resources.texts.structured import NUMBER_FIELDS, TEXT_FIELDS, Filter, Sort, as_number

_MOST_LISTED = 50

_COLUMNS = {
    "id": "chunks.id",
    "document_id": "chunks.document_id",
    "text": "chunks.text",
    "source": "documents.source",
    "title": "documents.title",
    "index": "chunks.position",
    "start": "chunks.start",
    "end": 'chunks."end"',
}
_COMPARISONS = {"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_METADATA = " UNION ALL ".join(
    f"SELECT key, value, type FROM json_each(CASE WHEN json_valid({table}.metadata) THEN {table}.metadata ELSE '{{}}' END)"
    for table in ("chunks", "documents")
)
_ITEMS = (
    f"FROM ({_METADATA}) AS field,"
    " json_each(CASE field.type WHEN 'array' THEN field.value ELSE json_array(field.value) END) AS item"
)
_JOINED = "FROM chunks JOIN documents ON documents.id = chunks.document_id"


def add_functions(connection: sqlite3.Connection) -> None:
    """What the statements need that SQLite does not have: ``casefolded(value)``."""
    connection.create_function("casefolded", 1, _casefolded, deterministic=True)


def select_chunks(
    database: sqlite3.Connection, columns: str, filters: Sequence[Filter], sort: Sequence[Sort], limit: int, offset: int
) -> list[tuple[Any, ...]]:
    """Rows of ``columns``, source and title of the chunks that fulfil all filters, in this order, then by document and index.

    StoreError, listing the known ones, for a field that neither every chunk has nor any metadata.
    """
    _check_fields(database, [*(one.field for one in filters), *(one.field for one in sort)])
    parameters: dict[str, Any] = {"limit": limit, "offset": offset}
    conditions = [_condition(one, f"{number}", parameters) for number, one in enumerate(filters)]
    order = [term for number, one in enumerate(sort) for term in _order(one, f"key{number}", parameters)]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    statement = (
        f"SELECT {columns}, documents.source, documents.title {_JOINED} {where} "
        f"ORDER BY {', '.join([*order, 'chunks.document_id', 'chunks.position'])} LIMIT :limit OFFSET :offset"
    )
    return database.execute(statement, parameters).fetchall()


def _check_fields(database: sqlite3.Connection, fields: Sequence[str]) -> None:
    for field in dict.fromkeys(fields):
        if field in _COLUMNS:
            continue
        known = f"SELECT 1 {_JOINED} WHERE EXISTS (SELECT 1 FROM ({_METADATA}) WHERE key = ?) LIMIT 1"
        if database.execute(known, (storable(field),)).fetchone() is None:
            keys = database.execute(
                "SELECT DISTINCT field.key FROM chunks, json_each(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END)"
                " AS field UNION SELECT field.key FROM documents,"
                " json_each(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END) AS field ORDER BY 1 LIMIT ?",
                (_MOST_LISTED,),
            )
            names = [*TEXT_FIELDS, *NUMBER_FIELDS, *(key for (key,) in keys)]
            raise StoreError(f"there is no field {field!r:.80}; known are: {', '.join(names)}")


def _condition(one: Filter, suffix: str, parameters: dict[str, Any]) -> str:
    text = storable(one.value if isinstance(one.value, str) else str(one.value))
    parameters[f"text{suffix}"] = text.casefold() if one.operator in ("contains", "starts_with") else text
    parameters[f"number{suffix}"] = as_number(one.value)
    column = _COLUMNS.get(one.field)
    if column is not None:
        return _comparison(column, one, suffix)
    parameters[f"field{suffix}"] = storable(one.field)
    some = f"EXISTS (SELECT 1 {_ITEMS} WHERE field.key = :field{suffix} AND item.value IS NOT NULL"
    if one.operator == "neq":  # none of a list's items is the value
        equal = _comparison("item.value", Filter(one.field, "eq", one.value), suffix)
        return f"({some}) AND NOT {some} AND {equal}))"
    return f"{some} AND {_comparison('item.value', one, suffix)})"


def _comparison(value: str, one: Filter, suffix: str) -> str:
    """``value`` compared with the parameters: as numbers where both are numbers, else as texts."""
    text, number = f":text{suffix}", f":number{suffix}"
    if one.operator == "contains":
        return f"instr(casefolded({value}), {text}) > 0"
    if one.operator == "starts_with":
        return f"instr(casefolded({value}), {text}) = 1"
    sign = _COMPARISONS[one.operator]
    if one.field in NUMBER_FIELDS:
        return f"{value} {sign} {number}"
    if one.field in TEXT_FIELDS:
        return f"{value} {sign} {text}"
    if as_number(one.value) is None:
        return f"CAST({value} AS TEXT) {sign} {text}"
    # A number asked for as a number is not compared with words; one that came as text may be the start of a date.
    otherwise = f"CAST({value} AS TEXT) {sign} {text}" if isinstance(one.value, str) else "NULL"
    return f"CASE WHEN {_number(value)} IS NULL THEN {otherwise} ELSE {_number(value)} {sign} {number} END"


def _number(value: str) -> str:
    """The value if it is a number or a text that spells one, else NULL."""
    spelt = f"json_valid({value}) AND json_type({value}) IN ('integer', 'real')"
    return (
        f"CASE typeof({value}) WHEN 'integer' THEN {value} WHEN 'real' THEN {value} "
        f"WHEN 'text' THEN CASE WHEN {spelt} THEN CAST({value} AS NUMERIC) END END"
    )


def _order(one: Sort, name: str, parameters: dict[str, Any]) -> list[str]:
    direction = "DESC" if one.descending else "ASC"
    column = _COLUMNS.get(one.field)
    if column is not None:
        return [f"{column} {direction}"]
    parameters[name] = storable(one.field)
    value = f"(SELECT %s FROM ({_METADATA}) WHERE key = :{name} AND value IS NOT NULL LIMIT 1)"
    return [
        f"{value % 'value'} IS NULL",
        f"{value % _number('value')} IS NULL",
        f"{value % _number('value')} {direction}",
        f"{value % 'CAST(value AS TEXT)'} {direction}",
    ]


def _casefolded(value: Any) -> str | None:
    return None if value is None else str(value).casefold()
