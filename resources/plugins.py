"""Plug-ins: stores, models, retrievers, tools and providers by name.

A name is an entry point of the group ``retrico.<kind>`` or "module:Class". The built-in plug-ins are registered in
pyproject.toml in the same way as anyone else's.
"""

import importlib
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from pydantic import Field, ValidationError, ValidationInfo, model_validator
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
        words = kind.replace("_", " ")
        known = ", ".join(known_plugins(kind))
        raise SettingsError(f'{name!r} is not one of the known {words}. Known: {known}. Or write "module:Class" for your own.')
    module, _, attribute = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a module of another author may raise anything
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


def open_store(kind: str, base: type[P], backend: str, folder: Path) -> P:
    """Open a store with the default options of its backend.

    Raises:
        SettingsError: the backend is unknown, or a package that it needs is not installed.
        StoreError: the store can't be opened.
    """
    store: Any = plugin(kind, backend, base)
    if missing := missing_packages(store):
        raise SettingsError(f"{backend!r} needs the package {' and '.join(missing)}. Install it.")
    opened: P = store.open(store.options(), Path(folder))
    return opened


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
        return cls.parse({"backend": backend, **options})

    @property
    def plugin_class(self) -> Any:
        """The class of the plug-in."""
        return plugin(self.kind, self.backend, self.base)

    @classmethod
    def options_class(cls, plugin_class: Any) -> type[Options]:
        """The class of a plug-in's options. A kind with several classes of options overrides it.

        Raises:
            SettingsError: the plug-in can't serve this section.
        """
        options: type[Options] = plugin_class.options
        return options

    def changed_options(self) -> dict[str, Any]:
        """The options that differ from their defaults, for the configuration of a Dagster resource.

        Dagster does not accept null in a dictionary, which is what most defaults are.
        """
        changed: dict[str, Any] = self.options.model_dump(mode="json", exclude_defaults=True)
        return changed

    def as_config(self) -> dict[str, Any]:
        """The section as in project.yaml, without defaults."""
        return {"backend": self.backend, **self.changed_options()}

    @model_validator(mode="before")
    @classmethod
    def _own_options(cls, values: Any, info: ValidationInfo) -> Any:
        if isinstance(values, cls) or (isinstance(values, dict) and isinstance(values.get("options"), Options)):
            return values
        if not isinstance(values, dict):
            raise ValueError("The section must be keys and values, such as {backend: name}.")
        shared = {name: value for name, value in values.items() if name in cls.model_fields}
        own = {name: value for name, value in values.items() if name not in cls.model_fields}
        backend = values.get("backend", cls.model_fields["backend"].get_default())
        if not isinstance(backend, str):
            raise _faulty(['backend is missing. Name a backend, or write "module:Class" for your own.'])
        try:
            found: Any = plugin(cls.kind, backend, cls.base)
            if missing := missing_packages(found):
                raise SettingsError(f"{backend!r} needs the package {' and '.join(missing)}. Install it.")
            options = cls.options_class(found)
        except SettingsError as error:
            raise _faulty([f"backend: {error}"]) from None
        return {**shared, "backend": backend, "options": _checked(options, own, info.context)}


def _checked(options: type[Options], values: dict[str, Any], context: Any) -> Options:
    try:
        return options.model_validate(values, context=context)
    except ValidationError as error:
        raise _faulty(list(faults(error, options))) from None


def _faulty(lines: list[str]) -> PydanticCustomError:
    """An error whose lines ``options.faults`` puts below the key of the section."""
    return PydanticCustomError("options", "{text}", {"text": " ".join(lines), "faults": lines})
