"""Plug-ins: stores, models, retrievers, tools and providers by name.

A name is an entry point of the group ``retrico.<kind>`` or "module:Class". The built-in plug-ins are registered in
pyproject.toml in the same way as anyone else's.
"""

import importlib
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol, Self, TypeVar

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from resources.errors import SettingsError
from resources.options import Options, faults

KINDS = (
    "graph_stores",
    "vector_stores",
    "text_stores",
    "extractors",
    "embedders",
    "rerankers",
    "retrievers",
    "tools",
    "providers",
)


class Plugin(Protocol):
    """What every plug-in class says of itself."""

    options: ClassVar[type[Options]]
    """Its own options: the keys beside ``backend`` in project.yaml."""
    requires: ClassVar[tuple[str, ...]]
    """Modules of other packages that must be installed for it."""


P = TypeVar("P")


def plugin(kind: str, name: str, base: type[P]) -> type[P]:
    """Find a plug-in's class. Its module is imported, so it must import heavy packages inside functions.

    Raises:
        SettingsError: the name is unknown, can't be imported, or is not a subclass of ``base``.
    """
    reference = name if ":" in name else known_plugins(kind).get(name)
    if reference is None:
        known = ", ".join(known_plugins(kind))
        raise SettingsError(f'{name!r} is not a known plug-in. Known: {known}; or write "module:Class" for your own.')
    module, _, attribute = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"{reference!r} can't be imported: {error}. Correct the name, or install its package.") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise SettingsError(f"{reference!r} is not a subclass of {base.__module__}:{base.__name__}. Extend that class.")
    return found


@lru_cache(maxsize=len(KINDS))
def known_plugins(kind: str) -> dict[str, str]:
    """The registered plug-ins of a kind: "module:Class" by name, sorted by name."""
    return {point.name: point.value for point in sorted(entry_points(group=f"retrico.{kind}"), key=lambda point: point.name)}


def missing_packages(plugin_class: type) -> list[str]:
    """The modules that a plug-in requires and that are not installed."""
    return [name for name in getattr(plugin_class, "requires", ()) if find_spec(name) is None]


class Backend(Options):
    """Which plug-in serves a section of project.yaml, and its options: ``{backend: name, option: value, ...}``.

    A subclass says which kind of plug-in it chooses. ``options`` is an instance of the plug-in's own class of options.
    """

    kind: ClassVar[str]
    base: ClassVar[type]

    backend: str = Field(min_length=1)
    options: Any

    @classmethod
    def of(cls, backend: str, **options: Any) -> Self:
        """The choice of a backend with these options; the others keep their defaults."""
        return cls.model_validate({"backend": backend, **options})

    @property
    def plugin_class(self) -> Any:
        """The class of the plug-in."""
        return plugin(self.kind, self.backend, self.base)

    @model_validator(mode="before")
    @classmethod
    def _own_options(cls, values: Any) -> Any:
        if not isinstance(values, dict) or isinstance(values.get("options"), Options):
            return values
        own = {name: value for name, value in values.items() if name != "backend"}
        backend = values.get("backend", cls.model_fields["backend"].get_default())
        if not isinstance(backend, str):
            raise ValueError('backend is missing. Name a backend, or write "module:Class" for your own.')
        try:
            found: Any = plugin(cls.kind, backend, cls.base)
            if missing := missing_packages(found):
                raise SettingsError(f"backend {backend!r} needs the package {' and '.join(missing)}. Install it.")
        except SettingsError as error:
            raise ValueError(str(error)) from None
        return {"backend": backend, "options": _checked(found.options, own)}


def _checked(options: type[Options], values: dict[str, Any]) -> Options:
    try:
        return options.model_validate(values)
    except ValidationError as error:
        lines = list(faults(error, options))
        raise PydanticCustomError("options", "{text}", {"text": "; ".join(lines), "faults": lines}) from None
