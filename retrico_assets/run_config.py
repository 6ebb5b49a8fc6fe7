"""Run configuration in Dagster, derived from options.

``project.yaml`` sets the options of a project; the configuration of a run replaces some of them for that run.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import dagster as dg
from pydantic import Field, create_model

from resources.option_fields import describe, plain_type
from resources.options import Options

O = TypeVar("O", bound=Options)  # noqa: E741
C = TypeVar("C", bound="RunConfig")


class RunConfig(dg.Config):
    """Base of run configurations whose fields come from an options class: see ``fields_of``."""

    def replace_in(self, options: O, where: str = "config") -> O:
        """The project's options with the values of this run.

        Raises:
            SettingsError: a value is not allowed; the message names its key below ``where``.
        """
        return options.replace(self.model_dump(), where)


def fields_of(options: type[Options], *names: str) -> Callable[[type[C]], type[C]]:
    """Add fields of an options class to a ``RunConfig``: those named, else all.

    Each field takes over its description. Its default is None, which means: as project.yaml says. Bounds and choices are
    checked by the options themselves (``RunConfig.replace_in``), so that each mistake has one message.
    """

    def add_fields(config: type[C]) -> type[C]:
        fields: dict[str, Any] = {}
        for name in names or tuple(options.model_fields):
            field = options.model_fields[name]
            fields[name] = (plain_type(field.annotation) | None, Field(None, description=describe(field)))
        return create_model(config.__name__, __base__=config, __module__=config.__module__, __doc__=config.__doc__, **fields)

    return add_fields
