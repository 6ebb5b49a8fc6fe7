"""What values may look like in a graph database, and how they get there: properties, names and statement literals.

One rule for every backend, so that a graph reads back the same from each:

- text, booleans, integers of 64 bits and lists of one of these kinds (and of floats) are stored as they are;
- a float keeps 15 significant digits (what FalkorDB gives back);
- everything else that JSON can say (mappings, nested, mixed and null-holding lists, larger integers, NaN, infinities) is stored
  as JSON text under the same key, noted in ``json_keys``, and reads back equal;
- None means: no such property. Dates and times become ISO text, tuples lists, sets sorted lists, other objects ``str(value)``;
- a key that is not a plain identifier, or that the schema uses itself, goes with its value into ``more_properties`` (JSON text);
- NUL and lone surrogates are dropped from every text.
"""

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from datetime import date, time
from functools import lru_cache
from typing import Any

from resources.errors import StoreError
from resources.text.characters import is_blank, storable

SCHEMA_KEYS = frozenset(
    {"id", "label", "key", "entity_type", "type", "description", "title", "source", "text", "text_hash", "start",
     "end", "start_date", "end_date", "score", "index", "metadata", "document_id", "fingerprint",
     "chunk_ids", "chunk_scores", "chunk_properties", "level", "summary", "embedding", "search_text",
     "kg_embedding", "kg_embedding_hash",
     "json_keys", "more_properties", "property_keys", "properties", "relation_keys"}
)  # fmt: skip
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_JSON_ESCAPE = re.compile(r"\\\\|\\u00([01][0-9a-f])")
_LONGEST_TYPE = 60
_INT64 = range(-(2**63), 2**63)
_LONGEST_INTEGER = 10**4000


clean_text = storable
"""The name of this rule in the graph stores."""


def stored_float(value: float) -> float:
    """The float as the databases give it back: 15 significant digits."""
    return float(f"{value:.15g}")


def encode_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as a database can hold them; the keys ``json_keys`` and ``more_properties`` say what was changed."""
    stored: dict[str, Any] = {}
    json_keys: list[str] = []
    more: dict[str, Any] = {}
    for raw_key, raw_value in properties.items():
        if raw_value is None:
            continue
        key, value = clean_text(str(raw_key)), plain_value(raw_value)
        if key in SCHEMA_KEYS or not _PLAIN_KEY.match(key):
            more[key] = value
        elif _is_native(value):
            stored[key] = value
        else:
            stored[key] = to_json(value)
            json_keys.append(key)
    if json_keys:
        stored["json_keys"] = sorted(json_keys)
    if more:
        stored["more_properties"] = to_json(more)
    return stored


def decode_properties(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that ``encode_properties`` was given, in the order of their keys. The schema's own keys are left out."""
    encoded = frozenset(stored.get("json_keys") or ())
    found = {
        key: json.loads(value) if key in encoded else value
        for key, value in stored.items()
        if key not in SCHEMA_KEYS and value is not None
    }
    found.update(json.loads(stored.get("more_properties") or "{}"))
    return dict(sorted(found.items()))


def noted_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Encoded properties with a note of their keys. Readers fetch the properties only of nodes and edges with that note."""
    return {**stored, "property_keys": sorted(stored)} if stored else {}


def plain_value(value: Any) -> Any:
    """The value in terms of None, bool, int, float, str, list and dict, by the rules above."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return int(value) if abs(value) < _LONGEST_INTEGER else hex(value)
    if isinstance(value, float):
        return stored_float(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain_value(item) for item in value), key=to_json)
    if isinstance(value, date | time):
        return value.isoformat()
    if hasattr(value, "tolist"):  # a numpy scalar or array
        return plain_value(value.tolist())
    return clean_text(str(value))


def to_json(value: Any) -> str:
    return json.dumps(plain_value(value), ensure_ascii=False, sort_keys=True)


def _is_native(value: Any) -> bool:
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        return len(kinds) <= 1 and not kinds & {list, dict, type(None)} and all(map(_is_native, value))
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return value in _INT64
    return isinstance(value, float) and math.isfinite(value)


def edge_type(label: str) -> str:
    """The safe form of a relation label: an upper-case identifier of at most 60 characters, made of letters, digits and ``_``.

    Different labels may share one; the exact label stays in the edge's property ``label``. Raises StoreError without a label.
    """
    if not isinstance(label, str) or is_blank(label):
        raise StoreError(f"A relation needs a label, got {label!r}. Leave such relations out before they are written.")
    return _edge_type(label)


@lru_cache(4096)
def _edge_type(label: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label.strip()).upper())
    name = re.sub(r"[\W_]+", "_", folded).strip("_")[:_LONGEST_TYPE].rstrip("_")
    if not name or not name[0].isalpha():
        name = f"REL_{name}"[:_LONGEST_TYPE].rstrip("_")
    return identifier(name)


def identifier(name: str) -> str:
    """The name itself, fit to stand between backticks in a statement. Raises StoreError for anything else."""
    if not re.fullmatch(r"\w{1,64}", name):
        raise StoreError(f"{name!r} can't be a name in a graph statement: only letters, digits and _ can, 64 at most.")
    return name


def literal(value: Any) -> str:
    """The value as a literal of Cypher's parameter header, for drivers that send parameters as text.

    JSON's notation is Cypher's for everything but mappings and control characters, and C code writes it. Raises StoreError
    for what has no literal: a number that is not finite or over 64 bits, a map key that is empty or holds a backtick, and
    values of unknown types.
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_map_key(key)}:{literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
        raise StoreError(f"{value} can't be a parameter: the database's integers have 64 bits. Pass it as text.")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(f"{value!r:.80} can't be a parameter of a graph statement: {error}.") from error
    if "{" in text and isinstance(value, list | tuple) and _holds_mapping(value):  # rarely, and a look at the text is cheap
        return "[" + ",".join(map(literal, value)) + "]"
    if "\\u00" in text:
        text = _JSON_ESCAPE.sub(_raw_control, text)
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()  # lone surrogates go


def _holds_mapping(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(isinstance(item, Mapping) or (isinstance(item, list | tuple) and _holds_mapping(item)) for item in values)


def _map_key(key: Any) -> str:
    name = clean_text(str(key))
    if not name or "`" in name:
        raise StoreError(f"{key!r} can't be the key of a map in a graph statement: it is empty or holds a backtick.")
    return f"`{name}`"


def _raw_control(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    return "" if match[1] == "00" else chr(int(match[1], 16))
