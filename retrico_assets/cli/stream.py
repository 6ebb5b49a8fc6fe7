"""Show an answer while it is written."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text


@contextmanager
def shown_as_written(wanted: bool | None, as_json: bool) -> Iterator[Callable[[str], None] | None]:
    """A function that shows the pieces of an answer, or None if they are not shown (``wanted`` None: only on a terminal).

    On a terminal the text grows in place, and the result replaces it at the end. Otherwise, and with JSON, stdout has the
    result alone, and the pieces go to stderr.
    """
    console = Console()
    in_place = console.is_terminal and not as_json
    if not (in_place if wanted is None else wanted):
        yield None
    elif in_place:
        # Only the end of a long answer is shown: lines that scrolled away could not be replaced.
        with Live(console=console, transient=True, vertical_overflow="crop") as live:
            yield _Growing(live)
    else:
        yield _to_stderr
        _to_stderr("\n")


class _Growing:
    """The text so far; its last lines, as many as fit."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._text = ""

    def __call__(self, piece: str) -> None:
        self._text += piece
        console = self._live.console
        lines = Text(self._text).wrap(console, console.width)
        self._live.update(Text("\n").join(lines[-(console.height - 1) :]))


def _to_stderr(piece: str) -> None:
    sys.stderr.write(piece)
    sys.stderr.flush()
