"""Rows of a tool as a model is shown them: JSON of at most so many rows and characters, marked as quoted data."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from resources.graph.encoding import decode_properties, plain_value

_FRAME = len('{"quoted_data": [], "rows_left_out": 1000000}')
_SHORTEST_TEXT = 20


def show(rows: Sequence[Mapping[str, Any]], max_rows: int, max_characters: int) -> tuple[str, list[dict[str, Any]]]:
    """The JSON text, and the rows that are in it.

    Rows are kept from the first on, whole, as long as both limits last; only of a first row that is too long by itself
    are the texts cut, which "…" at their end shows. How many rows were left out stands in the text.
    """
    kept: list[dict[str, Any]] = []
    texts: list[str] = []
    room = max_characters - _FRAME
    for raw in rows[:max_rows]:
        row = _plain_row(raw)
        text = _json(row)
        if len(text) > room and not kept:
            row, text = _shortened(row, room)
        if len(text) > room:
            break
        kept.append(row)
        texts.append(text)
        room -= len(text) + 2
    left_out = f', "rows_left_out": {len(rows) - len(kept)}' if len(rows) > len(kept) else ""
    return f'{{"quoted_data": [{", ".join(texts)}]{left_out}}}', kept


def _plain_row(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is empty; properties as they were given, without what the store notes beside them."""
    row = {}
    for name, value in raw.items():
        if name == "properties" and isinstance(value, Mapping):
            value = decode_properties(value)
        if value is not None and value != {}:
            row[name] = plain_value(value)
    return row


def _shortened(row: Mapping[str, Any], room: int) -> tuple[dict[str, Any], str]:
    """The row with its longest texts cut until it fits, or as short as it gets."""
    cut = dict(row)
    text = _json(cut)
    while len(text) > room:
        longest = max((name for name, value in cut.items() if isinstance(value, str)), key=lambda n: len(cut[n]), default=None)
        if longest is None or len(cut[longest]) <= _SHORTEST_TEXT:
            break
        length, too_long = len(cut[longest]), len(text) - room
        size = max(length - too_long, length * room // len(text)) - 1  # the second where escapes make up much of the text
        cut[longest] = cut[longest][: max(size, _SHORTEST_TEXT - 1)] + "…"
        text = _json(cut)
    return cut, text


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)
