"""Runs every benchmark and prints one table."""

import importlib
import sys

from rich.console import Console
from rich.table import Table

MODULES = ("chunking", "vectors", "graph", "communities", "query", "extraction", "rebuild")


def main() -> None:
    table = Table("benchmark", "what", "measured", "budget", title="figures of this machine, medians of several runs")
    for name in sys.argv[1:] or MODULES:
        for what, measured, budget in importlib.import_module(f"bench.{name}").run():
            table.add_row(name, what, f"{measured:.3g}" if isinstance(measured, float) else str(measured), str(budget))
    console = Console()
    # Into a file the table is as wide as it needs to be.
    (console if console.is_terminal else Console(width=160)).print(table)


if __name__ == "__main__":
    main()
