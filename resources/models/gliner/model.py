"""A loaded GLiNER checkpoint, asked window by window.

Uses the stages that gliner itself offers (collate_batch, run_batch, decode_batch) instead of ``inference``, because words
are split once, before windows are cut, and because relations must be scored between spans that are already known.
"""

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.errors import ExtractionError
from resources.models.loading import hide_loading_bars

WordRange = tuple[int, int]
"""Words of a window, half-open."""

_models: dict[tuple[str, str], "GlinerModel"] = {}
_models_lock = threading.Lock()


@dataclass(slots=True)
class WindowResult:
    """What the model says of one window; places are word ranges."""

    entities: list[tuple[WordRange, str, float]] = field(default_factory=list)
    relations: list[tuple[WordRange, WordRange, str, float]] = field(default_factory=list)
    scored: set[WordRange] | None = None
    """The spans between which relations were scored."""
    words_not_read: int = 0


def load_gliner(model: str, device: str, setting: str) -> "GlinerModel":
    """The model of a folder or hub id, loaded once a process and device.

    Raises ExtractionError naming ``setting`` when it can't be loaded; an unreachable hub is noticed within seconds.
    """
    check_folder(model, setting)
    folder = Path(model)
    name = str(folder.resolve()) if folder.is_dir() else model
    with _models_lock:
        if (name, device) not in _models:
            _models[name, device] = _load(name, device, setting)
        return _models[name, device]


def check_folder(model: str, setting: str) -> None:
    """Raises ExtractionError when ``model`` can only mean a folder and that folder is not there or holds no GLiNER model."""
    folder = Path(model)
    if folder.is_dir():
        if not (folder / "gliner_config.json").is_file():
            raise ExtractionError(f"{setting} in project.yaml is {model!r}: that folder has no gliner_config.json. {_REMEDY}")
    elif folder.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        raise ExtractionError(
            f"{setting} in project.yaml is {model!r}: there is no such folder, and no hub id looks so. {_REMEDY}"
        )


def content_version(model: str) -> str:
    """What identifies a model: a folder by its content, so that it may move; a hub id by its name.

    Weights are known by their size and 64 samples of 64 KB, which costs milliseconds whatever their size.
    """
    folder = Path(model)
    if not folder.is_dir():
        return f"hub:{model}"
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix not in (".json", ".safetensors", ".bin", ".model"):
            continue
        size = file.stat().st_size
        digest.update(f"{file.name}:{size}:".encode())
        with file.open("rb") as content:
            if file.suffix == ".json":
                digest.update(content.read())
            else:
                for sample in range(64):
                    content.seek(size * sample // 64)
                    digest.update(content.read(65536))
    return digest.hexdigest()


_REMEDY = "Name a hub id (owner/name) or a folder with gliner_config.json, weights and tokenizer."


def _load(name: str, device: str, setting: str) -> "GlinerModel":
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "5")
    from gliner import GLiNER

    hide_loading_bars()
    try:
        # A model that is already in the hub's cache is taken from there: no network, and no change between two builds.
        try:
            model = GLiNER.from_pretrained(name, local_files_only=True, map_location=device)
        except OSError:
            if Path(name).is_dir():
                raise
            model = GLiNER.from_pretrained(name, map_location=device)
        return GlinerModel(model.to(device).eval())
    except Exception as problem:
        where = "the folder can't be loaded" if Path(name).is_dir() else "it is in no local cache and the hub did not give it"
        reason = str(problem).strip().splitlines() or [type(problem).__name__]
        raise ExtractionError(f"{setting} in project.yaml is {name!r}: {where} ({reason[0]}). {_REMEDY}") from problem


class GlinerModel:
    """Public: limits of the model, its words and subwords, and the questions it answers. Calls are serialised."""

    def __init__(self, model: Any) -> None:
        from gliner.model import UniEncoderSpanRelexGLiNER

        self._model = model
        self._collator = model.create_collator()
        self._lock = threading.RLock()
        self._pair_bound = [1]
        self.is_relex = isinstance(model, UniEncoderSpanRelexGLiNER)
        self.max_words = int(model.config.max_len)
        self.max_width = int(getattr(model.config, "max_width", None) or 12)
        self.max_subwords = _subword_limit(model)
        self._span_level = getattr(model.config, "span_mode", "") != "token_level"
        if self.is_relex:
            _bound_pairs(model.model, self._pair_bound)

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
        """Every span that scores above the threshold, overlapping ones included."""
        with self._lock:
            self._pair_bound[0] = 1
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
        with self._lock:
            self._pair_bound[0] = max_entities
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
        with self._lock:
            self._pair_bound[0] = max((len(given) for given in spans), default=1)
            batch = self._collate(windows, labels, relations)
            self._fix_spans(batch, spans)
            # No span scores below -1: exactly the given ones become candidates.
            output = self._model.run_batch(batch, threshold=-1.0, adjacency_threshold=0.5)
            results = [WindowResult(words_not_read=lost) for lost in self._words_not_read(batch)]
            self._add_relations(results, output, relations, relation_threshold)
            return results

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
        results = [WindowResult(words_not_read=lost) for lost in self._words_not_read(batch)]
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
        """All spans of logits (row, first word, width, label); gliner's own decoder drops overlaps, equal scores by chance."""
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
        """Words the tokenizer or the collator cut off; windows are cut so that this is 0, and this is the proof."""
        read = batch["words_mask"].amax(dim=1).tolist()
        full = (batch["attention_mask"].sum(dim=1) >= self.max_subwords).tolist()
        return [len(tokens) - last if at_limit else 0 for tokens, last, at_limit in zip(batch["tokens"], read, full, strict=True)]


def _subword_limit(model: Any) -> int:
    """Most subwords of one window, prompt and special tokens included."""
    tokenizer = model.data_processor.transformer_tokenizer
    encoder = getattr(model.config, "encoder_config", None)
    limits = [tokenizer.model_max_length, getattr(encoder, "max_position_embeddings", None)]
    return int(min((limit for limit in limits if limit and limit > 0), default=512))


def _bound_pairs(core: Any, bound: list[int]) -> None:
    """Make a relex model score relations between the ``bound[0]`` best candidates of a window only.

    gliner 0.2.29 scores every ordered pair of all candidates above the threshold, and has no setting against it: hundreds
    of candidates take tens of gigabytes.
    """
    import torch

    original = core.represent_spans

    def represent_spans(*args: Any, **kwargs: Any) -> Any:
        scores, embeddings, mask, spans, *rest = original(*args, **kwargs)
        if embeddings is None or embeddings.size(1) <= bound[0]:
            return (scores, embeddings, mask, spans, *rest)
        rows = torch.arange(spans.size(0), device=spans.device).unsqueeze(1)
        first, last = spans.unbind(-1)
        if core.config.span_mode == "token_level":
            best = (scores[rows, first, :, 0] + scores[rows, last, :, 1]).amax(-1)
        else:
            best = scores[rows, first, last - first].amax(-1)
        best = best.masked_fill(~mask.bool(), float("-inf"))
        kept = best.topk(bound[0], dim=1).indices.sort(dim=1).values
        return (scores, embeddings[rows, kept], mask[rows, kept], spans[rows, kept], *rest)

    core.represent_spans = represent_spans
