"""Options: the settings of one part of the system, said once.

Each part has one class of options beside it, which its code takes. ``project.yaml``, the run configuration in Dagster and
the flags of the command line derive from these classes: names, types, defaults, bounds and descriptions are written there
and nowhere else.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from resources.errors import SettingsError
from resources.option_fields import alternatives, bounds

Score = Annotated[float, Field(ge=0, le=1)]
"""A share or a probability."""


def _absolute(path: str, info: ValidationInfo) -> str:
    if "\0" in path or not path.strip():
        raise ValueError("A path can't be empty or contain a NUL character.")
    folder = (info.context or {}).get("folder")
    return path if folder is None else os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


PATH = AfterValidator(_absolute)
"""The mark of paths, for code that looks at fields."""

ProjectPath = Annotated[str, PATH]
"""A path. In project.yaml it is relative to the folder of the file (``context={"folder": ...}`` of ``model_validate``), in a
flag to the working directory.
"""

ErrorDetails = Mapping[str, Any]
Location = tuple[int | str, ...]
Result = TypeVar("Result")

_LONGEST_VALUE = 60
_SECRET = re.compile(r"(^|_)(key|password|secret|token)$", re.IGNORECASE)
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "number_expected": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "keys and values",
}


class Options(BaseModel):
    """Base of all options: immutable, and unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_not_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name in cls.model_fields:
            allowed = alternatives(cls.model_fields[info.field_name].annotation)
            if bool not in allowed and {int, float} & {part for part in allowed if isinstance(part, type)}:
                raise PydanticCustomError("number_expected", "not a number")
        return value

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str = "") -> Self:
        """Check values and make options of them.

        Raises:
            SettingsError: names each wrong option below ``where``, what is wrong with it, and what is allowed.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SettingsError(" ".join(faults(error, cls, where))) from None

    def replace(self, values: Mapping[str, Any], where: str = "") -> Self:
        """A copy with other values, checked. None and names that these options don't have change nothing.

        Raises:
            SettingsError: as ``parse``.
        """
        known = type(self).model_fields
        changed = {name: value for name, value in values.items() if name in known and value is not None}
        return self.parse({name: getattr(self, name) for name in known} | changed, where)


class EnvironmentReference(Options):
    """The name of an environment variable that holds a secret."""

    env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="The name of the environment variable.")


def as_value_error(check: Callable[..., Result], *values: Any, **named: Any) -> Result:
    """Call a check, and raise its SettingsError as the ValueError that pydantic expects in a validator."""
    try:
        return check(*values, **named)
    except SettingsError as error:
        raise ValueError(str(error)) from None


def dotted(location: Location) -> str:
    """A key as in project.yaml: ``communities.levels``."""
    return ".".join(str(part) for part in location)


def faults(
    error: ValidationError, model: type[BaseModel], where: str = "", as_key: Callable[[Location], str] = dotted
) -> Iterator[str]:
    """Describe each wrong value in a sentence or two: "communities.levels is 0. It must be between 1 and 10."

    A value that may be a secret is left out.
    """
    for problem in error.errors(include_url=False):
        location = problem["loc"]
        key = ".".join(filter(None, [where, as_key(location)])) or "(top level)"
        nested = problem.get("ctx", {}).get("faults")
        if nested:  # options of a plug-in, checked by a class of its own
            yield from (f"{key}.{fault}" for fault in nested)
        else:
            yield _sentences(key, problem, model)


def _sentences(key: str, problem: ErrorDetails, model: type[BaseModel]) -> str:
    kind, location = problem["type"], problem["loc"]
    if kind == "extra_forbidden":
        return f"{key} is an unknown key. {_known_keys(model, location[:-1])}"
    if kind == "missing":
        return f"{key} is missing. Add it."
    if kind in ("model_type", "model_attributes_type"):
        return f"{key} must be keys and values. {_known_keys(model, location)}"
    if kind == "value_error":
        return f"{key}: {str(problem['msg']).removeprefix('Value error, ')}"
    value = _shown(problem["input"], model, location)
    subject = f"{key} is {value}." if value else f"{key} is not valid."
    return f"{subject} {_expectation(problem, model)}"


def _expectation(problem: ErrorDetails, model: type[BaseModel]) -> str:
    kind = problem["type"]
    if kind == "literal_error":
        return f"It must be {problem['ctx']['expected']}."
    if kind in _EXPECTED:
        return f"It must be {_EXPECTED[kind]}."
    field = _field(model, problem["loc"])
    if kind.startswith(("greater_than", "less_than")) and field and bounds(field):
        return f"It must be {bounds(field)}."
    return f"{problem['msg']}."


def _shown(value: Any, model: type[BaseModel], location: Location) -> str:
    """The value for a message; empty if it may be a secret or is too long."""
    if not isinstance(value, str | int | float | bool):
        return "null" if value is None else ""
    sections = [_section(model, location[:depth]) for depth in range(len(location) + 1)]
    if EnvironmentReference in sections or _SECRET.search(str(location[-1]) if location else ""):
        return ""
    text = repr(value)
    return "" if len(text) > _LONGEST_VALUE or "://" in text else text


def _field(model: type[BaseModel], location: Location) -> FieldInfo | None:
    section = _section(model, location[:-1])
    return section.model_fields.get(str(location[-1])) if section and location else None


def _section(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The options class at this place below ``model``, if there is one."""
    section: type[BaseModel] | None = model
    for part in location:
        field = section.model_fields.get(str(part)) if section else None
        section = next(filter(_is_section, alternatives(field.annotation) if field else ()), None)
    return section


def _is_section(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _known_keys(model: type[BaseModel], location: Location) -> str:
    section = _section(model, location)
    if section is None:
        return "Remove it."
    known = ", ".join(section.model_fields)
    return f"Known keys: {known}." if known else "Remove it: there are no options here."
