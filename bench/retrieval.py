"""`make eval`: graphs from the passages of 2WikiMultiHopQA, and how well each strategy finds what its questions need.

RETRICO_EVAL_DATA names the folder with multihop_2wiki (HippoRAG's corpus of 6,119 passages and 51 of its questions). Two
graphs are built, of all passages and of the 708 that peers were measured on; what is built already is not built again.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECTS = {"all passages": "passages.yaml", "the peers' passages": "peers.yaml"}


def main() -> None:
    named = os.environ.get("RETRICO_EVAL_DATA")
    data = Path(named or "") / "multihop_2wiki"
    if not named or not (data / "corpus.json").is_file():
        sys.exit("make eval needs RETRICO_EVAL_DATA: the folder that holds multihop_2wiki/corpus.json and questions.jsonl")
    passages = json.loads((data / "corpus.json").read_text())
    questions = [json.loads(line) for line in (data / "questions.jsonl").read_text().splitlines()]
    peers = set(json.loads((data / "peer_corpus_titles.json").read_text()))
    kept = {"passages.yaml": passages, "peers.yaml": [passage for passage in passages if passage["title"] in peers]}
    for name, file in PROJECTS.items():
        write_corpus(ROOT / "data" / "eval" / file.removesuffix(".yaml"), kept[file], passages, questions)
        project = ["--project", str(ROOT / "configs" / "eval" / file)]
        print(f"== {name}: {len(kept[file])} documents, {len(questions)} questions", flush=True)
        started = time.monotonic()
        _retrico("build", *project)
        _retrico("community", *project)
        print(f"built in {time.monotonic() - started:.0f} s", flush=True)
        _retrico("eval", *project)
        _retrico("stop", *project)


def write_corpus(folder: Path, kept: list[dict[str, str]], passages: list[dict[str, str]], questions: list[dict]) -> None:
    """A Markdown file a passage, its title being the heading, and the questions with the files that answer them."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    number = {passage["title"]: place for place, passage in enumerate(passages)}
    for passage in kept:
        file, text = corpus / _source(number[passage["title"]]), f"# {passage['title']}\n\n{passage['text']}\n"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
    lines = [
        json.dumps({"question": q["question"], "sources": [_source(place) for place in q["gold_idx"]]}, ensure_ascii=False)
        for q in questions
    ]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")


def _source(place: int) -> str:
    return f"{place:05}.md"


def _retrico(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "retrico_assets.cli.main", *arguments], check=True)


if __name__ == "__main__":
    main()
