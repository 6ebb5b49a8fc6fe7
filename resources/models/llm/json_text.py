"""Reads the JSON in what a language model said, which is seldom JSON and nothing else."""

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from resources.models.llm.reasoning import without_reasoning

_DECODER = json.JSONDecoder(strict=False)  # a line break inside a string is no reason to give up
# What can be JSON, and not a bracket in prose: "[c1]" and "{see below}" can't.
_OPENING = re.compile(r"""\{(?=\s*(?:["'}]|\w+\s*:))|\[(?=\s*(?:[\[\]{"'\-\d]|true|false|null))""")
_MOST_TRIES = 20
_DEEPEST = 200  # what is nested deeper is a model's endless repetition, which takes json-repair quadratic time


def read_json(text: str) -> Any | None:
    """The first JSON object in a model's reply, or list of objects, or else any list; None if there is neither.

    Code fences, a byte order mark and prose around it are passed over; small flaws (a trailing comma, single quotes, a missing
    end) are mended. Of several values after each other the first counts. What stands in a reasoning block is never read.
    Which keys and types the value has is the caller's to check.
    """
    found = list(_values(without_reasoning(text)))
    return next((value for value in found if _holds_an_object(value)), found[0] if found else None)


def _values(text: str) -> Iterator[Any]:
    """Objects and lists at the top level of a text, in their order."""
    position = 0
    for _ in range(_MOST_TRIES):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        start = opening.start()
        try:
            value, position = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _end_of_brackets(text, start)
            value, position = _mended(text[start:end]), end
        if isinstance(value, dict | list):
            yield value


def _mended(text: str) -> Any:
    depth = accumulate((character in "[{") - (character in "]}") for character in text)
    if max(depth) > _DEEPEST:
        return None
    from json_repair import repair_json

    try:
        value = repair_json(text, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    if text.startswith("{") and isinstance(value, list):  # what came after it is in the list too
        value = next((item for item in value if isinstance(item, dict)), None)
    return value or None  # an empty value says that nothing could be made of the text


def _end_of_brackets(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed, brackets in strings not counted; the text's end if it is not."""
    depth = 0
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL).finditer(text, start):
        if match[0][0] == '"':
            continue
        depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _holds_an_object(value: Any) -> bool:
    return isinstance(value, dict) or any(isinstance(item, dict) for item in value)
