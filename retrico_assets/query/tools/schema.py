"""What a tool takes: a JSON schema of its parameters, and the check of a model's arguments against it."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from resources.errors import SettingsError

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_CHECKED = frozenset((*_BOUNDS, "type", "enum", "items", "properties", "required", "additionalProperties"))
_NOTES = frozenset(("title", "description", "default"))
_LONGEST_QUOTE = 80


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that a model may call. ``parameters`` is the JSON schema of an object, within what ``check_schema`` allows."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def definition(self) -> dict[str, Any]:
        """The tool as an OpenAI-compatible endpoint wants it told, in terms that all of them take."""
        function = {"name": self.name, "description": self.description, "parameters": _told(self.parameters)}
        return {"type": "function", "function": function}

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with defaults filled in; null stands for one left out, "5" for the number 5 where a number is wanted.

        SettingsError that names every argument at fault, what is wrong with it, and the arguments that there are.
        """
        faults: list[str] = []
        found = _checked(dict(arguments), self.parameters, "", faults)
        if faults:
            known = ", ".join(_signature(self.parameters)) or "no arguments"
            raise SettingsError(f"wrong arguments of {self.name}: {'; '.join(faults)}. It takes {known}")
        checked: dict[str, Any] = found
        return checked


def check_schema(schema: Mapping[str, Any], where: str) -> None:
    """SettingsError unless this is the schema of an object whose every keyword is checked here, so that none is ignored."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise SettingsError(f'{where} must be a JSON schema with "type": "object", got {schema!r:.200}')
    _check_keywords(schema, where)


def _check_keywords(schema: Mapping[str, Any], where: str) -> None:
    if not isinstance(schema, Mapping):
        raise SettingsError(f"{where} must be a JSON schema, got {schema!r:.200}")
    if unknown := sorted(set(schema) - _CHECKED - _NOTES):
        raise SettingsError(
            f"{where} uses {', '.join(unknown)}, which is not checked here; use {', '.join(sorted(_CHECKED))} and check the rest "
            "in the tool's function"
        )
    kinds = _kinds(schema)
    if not kinds or set(kinds) - _KINDS.keys():
        raise SettingsError(f"{where} has the type {schema.get('type')!r}; known are {', '.join(_KINDS)}")
    for name, inner in schema.get("properties", {}).items():
        _check_keywords(inner, f"{where}.{name}")
    if "items" in schema:
        _check_keywords(schema["items"], f"{where} items")


def _told(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without bounds of length, of which llama.cpp makes grammars that it then refuses (ggml-org/llama.cpp#27087), and
    with one type where it lists several, which not every server reads. Arguments are checked against the whole schema.
    """
    told = {name: value for name, value in schema.items() if name not in ("minLength", "maxLength", "minItems", "maxItems")}
    told["type"] = "string" if "string" in _kinds(schema) else _kinds(schema)[0]
    if "items" in schema:
        told["items"] = _told(schema["items"])
    if "properties" in schema:
        told["properties"] = {name: _told(inner) for name, inner in schema["properties"].items()}
    return told


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _checked(value: Any, schema: Mapping[str, Any], place: str, faults: list[str]) -> Any:
    """The value as the schema wants it; what is wrong with it is added to ``faults``."""
    kinds = _kinds(schema)
    value = _as_number(value, kinds)
    if not any(_is(value, kind) for kind in kinds):
        faults.append(f"{place or 'the arguments'}: {_quoted(value)} is no {' or '.join(kinds)}")
        return value
    if "enum" in schema and value not in schema["enum"]:
        faults.append(f"{place}: {_quoted(value)} is none of {', '.join(map(str, schema['enum']))}")
    faults.extend(f"{place}: {fault}" for fault in _out_of_bounds(value, schema))
    if isinstance(value, dict):
        return _checked_members(value, schema, place, faults)
    if isinstance(value, list) and "items" in schema:
        return [_checked(item, schema["items"], f"{place}[{number}]", faults) for number, item in enumerate(value)]
    return value


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _KINDS[kind]) and isinstance(value, bool) == (kind == "boolean")


def _checked_members(value: dict[str, Any], schema: Mapping[str, Any], place: str, faults: list[str]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    prefix = f"{place}." if place else ""
    found: dict[str, Any] = {}
    for name, item in value.items():
        if name in properties and item is not None:
            found[name] = _checked(item, properties[name], prefix + name, faults)
        elif name not in properties and schema.get("additionalProperties", True) is False:
            faults.append(f"{prefix}{_quoted(name)}: unknown argument")
        elif name not in properties:
            found[name] = item
    for name, inner in properties.items():
        if name in found:
            continue
        if name in schema.get("required", ()):
            faults.append(f"{prefix}{name}: missing")
        elif "default" in inner:
            found[name] = inner["default"]
    return found


def _as_number(value: Any, kinds: tuple[str, ...]) -> Any:
    """Models write numbers as text, and whole numbers with a point."""
    numeric = "string" not in kinds and ("number" in kinds or "integer" in kinds)
    if numeric and isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}(\.[0-9]{1,18})?\s*", value, re.ASCII):
        value = float(value) if "." in value else int(value)
    if isinstance(value, float) and "integer" in kinds and "number" not in kinds and value.is_integer():
        return int(value)
    return value


def _out_of_bounds(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    bounded = isinstance(value, int | float) and not isinstance(value, bool) and (least, most) != (None, None)
    if bounded and not (-math.inf if least is None else least) <= value <= (math.inf if most is None else most):  # nor is NaN
        yield f"{_quoted(value)} is not {_range(least, most)}"
    for kind, what, fewest, greatest in (
        (str, "characters", "minLength", "maxLength"),
        (list, "items", "minItems", "maxItems"),
    ):
        if isinstance(value, kind) and not schema.get(fewest, 0) <= len(value) <= schema.get(greatest, len(value)):
            yield f"it has {len(value)} {what}, not {_range(schema.get(fewest), schema.get(greatest))}"


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"from {least} to {most}"
    return f"{least} or more" if most is None else f"{most} or less"


def _signature(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield name if name in schema.get("required", ()) else f"{name} (optional, {' or '.join(_kinds(inner))})"


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
