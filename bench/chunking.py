"""Speed of chunking: megabytes of UTF-8 per CPU second, and whether eight times the text takes eight times as long.

    python -m bench chunking

Documents are English prose in paragraphs and pages, one line of prose without a blank line, letters without a space, and Chinese.
"""

import time

from resources.records import Document
from retrico_assets.corpus.chunking import chunk_document
from retrico_assets.corpus.options import ChunkingOptions

SMALL, LARGE = 500_000, 4_000_000
_BUDGET = ">= 10 MB per CPU second, ratio <= 1.5"

_SENTENCES = (
    "Albert Einstein was born in Ulm in 1879 and grew up in Munich.",
    "After his studies he worked, as he later told Dr. Planck, at the Swiss Patent Office in Bern.",
    "Why did he leave?",
    '"The work was good," he said (and meant it), "but the evenings were too short."',
    "In 1905 four papers appeared, among them the one on the photoelectric effect, which won the Nobel Prize of 1921.",
    "His salary was about 3.5 thousand francs a year.",
)
_PARAGRAPH = " ".join(_SENTENCES)
_TEXTS = {
    "prose": "\n\n".join([_PARAGRAPH] * 5) + "\f",
    "one line": _PARAGRAPH + " ",
    "no space": "A",
    "Chinese": "爱因斯坦于一八七九年出生在乌尔姆,后来在伯尔尼的瑞士专利局工作。他说:「工作很好。」后来他去了普林斯顿高等研究院。",
}
_METHODS = {
    "sentence": ChunkingOptions(method="sentence"),
    "paragraph": ChunkingOptions(method="paragraph"),
    "page": ChunkingOptions(method="page"),
    "fixed": ChunkingOptions(method="fixed"),
    "fixed, overlap 200": ChunkingOptions(method="fixed", overlap=200),
}


def run() -> list[tuple[str, str, str]]:
    """Rows of (what, figure, budget)."""
    rows = []
    for text_name, unit in _TEXTS.items():
        for method_name, options in _METHODS.items():
            small, large = (_speed(unit, size, options) for size in (SMALL, LARGE))
            figure = f"{small:.0f} and {large:.0f} MB/s, {small / large:.2f}"
            rows.append((f"{method_name}, {text_name}: 0.5 MB and 4 MB, time per byte 4 : 0.5 MB", figure, _BUDGET))
    return rows


def _speed(unit: str, size: int, options: ChunkingOptions) -> float:
    text = unit * (size // len(unit.encode()) + 1)
    document = Document("d", "d.txt", "d", text, "")
    best = float("inf")
    for _ in range(3):  # the machine may be busy with something else
        begin = time.process_time()
        chunk_document(document, options)
        best = min(best, time.process_time() - begin)
    return len(text.encode()) / 1e6 / best


if __name__ == "__main__":
    for name, figure, budget in run():
        print(f"{name:95} {figure:>25}   {budget}")
