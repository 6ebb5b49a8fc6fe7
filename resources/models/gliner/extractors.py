"""Entities and relations by GLiNER (Zaratiana et al. 2023, arXiv:2311.08526): any checkpoint, NER and relex classes alike."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from resources.errors import ExtractionError, SettingsError
from resources.models.base import (
    EntityExtractor,
    Extraction,
    ExtractorBackend,
    OnResult,
    RelationExtractor,
    RelationSpan,
    Span,
)
from resources.models.gliner.merge import merge_relations, resolve_overlaps
from resources.models.gliner.model import GlinerModel, WindowResult, WordRange
from resources.models.gliner.options import GlinerEntityOptions, GlinerRelationOptions
from resources.models.gliner.reader import GlinerReader, Job, Pass, Reading, Task, label_groups

SCORE_DIGITS = 4
"""Padding changes the sixth digit. Rounded, a text's scores do not depend on what else is in its batch."""


class GlinerBackend(ExtractorBackend):
    """GLiNER for entities, relations, or both; one checkpoint with the same settings finds both in one pass."""

    entity_options = GlinerEntityOptions
    relation_options = GlinerRelationOptions
    requires = ("gliner",)

    @classmethod
    def entity_extractor(cls, options: Any, labels: Sequence[str]) -> "GlinerEntityExtractor":
        return GlinerEntityExtractor(options, labels)

    @classmethod
    def relation_extractor(
        cls, options: Any, entity_labels: Sequence[str], relation_labels: Sequence[str], entity_options: Any = None
    ) -> "GlinerRelationExtractor":
        return GlinerRelationExtractor(options, entity_labels, relation_labels, entity_options)


