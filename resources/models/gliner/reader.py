"""The loop that all GLiNER extractors share: texts to windows, windows to batches, results back to their texts."""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from resources.errors import ExtractionError
from resources.models.base import Extraction, Extractor, OnResult, Span, fingerprint_of
from resources.models.folders import model_version
from resources.models.gliner.model import GlinerModel, WindowResult, WordRange, load_gliner
from resources.models.gliner.options import GlinerOptions
from resources.models.gliner.windows import Window, cut_windows, whole_words, word_ranges
from resources.text.characters import is_blank
from resources.text.sentences import sentence_spans

RULES_VERSION = 2
"""Part of every fingerprint. Raise it when a change of this package changes results."""

BLOCK = 128
"""Texts whose windows are sorted by length together: enough to fill batches evenly, few enough that results flow."""

Pass = tuple[Sequence[str], Sequence[str]]
"""The entity labels and the relation labels of one prompt."""


@dataclass(frozen=True, slots=True)
class Job:
    """One window of one text. ``given`` are the known entities in it, by place; ``size`` counts subwords."""

    text: int
    window: Window
    words: list[tuple[int, int]]
    tokens: list[str]
    size: int
    given: dict[WordRange, Span]


Reading = tuple[Job, WindowResult]


@dataclass(frozen=True)
class Task:
    """What one call of an extractor does with its texts.

    ask: results of windows, all passes together. finish: the extraction of a text (by its index) from its windows.
    given: the known entities of each text; None if the task is to find them.
    """

    texts: Sequence[str]
    passes: Sequence[Pass]
    ask: Callable[[GlinerModel, list[Job]], list[WindowResult]]
    finish: Callable[[int, list[Reading]], Extraction]
    given: Sequence[Sequence[Span]] | None = None

    def needs_model(self, index: int) -> bool:
        """Whether there is anything to find in a text."""
        if not self.passes or is_blank(self.texts[index]):
            return False
        return self.given is None or len(self.given[index]) > 1


