"""Extraction throughput against the best hand-written loop around the same model: `python bench/extraction.py`."""

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

MODEL = str(Path(__file__).parents[1] / "configs" / "demo" / "gliner-mini")
LABELS = ["person", "organization", "location", "date"]
RELATIONS = ["born in", "works at", "located in"]
TEXTS = 60
ROUNDS = 3
BATCH = 8

_PEOPLE = ["Ana Silva", "Albert Einstein", "Mia Chen", "Tomas Novak", "Ida Holm", "Grace Hopper", "Omar Haddad", "Lena Fischer"]
_FIRMS = ["Kestrel Labs", "Siemens", "Borealis AG", "the Swiss Patent Office", "Harvard University", "Silva Foods"]
_PLACES = ["Ulm", "Quito", "Germany", "Bern", "Lisbon", "Boston", "Japan", "Prague"]
_SENTENCES = [
    "{p} was born in {l} in {y}.",
    "{p} works at {f}, which is located in {l}.",
    "In {y} {p} moved from {l} to {m} and joined {f} as a research engineer.",
    "The company {f} was founded in {y} by {p} and {q}, who had met in {l} some years before.",
    "It was a quiet year for the town, and little is known about it.",
    "{p}, a teacher, lived in {l} until {y}; afterwards {q} took over the school and kept it open through the winter.",
]


def made_texts(count: int, seed: int = 0) -> list[str]:
    """Chunk texts of 3 to 7 sentences."""
    made = random.Random(seed)

    def sentence() -> str:
        people, places = made.sample(_PEOPLE, 2), made.sample(_PLACES, 2)
        pattern = made.choice(_SENTENCES)
        firm, year = made.choice(_FIRMS), made.randint(1850, 2020)
        return pattern.format(p=people[0], q=people[1], l=places[0], m=places[1], f=firm, y=year)

    return [" ".join(sentence() for _ in range(made.randint(3, 7))) for _ in range(count)]


def run() -> list[tuple[str, float, str]]:
    """Rows of (name, figure, budget). Each ratio is the median of rounds in which both sides run one after the other."""
    from gliner import GLiNER

    from resources.models.gliner.extractors import GlinerEntityExtractor, GlinerRelationExtractor
    from resources.models.gliner.options import GlinerEntityOptions, GlinerRelationOptions

    texts = made_texts(TEXTS)
    model = GLiNER.from_pretrained(MODEL, local_files_only=True).eval()
    windows = _windows(model, texts)
    options = GlinerEntityOptions(model=MODEL, batch_size=BATCH)
    entities = GlinerEntityExtractor(options, LABELS)
    joint = GlinerRelationExtractor(GlinerRelationOptions(model=MODEL, batch_size=BATCH), LABELS, RELATIONS, options)
    entities.extract(texts[:4])
    model.inference(windows[:8], LABELS, RELATIONS)
    ratios, rates, joint_ratios = [], [], []
    for _ in range(ROUNDS):
        bare = _seconds(lambda: model.inference(windows, LABELS, [], batch_size=BATCH, return_relations=False))
        ours = _seconds(lambda: entities.extract(texts))
        ratios.append(bare / ours)
        rates.append(len(windows) / ours)
        bare = _seconds(lambda: model.inference(windows, LABELS, RELATIONS, relation_threshold=0.55, batch_size=BATCH))
        joint_ratios.append(bare / _seconds(lambda: joint.extract_jointly(texts)))
    return [
        ("entities, share of a hand-written loop's speed", statistics.median(ratios), ">= 0.95"),
        ("entities and relations, share of a hand-written loop's speed", statistics.median(joint_ratios), ">= 0.95"),
        ("windows per CPU second (entities)", statistics.median(rates), ""),
    ]


def _windows(model: object, texts: list[str]) -> list[str]:
    """What the hand-written loop reads: the same windows, cut beforehand and sorted by length."""
    from resources.models.gliner.windows import cut_windows, word_ranges
    from resources.text.sentences import sentence_spans

    windows = []
    for text in texts:
        words = [(start, end) for _, start, end in model.data_processor.words_splitter(text)]  # type: ignore[attr-defined]
        longest = model.config.max_len  # type: ignore[attr-defined]
        cut = cut_windows(
            [1] * len(words),
            word_ranges(words, sentence_spans(text)),
            pack=longest // 3,
            max_words=longest,
            max_size=400,
            overlap=11,
        )
        windows += [text[words[window.first][0] : words[window.last - 1][1]] for window in cut]
    return sorted(windows, key=len, reverse=True)


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process: a busy machine does not blur the ratio."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    for name, figure, budget in run():
        print(f"{name:75} {figure:8.2f}  {budget}")