class GlinerEntityExtractor(GlinerReader, EntityExtractor):
    """Entities by a GLiNER checkpoint."""

    setting = "models.entities.model"
    options: GlinerEntityOptions

    def __init__(self, options: GlinerEntityOptions, labels: Sequence[str]) -> None:
        super().__init__(options, labels)
        self.window_words = options.window_words

    def _result_options(self) -> list[object]:
        return [self.options.threshold, self.options.flat_ner]

    def extract(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        passes: list[Pass] = [(labels, ()) for labels in label_groups(self.labels, self.options.labels_per_pass)]

        def finish(index: int, readings: list[Reading]) -> Extraction:
            return _finish_entities(texts[index], readings, self.options.flat_ner)

        return self._read(Task(texts, passes, self._ask, finish), on_result)

    def _ask(self, model: GlinerModel, batch: list[Job]) -> list[WindowResult]:
        results = [WindowResult() for _ in batch]
        windows = [job.tokens for job in batch]
        for labels in label_groups(self.labels, self.options.labels_per_pass):
            self.calls += len(batch)
            for result, answer in zip(results, model.find_entities(windows, labels, self.options.threshold), strict=True):
                result.entities += answer.entities
                result.words_not_read = max(result.words_not_read, answer.words_not_read)
        return results


class GlinerRelationExtractor(GlinerReader, RelationExtractor):
    """Relations by a GLiNER relex checkpoint.

    ``entity_options`` are those of the entities' extractor if that is GLiNER too: then both can read a text in one pass.
    The entity labels of the first pass are part of every prompt, as in training; they decide nothing when entities are given.
    """

    setting = "models.relations.model"
    options: GlinerRelationOptions

    def __init__(
        self,
        options: GlinerRelationOptions,
        entity_labels: Sequence[str],
        relation_labels: Sequence[str],
        entity_options: GlinerEntityOptions | None = None,
    ) -> None:
        super().__init__(options, entity_labels, relation_labels)
        self.entity_options = entity_options
        self.window_words = options.window_words
        if self.window_words is None and entity_options is not None:
            self.window_words = entity_options.window_words

    def _result_options(self) -> list[object]:
        entities = self.entity_options
        joint = None if entities is None else [entities.threshold, entities.flat_ner]
        return [self.options.relation_threshold, self.options.max_entities, joint]

    def joins(self, extractor: EntityExtractor) -> bool:
        """Same model and settings, and entity labels that fit one pass; without relation labels there is nothing to join."""
        if not isinstance(extractor, GlinerEntityExtractor) or self.entity_options is None or not self.relation_labels:
            return False
        return (
            len(self.labels) <= self.options.labels_per_pass
            and extractor.labels == self.labels
            and extractor.options.threshold == self.entity_options.threshold
            and extractor.options.flat_ner == self.entity_options.flat_ner
            and extractor.window_words == self.window_words
            and extractor.options.device == self.options.device
            and extractor.version == self.version
        )

    def extract(
        self, texts: Sequence[str], entities: Sequence[Sequence[Span]], on_result: OnResult | None = None
    ) -> list[Extraction]:
        if len(texts) != len(entities):
            raise SettingsError(f"extract() got {len(texts)} texts and entities of {len(entities)}. Give one list for each text.")

        def finish(index: int, readings: list[Reading]) -> Extraction:
            return _finish_relations(readings, entities[index])

        return self._read(Task(texts, self._passes(), self._ask_relations, finish, entities), on_result)

    def extract_jointly(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        if self.entity_options is None:
            raise SettingsError("Entities and relations are found in one pass only where GLiNER extracts both.")
        entity_options = self.entity_options

        def ask(model: GlinerModel, batch: list[Job]) -> list[WindowResult]:
            return self._ask_jointly(model, batch, entity_options.threshold)

        def finish(index: int, readings: list[Reading]) -> Extraction:
            return _finish_jointly(texts[index], readings, entity_options.flat_ner)

        return self._read(Task(texts, self._passes(), ask, finish), on_result)

    def _passes(self) -> list[Pass]:
        labels = self.labels[: self.options.labels_per_pass]
        return [(labels, relations) for relations in label_groups(self.relation_labels, self.options.labels_per_pass)]

    def _check_model(self, model: GlinerModel) -> None:
        if not model.is_relex:
            raise ExtractionError(
                f"{self.setting} is {self.options.model!r}. That checkpoint finds entities only. "
                "Name a relex checkpoint (its gliner_config.json has a relations_layer), or remove the relation labels."
            )

    def _ask_jointly(self, model: GlinerModel, batch: list[Job], threshold: float) -> list[WindowResult]:
        """The first pass finds entities too; the other passes score relations between them."""
        (labels, relations), *further = self._passes()
        self.calls += len(batch)
        windows = [job.tokens for job in batch]
        options = self.options
        results = model.find_both(windows, labels, relations, threshold, options.relation_threshold, options.max_entities)
        spans = [sorted(set(result.scored or ()) & {place for place, _, _ in result.entities}) for result in results]
        self._add_relations(model, windows, spans, further, results)
        return results

    def _ask_relations(self, model: GlinerModel, batch: list[Job]) -> list[WindowResult]:
        results = [WindowResult(scored=set()) for _ in batch]
        spans = [_best(job.given, self.options.max_entities) for job in batch]
        self._add_relations(model, [job.tokens for job in batch], spans, self._passes(), results)
        return results

    def _add_relations(
        self,
        model: GlinerModel,
        windows: list[list[str]],
        spans: list[list[WordRange]],
        passes: Sequence[Pass],
        results: list[WindowResult],
    ) -> None:
        """Add to the results of windows the relations between these spans of each; one span has none."""
        rows = [row for row, places in enumerate(spans) if len(places) > 1]
        if not rows:
            return
        for labels, relations in passes:
            self.calls += len(rows)
            answers = model.find_relations(
                [windows[row] for row in rows], labels, relations, [spans[row] for row in rows], self.options.relation_threshold
            )
            for row, answer in zip(rows, answers, strict=True):
                results[row].relations += answer.relations
                results[row].scored = set(spans[row])
                results[row].words_not_read = max(results[row].words_not_read, answer.words_not_read)


def _best(given: dict[WordRange, Span], most: int) -> list[WordRange]:
    """The places of the ``most`` best spans, in order of place."""
    ordered = sorted(given, key=lambda place: (-given[place].score, place))
    return sorted(ordered[:most])


def _place(job: Job, words: WordRange) -> tuple[int, int]:
    """Where these words of a window are in its text."""
    return job.words[words[0]][0], job.words[words[1] - 1][1]


def _finish_entities(text: str, readings: list[Reading], flat: bool) -> Extraction:
    whole: set[Span] = set()
    cut: set[Span] = set()
    for job, result in readings:
        for words, label, score in result.entities:
            start, end = _place(job, words)
            span = Span(start, end, text[start:end], label, round(score, SCORE_DIGITS))
            if (job.window.cut_left and words[0] == 0) or (job.window.cut_right and words[1] == len(job.words)):
                cut.add(span)
            else:
                whole.add(span)
    entities = resolve_overlaps(whole | cut, flat=flat, cut=cut - whole)
    return Extraction(entities, words_not_read=sum(result.words_not_read for _, result in readings))


def _finish_relations(readings: list[Reading], given: Sequence[Span]) -> Extraction:
    scored = {job.given[place] for job, result in readings for place in result.scored or () if place in job.given}
    relations = [
        RelationSpan(job.given[head], job.given[tail], relation, round(score, SCORE_DIGITS))
        for job, result in readings
        for head, tail, relation, score in result.relations
    ]
    return Extraction(
        relations=merge_relations(relations, given),
        words_not_read=sum(result.words_not_read for _, result in readings),
        entities_dropped=len({span for job, _ in readings for span in job.given.values()} - scored),
    )


def _finish_jointly(text: str, readings: list[Reading], flat: bool) -> Extraction:
    entities = _finish_entities(text, readings, flat)
    kept = {(span.start, span.end): span for span in entities.entities}
    scored = {_place(job, place) for job, result in readings for place in result.scored or ()}
    relations = [
        RelationSpan(kept[head], kept[tail], relation, round(score, SCORE_DIGITS))
        for job, result in readings
        for head_words, tail_words, relation, score in result.relations
        if (head := _place(job, head_words)) in kept and (tail := _place(job, tail_words)) in kept
    ]
    dropped = len(kept.keys() - scored) if len(kept) > 1 else 0
    return replace(entities, relations=merge_relations(relations, entities.entities), entities_dropped=dropped)
