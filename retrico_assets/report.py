"""What a materialisation shows a person: counts, rates and a sample table."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
import pandas as pd

SAMPLE_ROWS = 10
_SAMPLE_CHARACTERS = 80
_LISTED = 50


class Stopwatch:
    """Seconds since it was made, and what that means a second."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def rates(self, rows: int) -> dict[str, dg.MetadataValue]:
        seconds = time.monotonic() - self._started
        return {
            "seconds": dg.MetadataValue.float(round(seconds, 3)),
            "rows_per_second": dg.MetadataValue.float(round(rows / seconds, 1) if seconds > 0 else 0.0),
        }


def counts(**numbers: int) -> dict[str, dg.MetadataValue]:
    return {name: dg.MetadataValue.int(number) for name, number in numbers.items()}


def sample(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, dg.MetadataValue]:
    """The row count under Dagster's own name, and rows spread evenly over the frame, long cells shortened."""
    step = max(1, len(frame) // SAMPLE_ROWS)
    rows = frame[list(columns)].iloc[::step].head(SAMPLE_ROWS).to_dict("records")
    shown: dict[str, dg.MetadataValue] = {"dagster/row_count": dg.MetadataValue.int(len(frame))}
    if rows:
        shown["sample"] = table(rows)
    return shown


def table(rows: Iterable[Mapping[Any, Any]]) -> dg.MetadataValue:
    return dg.MetadataValue.table(records=[dg.TableRecord({str(k): _cell(v) for k, v in row.items()}) for row in rows])


def listing(name: str, problems: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    """What went wrong, by what it went wrong with: nothing when nothing did, and the first fifty of many."""
    if not problems:
        return {}
    rows = [{"what": what, "why": why} for what, why in list(problems.items())[:_LISTED]]
    if len(problems) > _LISTED:
        rows.append({"what": f"and {len(problems) - _LISTED:,} more", "why": ""})
    return {name: table(rows)}


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return round(value, 4)
    text = value if isinstance(value, str) else None
    if text is None:
        return int(value) if isinstance(value, int) else str(value)
    return text if len(text) <= _SAMPLE_CHARACTERS else text[: _SAMPLE_CHARACTERS - 1] + "…"
