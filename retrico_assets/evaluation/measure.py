"""Asks every question in every way and scores what comes back."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from resources.records import Subgraph
from resources.texts.base import TextStore
from retrico_assets.evaluation.metrics import all_at, recall_at
from retrico_assets.evaluation.questions import GoldQuestion
from retrico_assets.query.options import FusionOptions
from retrico_assets.query.plan import Plan, StrategyOptions
from retrico_assets.query.retrievers.meaning import embed_texts
from retrico_assets.query.session import QuerySession
from retrico_assets.query.state import QueryState, Retrieved
from retrico_assets.query.steps import FUSE, RETRIEVE, STEPS, run_steps

DEPTH = 20
"""Chunks that each way ranks; documents are ranked by their first chunk."""

_READING = STEPS[: STEPS.index(RETRIEVE)]
_FUSING = STEPS[STEPS.index(RETRIEVE) + 1 : STEPS.index(FUSE) + 1]


@dataclass(frozen=True, slots=True)
class Way:
    """One strategy, or several whose rankings are fused."""

    name: str
    strategies: tuple[str, ...]
    fusion: FusionOptions = field(default_factory=FusionOptions)


@dataclass(frozen=True, slots=True)
class Score:
    """Means over the questions, in percent. ``milliseconds`` is the median per question, without reading it.

    ``errors`` are the distinct errors of the strategies, each with the number of questions.
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
    """The scores of each way. ``reading`` is the median time to find a question's names and its embedding, in milliseconds.

    Each question is read once, and that time comes on top of the time of each way.
    """

    scores: tuple[Score, ...]
    reading: float


@dataclass(frozen=True, slots=True)
class _Timed:
    """The result of one strategy, and the seconds it took."""

    result: Retrieved
    seconds: float


def measure(
    questions: Sequence[GoldQuestion],
    ways: Sequence[Way],
    session: QuerySession,
    options: StrategyOptions | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Score each way. Each strategy runs once per question, however many ways use it.

    A strategy that fails counts as having found nothing, and its error is part of the score.

    Args:
        session: gives the sources; it must have a graph and a text store.
        options: options by strategy.
        on_progress: gets the number of questions done and of all questions.
    """
    texts: TextStore = session.open("texts")
    strategies = tuple(dict.fromkeys(name for way in ways for name in way.strategies))
    plan = Plan(strategies, options or {}, top_k=DEPTH)
    tallies = {way.name: _Tally(way, texts, session) for way in ways}
    seconds_to_read = []
    # The first question loads models and reads indexes, which later ones don't: it runs once more, outside of the figures.
    _retrieve(_read(questions[0].question, plan, session), session)
    for done, gold in enumerate(questions, 1):
        started = time.perf_counter()
        state = _read(gold.question, plan, session)
        seconds_to_read.append(time.perf_counter() - started)
        results = _retrieve(state, session)
        for way in ways:
            tallies[way.name].add(gold, state, [results[name] for name in way.strategies])
        on_progress(done, len(questions))
    return Measured(tuple(tallies[way.name].score() for way in ways), statistics.median(seconds_to_read) * 1000)


class _Tally:
    """What one way found so far."""

    def __init__(self, way: Way, texts: TextStore, session: QuerySession) -> None:
        self._way = way
        self._texts = texts
        self._session = session
        self._marks: list[list[float]] = []
        self._seconds: list[float] = []
        self._errors: dict[str, int] = {}

    def add(self, gold: GoldQuestion, state: QueryState, timed: Sequence[_Timed]) -> None:
        """Count a question that was read, with the results of the strategies of this way."""
        plan = replace(state.plan, strategies=self._way.strategies, fusion=self._way.fusion)
        started = time.perf_counter()
        results = replace(state, plan=plan).with_retrieved(one.result for one in timed)
        fused = run_steps(_FUSING, results, self._session)
        self._seconds.append(sum(one.seconds for one in timed) + time.perf_counter() - started)
        for failure in fused.failures:
            error = f"{failure.strategy}: {failure.error}"
            self._errors[error] = self._errors.get(error, 0) + 1
        ranked = _sources(fused.subgraph, self._texts)
        self._marks.append([*(recall_at(ranked, gold.sources, k) for k in (2, 5, 10)), all_at(ranked, gold.sources, 8)])

    def score(self) -> Score:
        at_2, at_5, at_10, all_at_8 = (100 * statistics.fmean(column) for column in zip(*self._marks, strict=True))
        milliseconds = statistics.median(self._seconds) * 1000
        return Score(self._way.name, len(self._marks), at_2, at_5, at_10, all_at_8, milliseconds, self._errors)


def _read(text: str, plan: Plan, session: QuerySession) -> QueryState:
    """The question with its names, and its embedding ready for the strategies that use it."""
    embedder = session.open("embedder")
    if embedder is not None and text.strip():
        embed_texts(embedder, [text])
    return run_steps(_READING, QueryState.begin(text, plan), session)


def _retrieve(state: QueryState, session: QuerySession) -> dict[str, _Timed]:
    """The result of each strategy."""
    results = {}
    for strategy in state.plan.strategies:
        started = time.perf_counter()
        result = RETRIEVE.apply_to(strategy, state, session)
        results[strategy] = _Timed(result, time.perf_counter() - started)
    return results


def _sources(subgraph: Subgraph, texts: TextStore) -> list[str]:
    """Sources of the documents of the ranked chunks, each at its first place."""
    ids = list(dict.fromkeys(scored.record.document_id for scored in subgraph.chunks))
    documents = texts.get_documents(ids)
    return [documents[id].source for id in ids if id in documents]
