"""Entities and relations by GLiNER (Zaratiana et al. 2023, arXiv:2311.08526): any checkpoint, NER and relex classes alike."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from resources.errors import ExtractionError, SettingsError
from resources.models.base import EntityExtractor, Extraction, OnResult, RelationExtractor, RelationSpan, Span
from resources.models.gliner.merge import merge_relations, resolve_overlaps
from resources.models.gliner.model import GlinerModel, WindowResult, WordRange, content_version
from resources.models.gliner.reader import GlinerReader, Job, Read, check_count, check_labels, check_share, label_groups

SCORE_DIGITS = 4
"""Padding changes the sixth digit; rounded, a text's scores do not depend on what else is in its batch."""


class GlinerEntityExtractor(GlinerReader, EntityExtractor):
    """Entities by a GLiNER checkpoint.

    model: hub id or folder. labels: entity types. threshold: least score, 0 to 1. flat_ner: no nested entities.
    batch_size: windows a forward pass. device: as torch names it. labels_per_pass: more labels are spread over passes.
    window_words: sentences are packed up to this many words, 1 packs none; None is a third of what the model reads.
    Relations suffer from crowded windows: gliner-mini finds 44 of 46 made ones at 26 words, 10 at its limit of 80.
    A longer sentence is a window of its own.
    """

    setting = "models.entities.model"

    def __init__(
        self,
        model: str,
        labels: Sequence[str],
        *,
        threshold: float = 0.5,
        flat_ner: bool = True,
        batch_size: int = 8,
        device: str = "cpu",
        labels_per_pass: int = 8,
        window_words: int | None = None,
    ) -> None:
        super().__init__(
            model,
            labels,
            threshold=threshold,
            batch_size=batch_size,
            device=device,
            labels_per_pass=labels_per_pass,
            window_words=window_words,
        )
        self.flat_ner = flat_ner

    @cached_property
    def fingerprint(self) -> str:
        return self._fingerprint("entities", self.flat_ner)

    def extract(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        passes = [(labels, ()) for labels in label_groups(self.labels, self.labels_per_pass)]
        return self._read(texts, passes, lambda index, read: _finish_entities(texts[index], read, self.flat_ner), on_result)

    def _ask(self, model: GlinerModel, batch: list[Job]) -> list[WindowResult]:
        results = [WindowResult() for _ in batch]
        for labels in label_groups(self.labels, self.labels_per_pass):
            self.calls += len(batch)
            for result, found in zip(
                results, model.find_entities([j.tokens for j in batch], labels, self.threshold), strict=True
            ):
                result.entities += found.entities
                result.words_not_read = max(result.words_not_read, found.words_not_read)
        return results


class GlinerRelationExtractor(GlinerReader, RelationExtractor):
    """Relations by a GLiNER relex checkpoint.

    As GlinerEntityExtractor; relation_threshold is the least score of a relation, and in one window relations are scored
    between the max_entities best entities (every ordered pair is scored). The entity labels of the first pass are part of
    every prompt, as in training; they decide nothing when entities are given.
    """

    setting = "models.relations.model"

    def __init__(
        self,
        model: str,
        entity_labels: Sequence[str],
        relation_labels: Sequence[str],
        *,
        threshold: float = 0.5,
        relation_threshold: float = 0.55,
        flat_ner: bool = True,
        batch_size: int = 8,
        device: str = "cpu",
        labels_per_pass: int = 8,
        max_entities: int = 30,
        window_words: int | None = None,
    ) -> None:
        super().__init__(
            model,
            entity_labels,
            threshold=threshold,
            batch_size=batch_size,
            device=device,
            labels_per_pass=labels_per_pass,
            window_words=window_words,
        )
        self.relation_labels = check_labels(relation_labels, "relation labels")
        self.relation_threshold = check_share(relation_threshold, "relation_threshold")
        self.flat_ner = flat_ner
        self.max_entities = check_count(max_entities, "max_entities", 2)
        self._joint = False

    @cached_property
    def fingerprint(self) -> str:
        return self._fingerprint("relations", self.flat_ner, self.relation_labels, self.relation_threshold, self.max_entities)

    def joins(self, extractor: EntityExtractor) -> bool:
        """Same model and settings, and entity labels that fit one pass; with no relation label there is nothing to join."""
        return (
            isinstance(extractor, GlinerEntityExtractor)
            and bool(self.relation_labels)
            and len(self.labels) <= self.labels_per_pass
            and (extractor.labels, extractor.threshold) == (self.labels, self.threshold)
            and (extractor.flat_ner, extractor.window_words) == (self.flat_ner, self.window_words)
            and extractor.device == self.device
            and content_version(extractor.model) == content_version(self.model)
        )

    def extract(
        self, texts: Sequence[str], entities: Sequence[Sequence[Span]], on_result: OnResult | None = None
    ) -> list[Extraction]:
        if len(texts) != len(entities):
            raise SettingsError(f"extract() got {len(texts)} texts and entities for {len(entities)}: give one list a text.")
        self._joint = False
        return self._read(
            texts, self._passes(), lambda index, read: _finish_relations(read, entities[index]), on_result, entities
        )

    def extract_jointly(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        self._joint = True
        return self._read(texts, self._passes(), lambda index, read: self._finish_jointly(texts[index], read), on_result)

    def _passes(self) -> list[tuple[Sequence[str], Sequence[str]]]:
        labels = self.labels[: self.labels_per_pass]
        return [(labels, relations) for relations in label_groups(self.relation_labels, self.labels_per_pass)]

    def _check(self, model: GlinerModel) -> None:
        if not model.is_relex:
            raise ExtractionError(
                f"{self.setting} in project.yaml is {self.model!r}: that checkpoint finds entities only. "
                "Name a relex checkpoint (its config has a relations_layer), or take the relation labels out."
            )

    def _ask(self, model: GlinerModel, batch: list[Job]) -> list[WindowResult]:
        passes = self._passes()
        windows = [job.tokens for job in batch]
        if self._joint:
            labels, relations = passes.pop(0)
            self.calls += len(batch)
            results = model.find_both(windows, labels, relations, self.threshold, self.relation_threshold, self.max_entities)
            spans = [sorted(set(result.scored or ()) & {place for place, _, _ in result.entities}) for result in results]
        else:
            results = [WindowResult(scored=set()) for _ in batch]
            spans = [_best(job.given, self.max_entities) for job in batch]
        pairs = [row for row, given in enumerate(spans) if len(given) > 1]
        for labels, relations in passes if pairs else ():
            self.calls += len(pairs)
            given = [spans[row] for row in pairs]
            found = model.find_relations([windows[row] for row in pairs], labels, relations, given, self.relation_threshold)
            for row, answer in zip(pairs, found, strict=True):
                results[row].relations += answer.relations
                results[row].scored = set(spans[row])
                results[row].words_not_read = max(results[row].words_not_read, answer.words_not_read)
        return results

    def _finish_jointly(self, text: str, read: list[Read]) -> Extraction:
        found = _finish_entities(text, read, self.flat_ner)
        kept = {(span.start, span.end): span for span in found.entities}
        scored = {_place(job, place) for job, result in read for place in result.scored or ()}
        relations = [
            RelationSpan(kept[head], kept[tail], relation, round(score, SCORE_DIGITS))
            for job, result in read
            for head_words, tail_words, relation, score in result.relations
            if (head := _place(job, head_words)) in kept and (tail := _place(job, tail_words)) in kept
        ]
        merged = merge_relations(relations, found.entities)
        return replace(found, relations=merged, entities_dropped=len(kept.keys() - scored) if len(kept) > 1 else 0)


def _best(given: dict[WordRange, Span], most: int) -> list[WordRange]:
    ordered = sorted(given, key=lambda place: (-given[place].score, place))
    return sorted(ordered[:most])


def _place(job: Job, words: WordRange) -> tuple[int, int]:
    return job.words[words[0]][0], job.words[words[1] - 1][1]


def _finish_entities(text: str, read: list[Read], flat: bool) -> Extraction:
    whole: set[Span] = set()
    cut: set[Span] = set()
    for job, result in read:
        for words, label, score in result.entities:
            start, end = _place(job, words)
            touches = (job.window.cut_left and words[0] == 0) or (job.window.cut_right and words[1] == len(job.words))
            (cut if touches else whole).add(Span(start, end, text[start:end], label, round(score, SCORE_DIGITS)))
    entities = resolve_overlaps(whole | cut, flat=flat, cut=cut - whole)
    return Extraction(entities, words_not_read=sum(result.words_not_read for _, result in read))


def _finish_relations(read: list[Read], given: Sequence[Span]) -> Extraction:
    scored = {job.given[place] for job, result in read for place in result.scored or () if place in job.given}
    relations = [
        RelationSpan(job.given[head], job.given[tail], relation, round(score, SCORE_DIGITS))
        for job, result in read
        for head, tail, relation, score in result.relations
    ]
    return Extraction(
        relations=merge_relations(relations, given),
        words_not_read=sum(result.words_not_read for _, result in read),
        entities_dropped=len({span for job, _ in read for span in job.given.values()} - scored),
    )
