"""The stores and models that one question uses: opened when a step needs them, closed together."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from resources.secrets import explain
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.sources import Sources

SourceName = Literal["graph", "texts", "vectors", "embedder", "llm", "kg", "extractor", "reranker"]

Opener = Callable[[ExitStack], Any]
"""Opens a source and registers on the stack how it is closed. None: there is no such source."""


def _ignore(text: str) -> None:
    pass


class QuerySession:
    """The sources of a question by name, and where the text of its answer goes while it is written.

    A source is opened by its first use. One that can't be opened is not tried again, so that a store that is down costs one
    time-out and not one a strategy. At the end everything that was opened here is closed, ``given`` sources are not.
    """

    def __init__(
        self,
        openers: Mapping[str, Opener] | None = None,
        given: Mapping[str, Any] | None = None,
        *,
        cache: Path | None = None,
        project: ProjectFacts | None = None,
        on_text: Callable[[str], None] | None = None,
        warn: Callable[[str], None] = _ignore,
    ) -> None:
        """``on_text`` gets the pieces of the answer, ``warn`` a line when an optional source is missing."""
        self._openers = dict(openers or {})
        self._opened = dict(given or {})
        self._errors: dict[str, Exception] = {}
        self._stack = ExitStack()
        self._cache = cache
        self._project = project
        self._warn = warn
        self.on_text = on_text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._stack.close()
        except Exception as failure:  # what the sources gave is known, so the question goes on
            self._warn(f"closing the stores failed: {explain(failure)}")

    def open(self, name: SourceName) -> Any:
        """The source of that name, or None if there is none.

        Raises:
            Exception: whatever opening it raises.
        """
        if name in self._errors:
            raise self._errors[name]
        if name not in self._opened:
            opener = self._openers.get(name)
            try:
                self._opened[name] = opener(self._stack) if opener else None
            except Exception as error:
                self._errors[name] = error
                raise
        return self._opened[name]

    def open_optional(self, name: SourceName, user: str) -> Any:
        """The source of that name, or None if there is none or it can't be opened, which is a warning."""
        try:
            return self.open(name)
        except Exception as error:  # a driver may raise anything, and the user can do without the source
            self._warn(f"{user} continues without {name}: {explain(error)}")
            return None

    def already_open(self, name: SourceName) -> Any:
        """The source of that name if something has used it, else None."""
        return self._opened.get(name)

    def sources_for(self, user: type[Retriever]) -> Sources:
        """What a strategy needs, and of what it can also use what can be opened."""
        names: dict[str, Any] = {name: self.open(name) for name in sorted(user.needs) if name != "names"}
        optional = [name for name in sorted(user.wants - user.needs) if name != "names"]
        names |= {name: self.open_optional(name, user.name) for name in optional}
        return Sources(**names, cache=self._cache, project=self._project)
