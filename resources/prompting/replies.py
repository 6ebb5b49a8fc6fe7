"""Replies of a language model as pydantic objects: their schema, and how they are read from its text."""

import contextlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from resources.models.llm.json_text import read_json


class ModelReply(BaseModel):
    """Base of what a language model replies with. Names of fields are read in any case, unknown ones are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    example: ClassVar[str]
    """A reply, as the prompt and the reminder show it."""
    items_field: ClassVar[str | None] = None
    """The field that a reply which is a list, or a single item, is read as."""

    @classmethod
    def schema_for_model(cls) -> dict[str, Any]:
        """The JSON schema in the strict form of structured output: no references, all fields required, no others."""
        schema = cls.model_json_schema()
        strict: dict[str, Any] = _strict(schema, schema.get("$defs", {}))
        return strict

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The reply in a model's text: its first object, or one of its list of objects. None if there is none."""
        for candidate in cls._candidates(read_json(text)):
            try:
                return cls.model_validate(candidate)
            except ValidationError:
                continue
        return None

    @classmethod
    def _candidates(cls, value: Any) -> Iterator[dict[str, Any]]:
        items = cls.items_field
        if items is not None and isinstance(value, list) and any(isinstance(item, dict) for item in value):
            yield {items: value}
            return
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                continue
            fields = {str(name).strip().lower(): part for name, part in item.items()}
            yield fields if items is None or items in fields else {items: [fields]}


def as_list(value: Any) -> Any:
    """A list that a model wrote as text, as a single item or not at all."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def as_flag(value: Any) -> Any:
    """A truth value, which small models write as text. None if it is neither true nor false."""
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "false": False, "no": False}.get(str(value).strip().lower())


Flag = Annotated[bool | None, BeforeValidator(as_flag)]


def is_json(text: str) -> bool:
    """Whether a text is JSON of some kind other than a number, or begins like an object."""
    text = text.strip()
    if text.startswith(("{", "```")):
        return True
    try:
        return not isinstance(json.loads(text), int | float) or text in ("true", "false")
    except ValueError:
        return False


def _strict(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_strict(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _strict(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    strict = {
        name: _strict(part, definitions)
        for name, part in schema.items()
        if name not in ("$defs", "title", "description", "default", "properties")
    }
    if "properties" in schema:
        strict["properties"] = {name: _strict(part, definitions) for name, part in schema["properties"].items()}
        strict["required"] = list(schema["properties"])
        strict["additionalProperties"] = False
    return strict
