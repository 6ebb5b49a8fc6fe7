"""The loop that all GLiNER extractors share: texts to windows, windows to batches, answers back to their texts."""

import hashlib
import json
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from resources.errors import ExtractionError, SettingsError
from resources.models.base import Extraction, OnResult, Span
from resources.models.gliner.model import GlinerModel, WindowResult, WordRange, check_folder, content_version, load_gliner
from resources.models.gliner.windows import Window, cut_windows, whole_words, word_ranges
from resources.text.characters import is_blank
from resources.text.sentences import sentence_spans

VERSION = 1
"""Part of every fingerprint. Raise it when a change of this package changes results."""

BLOCK = 128
"""Texts whose windows are sorted by length together: enough to fill batches evenly, few enough that results flow."""


@dataclass(frozen=True, slots=True)
class Job:
    """One window of one text. ``given`` are the upstream entities in it, by place."""

    text: int
    window: Window
    words: list[tuple[int, int]]
    tokens: list[str]
    size: int
    given: dict[WordRange, Span]


Read = tuple[Job, WindowResult]


class GlinerReader(ABC):
    """What both extractors share: settings, the loaded model, and the loop over windows."""

    setting: str

    def __init__(
        self,
        model: str,
        labels: Sequence[str],
        *,
        threshold: float,
        batch_size: int,
        device: str,
        labels_per_pass: int,
        window_words: int | None,
    ) -> None:
        self.model = str(model)
        self.labels = check_labels(labels, f"labels for {self.setting}")
        self.threshold = check_share(threshold, "threshold")
        self.batch_size = check_count(batch_size, "batch_size", 1)
        self.labels_per_pass = check_count(labels_per_pass, "labels_per_pass", 1)
        self.window_words = None if window_words is None else check_count(window_words, "window_words", 1)
        self.device = device
        self.calls = 0

    def _load(self) -> GlinerModel:
        return load_gliner(self.model, self.device, self.setting)

    def _fingerprint(self, *parts: object) -> str:
        check_folder(self.model, self.setting)
        content = ["gliner", VERSION, content_version(self.model), self.labels, self.threshold, self.labels_per_pass]
        content += [self.window_words, *parts]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @abstractmethod
    def _ask(self, model: GlinerModel, batch: list[Job]) -> list[WindowResult]:
        """What the model says of these windows, all passes together."""

    def _room(self, model: GlinerModel, passes: Iterable[tuple[Sequence[str], Sequence[str]]]) -> int:
        """Subwords left for a window's text beside the longest prompt of these passes (entity labels, relation labels)."""
        prompt = max((model.prompt_subwords(labels, relations) for labels, relations in passes), default=0)
        room = model.max_subwords - prompt
        if room < model.max_subwords // 8:
            raise ExtractionError(
                f"The labels of one pass take {prompt} of the {model.max_subwords} subwords that {self.model!r} reads "
                f"at once. Lower labels_per_pass ({self.labels_per_pass}) or shorten the labels."
            )
        return room

    def _read(
        self,
        texts: Sequence[str],
        passes: Sequence[tuple[Sequence[str], Sequence[str]]],
        finish: Callable[[int, list[Read]], Extraction],
        on_result: OnResult | None,
        given: Sequence[Sequence[Span]] | None = None,
    ) -> list[Extraction]:
        """Cut, sort by length, ask in batches, and finish each text as soon as its last window is read."""
        results: list[Extraction] = [Extraction()] * len(texts)

        def done(index: int, extraction: Extraction) -> None:
            results[index] = extraction
            if on_result is not None:
                on_result(index, extraction)

        def needed(index: int) -> bool:
            return bool(passes) and not is_blank(texts[index]) and (given is None or len(given[index]) > 1)

        todo = [index for index in range(len(texts)) if needed(index)]
        for index in sorted(set(range(len(texts))) - set(todo)):
            done(index, Extraction())
        if not todo:
            return results
        model = self._load()
        self._check(model)
        room = self._room(model, passes)
        for start in range(0, len(todo), BLOCK):
            self._read_block(model, room, todo[start : start + BLOCK], texts, finish, done, given)
        return results

    def _check(self, model: GlinerModel) -> None:  # noqa: B027 (nothing to check is a fine answer)
        """Raises ExtractionError when the model can't do what is asked of it."""

    def _read_block(
        self,
        model: GlinerModel,
        room: int,
        block: Sequence[int],
        texts: Sequence[str],
        finish: Callable[[int, list[Read]], Extraction],
        done: Callable[[int, Extraction], None],
        given: Sequence[Sequence[Span]] | None,
    ) -> None:
        jobs: list[Job] = []
        waiting: dict[int, int] = {}
        read: dict[int, list[Read]] = {index: [] for index in block}
        errors: dict[int, str] = {}
        lost: dict[int, int] = {}

        def end(index: int) -> None:
            try:
                found = Extraction(error=errors[index]) if index in errors else finish(index, read.pop(index))
                found = replace(found, entities_dropped=found.entities_dropped + lost.get(index, 0))
            except Exception as problem:
                found = Extraction(error=reason(problem))
            done(index, found)

        for index in block:
            try:
                cut, lost[index] = self._jobs(model, room, index, texts[index], None if given is None else given[index])
            except Exception as problem:
                errors[index], cut = reason(problem), []
            waiting[index] = len(cut)
            jobs.extend(cut)
            if not cut:
                end(index)
        jobs.sort(key=lambda job: -job.size)
        for start in range(0, len(jobs), self.batch_size):
            for job, answer in self._ask_safely(model, jobs[start : start + self.batch_size]):
                if isinstance(answer, str):
                    errors[job.text] = answer
                else:
                    read[job.text].append((job, answer))
                waiting[job.text] -= 1
                if not waiting[job.text]:
                    end(job.text)

    def _jobs(self, model: GlinerModel, room: int, index: int, text: str, given: Sequence[Span] | None) -> tuple[list[Job], int]:
        """The windows of one text (with entities given, those that hold two), and how many entities no window holds."""
        words = whole_words(text, model.words(text))
        sizes = model.subwords([text[start:end] for start, end in words])
        # gliner counts words by their subwords: one that has none (a zero-width joiner) would shift every word after it.
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

    def _ask_safely(self, model: GlinerModel, batch: list[Job]) -> list[tuple[Job, WindowResult | str]]:
        """A batch that fails (out of memory, a window the model chokes on) is asked again window by window."""
        try:
            return list(zip(batch, self._ask(model, batch), strict=True))
        except Exception as problem:
            if len(batch) == 1:
                return [(batch[0], reason(problem))]
        return [answer for job in batch for answer in self._ask_safely(model, [job])]


