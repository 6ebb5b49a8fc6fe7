"""An unchanged corpus built again, against its first build: 2,000 chunks through the whole job, with the real models."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CHUNKS = 2000
REBUILDS = 3
TEXT = "Person {0} was born in Paris. Person {0} works at the University of Bonn. In 1950 Person {0} moved from Bonn to Rome."

Row = tuple[str, str, str]


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        project = _make_project(Path(folder))
        try:
            first = _build(project)
            again = [_build(project) for _ in range(REBUILDS)]
            empty = _startup(Path(folder))
        finally:
            _retrico(project, "stop")
    second = statistics.median(build["seconds"] for build in again)
    beyond = max(0.0, second - empty)
    assert all(build["model_calls"] == 0 for build in again)
    return [
        (f"first build of {first['chunks']:,} chunks", f"{first['seconds']:.1f} s", ""),
        ("the same again, start-up included", f"{second:.1f} s", ""),
        ("the same again, beyond start-up", f"{beyond:.2f} s = {beyond / first['seconds']:.2%} of the first", "<= 2 %"),
    ]


def _make_project(folder: Path) -> Path:
    corpus = folder / "corpus"
    corpus.mkdir()
    for number in range(CHUNKS // 10):
        paragraphs = (TEXT.format(f"{number} Miller {line}") for line in range(10))
        (corpus / f"{number}.txt").write_text("\n\n".join(paragraphs))
    return _write(folder / "project.yaml")


def _startup(folder: Path) -> float:
    """Seconds of a build with nothing to do, the same process start and the same job."""
    project = folder / "empty" / "project.yaml"
    (project.parent / "corpus").mkdir(parents=True)
    _write(project)
    try:
        return statistics.median(_build(project)["seconds"] for _ in range(REBUILDS))
    finally:
        _retrico(project, "stop")


def _write(project: Path) -> Path:
    model = {"model": str(REPOSITORY / "configs/demo/gliner-mini")}
    models = {"entities": model, "relations": model}
    project.write_text(json.dumps({"corpus": {"chunking": {"method": "paragraph"}}, "models": models}))
    return project


def _build(project: Path) -> dict:
    return json.loads(_retrico(project, "build", "--json"))


def _retrico(project: Path, *arguments: str) -> str:
    command = [str(Path(sys.executable).parent / "retrico"), *arguments, "--project", str(project)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
