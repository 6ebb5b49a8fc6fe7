"""Runs every benchmark and prints one table."""

import importlib
import sys

from rich.console import Console
from rich.table import Table

MODULES = ("chunking", "vectors", "graph", "extraction", "rebuild")


def main() -> None:
    table = Table("benchmark", "what", "measured", "budget", title="figures of this machine, medians of several runs")
    for name in sys.argv[1:] or MODULES:
        for what, measured, budget in importlib.import_module(f"bench.{name}").run():
            table.add_row(name, what, str(measured), str(budget))
    Console().print(table)


if __name__ == "__main__":
    main()