class GlinerReader(Extractor, ABC):
    """What both extractors share: the loaded model and the loop over windows."""

    options: GlinerOptions
    setting: str
    """The key of project.yaml that names the model."""
    window_words: int | None
    """Words up to which whole sentences share a window; None is a third of what the model reads."""

    @cached_property
    def version(self) -> str:
        """What identifies the model's content."""
        return model_version(self.options.model)

    @cached_property
    def fingerprint(self) -> str:
        parts = [self.version, self.labels, self.relation_labels, self.options.labels_per_pass, self.window_words]
        return fingerprint_of(self, RULES_VERSION, *parts, *self._result_options())

    @abstractmethod
    def _result_options(self) -> list[object]:
        """The other options that change results."""

    def _check_model(self, model: GlinerModel) -> None:
        """Raise ExtractionError if the model can't do what this extractor needs."""

    def _read(self, task: Task, on_result: OnResult | None) -> list[Extraction]:
        """Cut texts into windows, sort them by length, ask in batches, and finish each text with its last window."""
        results = [Extraction()] * len(task.texts)

        def done(index: int, extraction: Extraction) -> None:
            results[index] = extraction
            if on_result is not None:
                on_result(index, extraction)

        needed = []
        for index in range(len(task.texts)):
            if task.needs_model(index):
                needed.append(index)
            else:
                done(index, Extraction())
        if not needed:
            return results
        model = load_gliner(self.options.model, self.options.device, self.setting)
        self._check_model(model)
        room = self._room(model, task.passes)
        for start in range(0, len(needed), BLOCK):
            self._read_block(model, room, task, needed[start : start + BLOCK], done)
        return results

    def _room(self, model: GlinerModel, passes: Sequence[Pass]) -> int:
        """Subwords of a window that are left for its text beside the longest prompt of these passes."""
        prompt = max(model.prompt_subwords(labels, relations) for labels, relations in passes)
        room = model.max_subwords - prompt
        if room < model.max_subwords // 8:
            raise ExtractionError(
                f"The labels of one pass take {prompt} of the {model.max_subwords} subwords that {self.options.model!r} reads "
                f"at once. Lower labels_per_pass ({self.options.labels_per_pass}) or shorten the labels."
            )
        return room

    def _read_block(
        self, model: GlinerModel, room: int, task: Task, block: Sequence[int], done: Callable[[int, Extraction], None]
    ) -> None:
        open_texts = _OpenTexts(task, done)
        jobs: list[Job] = []
        for index in block:
            try:
                windows, dropped = self._jobs(model, room, task, index)
            except Exception as error:
                done(index, Extraction(error=reason(error)))
                continue
            jobs.extend(windows)
            open_texts.add(index, len(windows), dropped)
        jobs.sort(key=lambda job: -job.size)
        for start in range(0, len(jobs), self.options.batch_size):
            for job, result in _ask(task, model, jobs[start : start + self.options.batch_size]):
                open_texts.add_result(job, result)

    def _jobs(self, model: GlinerModel, room: int, task: Task, index: int) -> tuple[list[Job], int]:
        """The windows of one text (with known entities: those that hold two), and how many entities no window holds."""
        text = task.texts[index]
        given = None if task.given is None else task.given[index]
        words = whole_words(text, model.words(text))
        sizes = model.subwords([text[start:end] for start, end in words])
        # gliner counts words by their subwords: a word without one (a zero-width joiner) would shift every word after it.
        words = [word for word, size in zip(words, sizes, strict=True) if size]
        sizes = [size for size in sizes if size]
        tokens = [text[start:end] for start, end in words]
        windows = cut_windows(
            sizes,
            word_ranges(words, sentence_spans(text)),
            pack=min(self.window_words or max(model.max_words // 3, 1), model.max_words),
            max_words=model.max_words,
            max_size=room,
            overlap=model.max_width + 1,
        )
        jobs: list[Job] = []
        held: set[Span] = set()
        places = _places(words, given or (), model.max_width)
        for window in windows:
            first, last = window.first, window.last
            inside = {(a - first, b - first): span for (a, b), span in places.items() if first <= a and b <= last}
            held.update(inside.values())
            if given is None or len(inside) > 1:
                jobs.append(Job(index, window, words[first:last], tokens[first:last], sum(sizes[first:last]), inside))
        return jobs, len(set(given or ()) - held)


class _OpenTexts:
    """Texts of a block whose windows are being read. A text is finished when its last window is read."""

    def __init__(self, task: Task, done: Callable[[int, Extraction], None]) -> None:
        self._task, self._done = task, done
        self._waiting: dict[int, int] = {}
        self._readings: dict[int, list[Reading]] = {}
        self._errors: dict[int, str] = {}
        self._dropped: dict[int, int] = {}

    def add(self, index: int, windows: int, dropped: int) -> None:
        """Open a text of so many windows; ``dropped`` of its known entities are in none of them."""
        self._waiting[index], self._dropped[index], self._readings[index] = windows, dropped, []
        if not windows:
            self._finish(index)

    def add_result(self, job: Job, result: WindowResult | str) -> None:
        """Add the result of a window, or the reason why it could not be read, which fails its text."""
        if isinstance(result, str):
            self._errors[job.text] = result
        else:
            self._readings[job.text].append((job, result))
        self._waiting[job.text] -= 1
        if not self._waiting[job.text]:
            self._finish(job.text)

    def _finish(self, index: int) -> None:
        readings = self._readings.pop(index)
        try:
            extraction = Extraction(error=self._errors[index]) if index in self._errors else self._task.finish(index, readings)
            extraction = replace(extraction, entities_dropped=extraction.entities_dropped + self._dropped[index])
        except Exception as error:
            extraction = Extraction(error=reason(error))
        self._done(index, extraction)


def _ask(task: Task, model: GlinerModel, batch: list[Job]) -> list[tuple[Job, WindowResult | str]]:
    """Each window with its result. A batch that fails (out of memory, an unreadable window) is read window by window."""
    try:
        return list(zip(batch, task.ask(model, batch), strict=True))
    except Exception as error:
        if len(batch) == 1:
            return [(batch[0], reason(error))]
    return [answer for job in batch for answer in _ask(task, model, [job])]


def label_groups(labels: Sequence[str], size: int) -> list[Sequence[str]]:
    """The labels in groups of at most ``size``."""
    return [labels[start : start + size] for start in range(0, len(labels), size)]


def _places(words: Sequence[tuple[int, int]], spans: Sequence[Span], max_width: int) -> dict[WordRange, Span]:
    """Spans by the words they touch, at most the first ``max_width``. Of spans in the same words the best stays."""
    starts, ends = [start for start, _ in words], [end for _, end in words]
    places: dict[WordRange, Span] = {}
    for span in sorted(spans, key=lambda span: (-span.score, span.start, span.start - span.end, span.label)):
        first, last = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if first < last:
            places.setdefault((first, min(last, first + max_width)), span)
    return places


def reason(error: BaseException) -> str:
    """The error as one line: its type and message."""
    return f"{type(error).__name__}: {error}".strip().rstrip(":")
