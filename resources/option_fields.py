"""What a field of an options class says about itself: its plain type, its choices, its bounds, its description.

Run configuration, command-line flags and messages are derived from this.
"""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

PLAIN = (str, int, float, bool)


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types that a value may have, without ``Annotated`` and ``None``."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(part for choice in get_args(annotation) for part in alternatives(choice))
    return () if annotation is type(None) else (annotation,)


def plain_type(annotation: Any) -> Any:
    """The annotation in types that Dagster's run configuration knows: choices become str, sections ``dict[str, Any]``.

    A type that has no counterpart becomes ``Any``.
    """
    types_of_value = alternatives(annotation)
    if len(types_of_value) != 1:
        return Any
    (value_type,) = types_of_value
    origin, arguments = get_origin(value_type), get_args(value_type)
    if value_type in PLAIN:
        return value_type
    if origin is Literal and all(isinstance(choice, str) for choice in arguments):
        return str
    if origin is list:
        return list[plain_type(arguments[0])]  # type: ignore[misc]
    if origin is dict:
        return dict[str, plain_type(arguments[1])]  # type: ignore[misc]
    if isinstance(value_type, type) and issubclass(value_type, BaseModel):
        return dict[str, Any]
    return Any


def choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a ``Literal``; empty for other types."""
    found = alternatives(annotation)
    return tuple(choice for part in found if get_origin(part) is Literal for choice in get_args(part))


def has_mark(field: FieldInfo, mark: object) -> bool:
    """Whether ``Annotated`` puts this mark on the field's type, at any depth: ``list[Annotated[str, mark]]`` is marked."""
    return mark in field.metadata or _is_marked(field.annotation, mark)


def _is_marked(annotation: Any, mark: object) -> bool:
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return mark in marks or any(_is_marked(argument, mark) for argument in get_args(annotation))


def optional(field: FieldInfo) -> Any:
    """The type of a field with its bounds, or None."""
    annotation: Any = field.annotation
    for constraint in field.metadata:
        annotation = Annotated[annotation, constraint]
    return Union[annotation, None]  # noqa: UP007


def describe(field: FieldInfo) -> str:
    """The description of a field, with its choices."""
    parts = [field.description or ""]
    if allowed := choices(field.annotation):
        parts.append(f"One of: {', '.join(map(str, allowed))}.")
    return " ".join(filter(None, parts))


def bounds(field: FieldInfo) -> str:
    """The bounds of a number in words, such as "between 1 and 10" or "greater than 0"; empty if there are none."""
    limits: dict[str, Any] = {}
    for constraint in _constraints(field):
        for name in ("ge", "gt", "le", "lt"):
            if (value := getattr(constraint, name, None)) is not None:
                limits[name] = value
    if limits.keys() == {"ge", "le"}:
        return f"between {limits['ge']} and {limits['le']}"
    words = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}
    return " and ".join(f"{words[name]} {value}" for name, value in limits.items())


def _constraints(field: FieldInfo) -> Iterator[Any]:
    yield from field.metadata
    yield from _annotations(field.annotation)


def _annotations(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        yield from _annotations(inner)
        for mark in marks:
            yield from mark.metadata if isinstance(mark, FieldInfo) else [mark]
    elif get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from _annotations(part)
    elif isinstance(annotation, annotated_types.BaseMetadata):
        yield annotation
