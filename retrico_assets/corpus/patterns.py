"""Patterns that choose files by their path relative to the corpus folder."""

import re
from collections.abc import Sequence

from wcmatch import glob

from resources.errors import SettingsError

_FLAGS = glob.GLOBSTAR | glob.DOTGLOB | glob.CASE | glob.FORCEUNIX
_RANGE = re.compile(r"\[!?\]?[^\]]*\]")


class FilePatterns:
    """Glob patterns: ``*`` and ``?`` stay inside a name, ``**/`` is any number of folders, ``[a-z]`` a range. Case counts."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Check and compile the patterns.

        Raises:
            SettingsError: a pattern can't match anything.
        """
        self._matcher = glob.compile([_checked(pattern) for pattern in patterns], flags=_FLAGS) if patterns else None

    def match(self, source: str) -> bool:
        """True when one of the patterns matches the path."""
        return self._matcher is not None and self._matcher.match(source)


def _checked(pattern: str) -> str:
    relative = pattern.removeprefix("./").rstrip("/")
    parts = relative.split("/")
    if pattern.startswith("/") or ".." in parts or "" in parts:
        raise SettingsError(f"The pattern {pattern!r} can't match. Write it relative to the corpus folder, like '**/*.txt'.")
    for found in _RANGE.finditer(relative):  # wcmatch takes a range that runs backwards for an empty one
        try:
            re.compile("[" + re.sub(r"([\\\[&~|])", r"\\\1", found[0][1:-1].removeprefix("!")) + "]")
        except re.error as error:
            raise SettingsError(f"The pattern {pattern!r} is invalid: {error}. Write a range like '[a-z]'.") from error
    return relative
