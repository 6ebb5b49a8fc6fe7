"""Command-line flags, derived from options."""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from resources.errors import SettingsError
from resources.option_fields import PLAIN, describe, has_mark, plain_type
from resources.options import PATH, Location, Options, dotted, faults

Command = Callable[..., Any]

Names = Mapping[str, str]
"""Names of flags by the names of their options, where the two differ."""


def flags_of(options: type[Options], *fields: str, names: Names | None = None) -> Callable[[Command], Command]:
    """Give a command one flag for each of these options, or for all of them.

    The command gets the values as a dictionary in its parameter ``values``: only the flags that were used, by the names of
    the options. Lists may be written with commas or as several flags, dictionaries as JSON. Bounds and choices are left to
    ``check``, so that each mistake has one message.
    """
    flag_names = {field: (names or {}).get(field, field) for field in fields or tuple(options.model_fields)}

    def add_flags(command: Command) -> Command:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "values":
                parameters += [_parameter(flag, options.model_fields[field]) for field, flag in flag_names.items()]
            else:
                parameters.append(parameter)

        @wraps(command)
        def run(**arguments: Any) -> Any:
            given = {field: arguments.pop(flag) for field, flag in flag_names.items()}
            values = {
                field: _value(flag_names[field], options.model_fields[field], value)
                for field, value in given.items()
                if value not in (None, [])
            }
            return command(values=values, **arguments)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return add_flags


def check(options: Options, values: Mapping[str, Any], names: Names | None = None) -> None:
    """Check the values of flags before anything runs, with the other options as the project has them.

    Raises:
        SettingsError: a value is not allowed; the message names its flag.
    """

    def as_flag(location: Location) -> str:
        if not location:
            return ""
        name = str(location[0])
        return "--" + dotted(((names or {}).get(name, name).replace("_", "-"), *location[1:]))

    known = type(options)
    try:
        known.model_validate({name: getattr(options, name) for name in known.model_fields} | dict(values))
    except ValidationError as error:
        raise SettingsError(" ".join(faults(error, known, as_key=as_flag))) from None


def _parameter(flag: str, field: FieldInfo) -> inspect.Parameter:
    value_type = plain_type(field.annotation)
    help_text = describe(field)
    if value_type in PLAIN:
        annotation = value_type
    elif get_origin(value_type) is list:
        annotation = list[str]
        help_text += " Separated by commas."
    else:
        annotation = str
        help_text += " As JSON."
    annotation = Annotated[annotation | None, typer.Option(help=help_text)]
    return inspect.Parameter(flag, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)


def _value(flag: str, field: FieldInfo, given: Any) -> Any:
    """The value of an option from what was written. Numbers in lists stay text: the options class reads them."""
    value_type = plain_type(field.annotation)
    if get_origin(value_type) is list:
        parts = [part.strip() for text in given for part in text.split(",")]
        (item_type,) = get_args(value_type)
        return [_item(flag, item_type, part) for part in parts if part]
    if value_type not in PLAIN:
        return _json(flag, given)
    if has_mark(field, PATH):
        return str(Path(given).expanduser().absolute())
    return given


def _item(flag: str, item_type: Any, text: str) -> Any:
    if item_type not in (int, float):
        return text
    try:
        return item_type(text)
    except ValueError:
        raise SettingsError(f"--{flag.replace('_', '-')} contains {text!r}. Each part must be a number.") from None


def _json(flag: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--{flag.replace('_', '-')} is {text!r}. It must be JSON ({error}).") from None
