"""`python -m bench.kg`, part of `make eval`: KG models of Kinships and UMLS, trained through the very assets.

RETRICO_EVAL_DATA names the folder with kg/kinships and kg/umls (PyKEEN's splits). Settings are those of configs/eval. Ranks are
PyKEEN's realistic ones, known triples filtered out, heads and tails. Ends with an error below the figures to reach.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
LEAST_MRR = {"kinships": 0.80, "umls": 0.90}
MOST_SECONDS = 15 * 60
METRICS = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")


def main() -> None:
    named = os.environ.get("RETRICO_EVAL_DATA")
    missing = [name for name in LEAST_MRR if not (Path(named or "") / "kg" / name / "train.txt").is_file()]
    if not named or missing:
        sys.exit("bench.kg needs RETRICO_EVAL_DATA: the folder that holds kg/kinships and kg/umls with train, valid and test.txt")
    table = Table("data", "model", *METRICS, "least mrr", "epochs", "seconds", title="KG models, test triples")
    short = []
    for name, least in LEAST_MRR.items():
        found = train(name, Path(named).absolute() / "kg" / name)
        figures = found["metrics"]
        row = (name, found["model"], *(f"{figures[metric]:.4f}" for metric in METRICS))
        table.add_row(*row, f"{least:.2f}", str(found["epochs"]), f"{found['seconds']:.0f}")
        if figures["mrr"] < least or found["seconds"] > MOST_SECONDS:
            short.append(f"{name}: MRR {figures['mrr']:.4f} of {least} in {found['seconds']:.0f} of {MOST_SECONDS} s")
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(table)
    if short:
        sys.exit("short of the figures to reach: " + "; ".join(short))


def train(name: str, triples: Path) -> dict:
    """The summary of `retrico model` on the project of that name, trained anew."""
    source = ROOT / "data" / "eval" / name / "triples"
    source.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        source.unlink()
    source.symlink_to(triples)  # the project names its triples, and the data stays where it is
    project = str(ROOT / "configs" / "eval" / f"{name}.yaml")
    command = [sys.executable, "-m", "retrico_assets.cli.main", "model", "--retrain", "--json", "--project", project]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout)


if __name__ == "__main__":
    main()
