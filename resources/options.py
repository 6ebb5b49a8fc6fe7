"""Options: the settings of one part of the system, said once.

Each part has one class of options beside it, which its code takes. ``project.yaml``, the run configuration in Dagster and
the flags of the command line derive from these classes: names, types, defaults, bounds and descriptions are written there
and nowhere else.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resources.errors import SettingsError

Score = Annotated[float, Field(ge=0, le=1)]
"""A share or a probability."""

ErrorDetails = Mapping[str, Any]
Result = TypeVar("Result")


class Options(BaseModel):
    """Base of all options: immutable, and unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str = "") -> Self:
        """Check values and make options of them.

        Raises:
            SettingsError: names each wrong option below ``where``, what is wrong with it, and what is known.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SettingsError("; ".join(faults(error, cls, where))) from None

    def replace(self, values: Mapping[str, Any], where: str = "") -> Self:
        """A copy with other values, checked. None and names that these options don't have change nothing.

        Raises:
            SettingsError: as ``parse``.
        """
        known = type(self).model_fields
        changed = {name: value for name, value in values.items() if name in known and value is not None}
        return self.parse(self.model_dump() | changed, where)


class EnvironmentReference(Options):
    """The name of an environment variable that holds a secret."""

    env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")


def as_value_error(check: Callable[..., Result], *values: Any, **named: Any) -> Result:
    """Call a check, and raise its SettingsError as the ValueError that pydantic expects in a validator."""
    try:
        return check(*values, **named)
    except SettingsError as error:
        raise ValueError(str(error)) from None


def faults(error: ValidationError, model: type[BaseModel], where: str = "") -> Iterator[str]:
    """One line for each wrong value: "key: what is wrong". Values are left out, since one may be a secret."""
    for problem in error.errors(include_input=False, include_url=False):
        location = problem["loc"]
        key = ".".join(filter(None, [where, *(str(part) for part in location)])) or "(top level)"
        nested = problem.get("ctx", {}).get("faults")
        if nested:  # options of a plug-in, checked by a class of its own
            yield from (f"{key}.{fault}" for fault in nested)
        else:
            yield f"{key}: {_message(problem, model)}"


def _message(problem: ErrorDetails, model: type[BaseModel]) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key. {_known_keys(model, problem['loc'][:-1])}"
    if problem["type"] == "model_type":
        return f"must be keys and values. {_known_keys(model, problem['loc'])}"
    return str(problem["msg"]).removeprefix("Value error, ")


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    section: Any = model
    for part in location:
        field = section.model_fields.get(str(part))
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())] if field else []
        section = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if section is None:
            return "Remove it."
    known = ", ".join(section.model_fields)
    return f"Known keys: {known}." if known else "Remove it: there are no options here."
