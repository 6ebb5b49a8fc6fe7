"""Asks every question in every way and scores what comes back."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from resources.models.base import EntityExtractor
from resources.records import Subgraph
from retrico_assets.evaluation.metrics import all_at, recall_at
from retrico_assets.evaluation.questions import GoldQuestion
from retrico_assets.query.answer import Plan, Retrieved, StrategyOptions, linked, retrieve
from retrico_assets.query.options import FusionOptions
from retrico_assets.query.question.question import Question, parse
from retrico_assets.query.retrievers.base import Sources
from retrico_assets.query.retrievers.fusion import fuse
from retrico_assets.query.retrievers.meaning import embed_texts

DEPTH = 20
"""Chunks that each way of asking ranks; documents are ranked by their first chunk."""


@dataclass(frozen=True, slots=True)
class Way:
    """One strategy, or several that are fused."""

    name: str
    strategies: tuple[str, ...]
    fusion: FusionOptions = field(default_factory=FusionOptions)


@dataclass(frozen=True, slots=True)
class Score:
    """Means over the questions, in percent; ``milliseconds`` is the median a question, once it is read, linked and embedded.

    ``errors`` are the distinct ones that strategies reported, each with how often.
    """

    name: str
    questions: int
    recall_at_2: float
    recall_at_5: float
    recall_at_10: float
    all_at_8: float
    milliseconds: float
    errors: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """``reading``: median milliseconds to find a question's names and its embedding, which comes on top, once a question."""

    scores: tuple[Score, ...]
    reading: float


def measure(
    questions: Sequence[GoldQuestion],
    ways: Sequence[Way],
    sources: Sources,
    extractor: EntityExtractor | None,
    options: StrategyOptions | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Score each way. A strategy is asked once a question, whatever the number of ways that it is part of.

    ``sources`` need graph and texts. A strategy that fails counts as having found nothing, and its error is told.
    """
    assert sources.graph is not None
    names = dict.fromkeys(name for way in ways for name in way.strategies)
    own = options or {}
    plans = [Plan((name,), {name: own[name]} if name in own else {}, top_k=DEPTH) for name in names]
    taken = {way.name: _Taken() for way in ways}
    reading = []
    first = _read(questions[0].question, sources, extractor)
    for plan in plans:  # models are loaded and indexes read by the first question: that is not what a question costs
        _timed(plan, first, sources)
    for done, asked in enumerate(questions, 1):
        started = time.perf_counter()
        question = _read(asked.question, sources, extractor)
        reading.append(time.perf_counter() - started)
        found = {plan.strategies[0]: _timed(plan, question, sources) for plan in plans}
        for way in ways:
            taken[way.name].add(way, asked, [found[name] for name in way.strategies], sources)
        on_progress(done, len(questions))
    return Measured(tuple(taken[way.name].score(way) for way in ways), statistics.median(reading) * 1000)


class _Taken:
    """What one way of asking has brought so far."""

    def __init__(self) -> None:
        self._marks: list[list[float]] = []
        self._seconds: list[float] = []
        self._errors: dict[str, int] = {}

    def add(self, way: Way, asked: GoldQuestion, found: Sequence[tuple[Retrieved, float]], sources: Sources) -> None:
        started = time.perf_counter()
        good = {one.strategy: one.subgraph for one, _ in found if one.failure is None}
        together = fuse(good, DEPTH, way.fusion)
        self._seconds.append(sum(seconds for _, seconds in found) + time.perf_counter() - started)
        for one, _ in found:
            if one.failure is not None:
                told = f"{one.strategy}: {one.failure.error}"
                self._errors[told] = self._errors.get(told, 0) + 1
        ranked = _documents(together, sources)
        self._marks.append([*(recall_at(ranked, asked.sources, k) for k in (2, 5, 10)), all_at(ranked, asked.sources, 8)])

    def score(self, way: Way) -> Score:
        at_2, at_5, at_10, all_at_8 = (100 * statistics.fmean(column) for column in zip(*self._marks, strict=True))
        milliseconds = statistics.median(self._seconds) * 1000
        return Score(way.name, len(self._marks), at_2, at_5, at_10, all_at_8, milliseconds, self._errors)


def _read(text: str, sources: Sources, extractor: EntityExtractor | None) -> Question:
    question, _ = parse(text, extractor)
    if sources.embedder is not None and question.text.strip():
        embed_texts(sources.embedder, [question.text])
    assert sources.graph is not None
    return linked(question, sources.graph)


def _timed(plan: Plan, question: Question, sources: Sources) -> tuple[Retrieved, float]:
    started = time.perf_counter()
    found = retrieve(plan.strategies[0], question, sources, plan)
    return found, time.perf_counter() - started


def _documents(found: Subgraph, sources: Sources) -> list[str]:
    """Sources of the documents of the ranked chunks, each where it comes first."""
    assert sources.texts is not None
    ids = list(dict.fromkeys(scored.record.document_id for scored in found.chunks))
    documents = sources.texts.get_documents(ids)
    return [documents[id].source for id in ids if id in documents]
