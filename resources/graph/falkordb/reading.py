"""What a Cypher statement of unknown origin needs before it is run, beside the server's read-only mode."""

import re

from resources.errors import StoreError

_LOAD = re.compile(r"load", re.IGNORECASE)
_QUOTED_OR_BRACE = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|/\*.*?\*/|//[^\n]*|[{}]""",
    re.DOTALL,
)
_BETWEEN = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*|\W", re.DOTALL)


def check_reading(statement: str) -> None:
    """StoreError for LOAD CSV, which the server counts as reading although it opens files and asks other machines.

    The two words are refused wherever they stand, in a string too: telling a string from a clause takes the server's own parser.
    """
    for match in _LOAD.finditer(statement):
        place = match.end()
        while between := _BETWEEN.match(statement, place):
            place = between.end()
        if place > match.end() and statement[place : place + 3].casefold() == "csv":
            raise StoreError(
                "LOAD CSV reads from outside of the graph; a read-only statement can't hold it. Pass text as a parameter."
            )


def limited(statement: str, max_rows: int) -> str:
    """The statement, stopped by the server after so many rows; it has to end in RETURN. StoreError if its braces don't match."""
    depth = 0
    for match in _QUOTED_OR_BRACE.finditer(statement):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth < 0:
            break
    if depth:
        raise StoreError("The braces of the statement don't match: each { needs its }. Correct it.")
    return f"CALL {{ {statement.rstrip().rstrip(';')}\n}} RETURN * LIMIT {max(0, int(max_rows))}"
