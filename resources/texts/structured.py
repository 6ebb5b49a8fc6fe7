"""A structured question to a text store: conditions on fields of chunks, their order, and a page of the result."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from resources.errors import StoreError
from resources.records import Chunk

TEXT_FIELDS = ("id", "document_id", "text", "source", "title")
NUMBER_FIELDS = ("index", "start", "end")
OPERATORS = ("eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with")
MOST_ROWS = 1000

_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a field of a chunk or of its document: one of TEXT_FIELDS or NUMBER_FIELDS, or a key of their metadata.

    ``operator`` is one of OPERATORS; ``contains`` and ``starts_with`` ignore case. A list matches when one of its items does.
    What has no such field does not match, whatever the operator.
    """

    field: str
    operator: str
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Sort:
    """An order by one field: numbers as numbers and before texts; chunks without the field come last."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk, with source and title of its document."""

    chunk: Chunk
    source: str
    title: str


def check_query(filters: Sequence[Filter], sort: Sequence[Sort], limit: int, offset: int) -> None:
    """StoreError for an operator, a value or a bound that can't be. Whether a field exists only the store knows."""
    for one in filters:
        if one.operator not in OPERATORS:
            raise StoreError(f"unknown operator {one.operator!r} on {one.field!r}; known are: {', '.join(OPERATORS)}")
        if not isinstance(one.value, str | int | float) or not math.isfinite(as_number(one.value) or 0):
            raise StoreError(f"{one.field} can't be compared with {one.value!r:.80}; use a text, a finite number, true or false")
        if one.field in NUMBER_FIELDS and one.operator not in ("contains", "starts_with") and as_number(one.value) is None:
            raise StoreError(f"{one.field} is a number and can't be compared with {one.value!r:.80}")
    if not 1 <= limit <= MOST_ROWS:
        raise StoreError(f"limit is {limit}; it must be from 1 to {MOST_ROWS}")
    if not 0 <= offset < 2**63:
        raise StoreError(f"offset is {offset}; it must be from 0 to 2^63 - 1")


def as_number(value: str | int | float | bool) -> int | float | None:
    """The number that the value is or spells ("10", "1.5"); None for another text. Integers over 64 bits become floats."""
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return None
        value = float(value) if not re.fullmatch(r"\s*[-+]?\d{1,18}\s*", value, re.ASCII) else int(value)
    if isinstance(value, int) and value not in _INT64:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return int(value) if isinstance(value, bool) else value