def check_labels(labels: Sequence[str], what: str) -> tuple[str, ...]:
    """The labels without doubles, in their order. Raises SettingsError for one that is no text or blank."""
    for label in labels:
        if not isinstance(label, str) or is_blank(label):
            raise SettingsError(f"{what}: {label!r} is no label. Every label is a text that is not blank.")
    return tuple(dict.fromkeys(label.strip() for label in labels))


def check_share(value: float, name: str) -> float:
    if not 0 <= value < 1:
        raise SettingsError(f"{name} is {value!r}: it must be at least 0 and below 1.")
    return float(value)


def check_count(value: int, name: str, least: int) -> int:
    if value < least:
        raise SettingsError(f"{name} is {value!r}: it must be {least} or more.")
    return int(value)


def label_groups(labels: Sequence[str], size: int) -> list[Sequence[str]]:
    return [labels[start : start + size] for start in range(0, len(labels), size)]


def _places(words: Sequence[tuple[int, int]], spans: Sequence[Span], max_width: int) -> dict[WordRange, Span]:
    """Spans by the words they touch, at most the first ``max_width``; of spans in the same words the best stays."""
    starts, ends = [start for start, _ in words], [end for _, end in words]
    places: dict[WordRange, Span] = {}
    for span in sorted(spans, key=lambda span: (-span.score, span.start, span.start - span.end, span.label)):
        first, last = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if first < last:
            places.setdefault((first, min(last, first + max_width)), span)
    return places


def reason(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}".strip().rstrip(":")
