"""A loaded GLiNER checkpoint that reads windows of words.

Uses the stages that gliner offers (collate_batch, run_batch, decode_batch) instead of its ``inference``, because words are
split once, before windows are cut, and because relations must be scored between spans that are already known.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.models.gliner.pairs import best_candidates
from resources.models.loading import load_model

WordRange = tuple[int, int]
"""Words of a window, half-open."""

_REMEDY = "Set it to a Hugging Face id (owner/name), or to a folder with gliner_config.json, weights and tokenizer."


@dataclass(slots=True)
class WindowResult:
    """Entities and relations of one window. Places are word ranges."""

    entities: list[tuple[WordRange, str, float]] = field(default_factory=list)
    relations: list[tuple[WordRange, WordRange, str, float]] = field(default_factory=list)
    scored: set[WordRange] | None = None
    """The spans between which relations were scored."""
    words_not_read: int = 0


class GlinerModel:
    """A checkpoint in memory: its limits, its words and subwords, and its three ways to read windows.

    max_words and max_subwords: most words and subwords of one window, the prompt included in the latter. max_width: most
    words of an entity. is_relex: whether it scores relations. Threads wait for each other.
    """

    def __init__(self, model: Any) -> None:
        from gliner.model import UniEncoderSpanRelexGLiNER

        self._model = model
        self._collator = model.create_collator()
        self._lock = threading.RLock()
        self.is_relex = isinstance(model, UniEncoderSpanRelexGLiNER)
        self.max_words = int(model.config.max_len)
        self.max_width = int(getattr(model.config, "max_width", None) or 12)
        self.max_subwords = _subword_limit(model)
        self._span_level = getattr(model.config, "span_mode", "") != "token_level"

    def words(self, text: str) -> list[tuple[int, int]]:
        """Character ranges of the words, by the model's own splitter."""
        return [(start, end) for _, start, end in self._model.data_processor.words_splitter(text)]

    def subwords(self, words: Sequence[str]) -> list[int]:
        """Subwords that the model's tokenizer makes of each word."""
        counts = [0] * len(words)
        if not words:
            return counts
        tokenizer = self._model.data_processor.transformer_tokenizer
        encoding = tokenizer(list(words), is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False)
        for word in encoding.word_ids(0):
            if word is not None:
                counts[word] += 1
        return counts

    def prompt_subwords(self, labels: Sequence[str], relations: Sequence[str] = ()) -> int:
        """Subwords that labels and special tokens take in every window."""
        batch = self._collate([["a"]], labels, relations)
        return int(batch["attention_mask"].sum()) - self.subwords(["a"])[0]

    def find_entities(self, windows: Sequence[Sequence[str]], labels: Sequence[str], threshold: float) -> list[WindowResult]:
        """Every span whose score exceeds the threshold, overlapping spans included."""
        with self._relations_between(1):
            batch = self._collate(windows, labels, ())
            output = self._model.run_batch(batch, threshold=threshold)
            return self._results(output, batch, labels, threshold)

    def find_both(
        self,
        windows: Sequence[Sequence[str]],
        labels: Sequence[str],
        relations: Sequence[str],
        threshold: float,
        relation_threshold: float,
        max_entities: int,
    ) -> list[WindowResult]:
        """Entities, and relations between the ``max_entities`` best spans, in one pass."""
        with self._relations_between(max_entities):
            batch = self._collate(windows, labels, relations)
            output = self._model.run_batch(batch, threshold=threshold)
            results = self._results(output, batch, labels, threshold)
            self._add_relations(results, output, relations, relation_threshold)
            return results

    def find_relations(
        self,
        windows: Sequence[Sequence[str]],
        labels: Sequence[str],
        relations: Sequence[str],
        spans: Sequence[Sequence[WordRange]],
        relation_threshold: float,
    ) -> list[WindowResult]:
        """Relations between the given spans of each window; a span may have up to ``max_width`` words."""
        with self._relations_between(max((len(given) for given in spans), default=1)):
            batch = self._collate(windows, labels, relations)
            self._fix_spans(batch, spans)
            # No span scores below -1: exactly the given ones become candidates.
            output = self._model.run_batch(batch, threshold=-1.0, adjacency_threshold=0.5)
            results = [WindowResult(words_not_read=unread) for unread in self._words_not_read(batch)]
            self._add_relations(results, output, relations, relation_threshold)
            return results

    @contextmanager
    def _relations_between(self, most: int) -> Iterator[None]:
        """Hold the model, and let a relex model score relations between at most this many entities of a window."""
        with self._lock:
            if not self.is_relex:
                yield
                return
            with best_candidates(self._model.model, most):
                yield

    def _collate(self, windows: Sequence[Sequence[str]], labels: Sequence[str], relations: Sequence[str]) -> dict[str, Any]:
        items = self._model.prepare_base_input([list(words) for words in windows])
        if self.is_relex:
            batch = self._model.collate_batch(items, list(labels), self._collator, relation_types=list(relations))
        else:
            batch = self._model.collate_batch(items, list(labels), self._collator)
        return dict(batch)

    def _fix_spans(self, batch: dict[str, Any], spans: Sequence[Sequence[WordRange]]) -> None:
        import torch

        if self._span_level:
            mask = torch.zeros_like(batch["span_mask"])
            for row, given in enumerate(spans):
                for first, last in given:
                    mask[row, first * self.max_width + (last - first - 1)] = True
            batch["span_mask"] = mask & batch["span_mask"]
            return
        most = max(len(given) for given in spans)
        places = torch.zeros(len(spans), most, 2, dtype=torch.long)
        mask = torch.zeros(len(spans), most, dtype=torch.bool)
        for row, given in enumerate(spans):
            for column, (first, last) in enumerate(given):
                places[row, column] = torch.tensor((first, last - 1))
                mask[row, column] = True
        batch["span_idx"], batch["span_mask"] = places, mask

    def _results(self, output: Any, batch: dict[str, Any], labels: Sequence[str], threshold: float) -> list[WindowResult]:
        results = [WindowResult(words_not_read=unread) for unread in self._words_not_read(batch)]
        if self._span_level and output.logits.dim() == 4:
            self._add_spans(results, output.logits, batch, labels, threshold)
            return results
        decoded = self._model.decode_batch(output, batch, threshold=threshold, flat_ner=False)
        for result, found in zip(results, decoded[0] if isinstance(decoded, tuple) else decoded, strict=True):
            result.entities = [((span.start, span.end + 1), span.entity_type, span.score) for span in found]
        return results

    def _add_spans(
        self, results: list[WindowResult], logits: Any, batch: dict[str, Any], labels: Sequence[str], threshold: float
    ) -> None:
        """Add all spans of logits (row, first word, width, label).

        gliner's own decoder drops overlapping spans, of equal scores by chance.
        """
        import torch

        scores = torch.sigmoid(logits)
        found = torch.where(scores > threshold)
        values = scores[found].tolist()
        for row, first, width, label, score in zip(*(index.tolist() for index in found), values, strict=True):
            if first + width < len(batch["tokens"][row]) and label < len(labels):
                results[row].entities.append(((first, first + width + 1), labels[label], score))

    def _add_relations(self, results: list[WindowResult], output: Any, relations: Sequence[str], threshold: float) -> None:
        import torch

        spans = [[(first, last + 1) for first, last in row] for row in output.entity_spans.tolist()]
        pairs, valid = output.rel_idx.tolist(), output.rel_mask
        for result, row in zip(results, spans, strict=True):
            result.scored = set(row)
        scores = torch.sigmoid(output.rel_logits) * valid.unsqueeze(-1)
        found = torch.where(scores > threshold)
        values = scores[found].tolist()
        for row, pair, label, score in zip(*(index.tolist() for index in found), values, strict=True):
            head, tail = pairs[row][pair]
            if label < len(relations):
                results[row].relations.append((spans[row][head], spans[row][tail], relations[label], score))

    def _words_not_read(self, batch: dict[str, Any]) -> list[int]:
        """Words that the tokenizer or the collator cut off. Windows are cut so that this is 0; here it is checked."""
        read = batch["words_mask"].amax(dim=1).tolist()
        full = (batch["attention_mask"].sum(dim=1) >= self.max_subwords).tolist()
        return [len(tokens) - last if at_limit else 0 for tokens, last, at_limit in zip(batch["tokens"], read, full, strict=True)]


def _subword_limit(model: Any) -> int:
    """Most subwords of one window, prompt and special tokens included."""
    tokenizer = model.data_processor.transformer_tokenizer
    encoder = getattr(model.config, "encoder_config", None)
    limits = [tokenizer.model_max_length, getattr(encoder, "max_position_embeddings", None)]
    return int(min((limit for limit in limits if limit and limit > 0), default=512))


def load_gliner(model: str, device: str, setting: str) -> GlinerModel:
    """The model of a folder or Hugging Face id, loaded once for each process and device.

    Raises:
        ExtractionError: it can't be loaded. The message names ``setting``.
    """
    return load_model(_open, model, device, setting, _REMEDY)


def _open(model: str, device: str, local_files_only: bool) -> GlinerModel:
    if Path(model).is_dir() and not (Path(model) / "gliner_config.json").is_file():
        raise FileNotFoundError("it has no gliner_config.json")
    from gliner import GLiNER

    loaded = GLiNER.from_pretrained(model, local_files_only=local_files_only, map_location=device)
    return GlinerModel(loaded.to(device).eval())
