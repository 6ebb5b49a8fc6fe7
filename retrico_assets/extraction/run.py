"""Chunks become mentions and relation mentions. Equal texts are read once, and texts in the cache not at all."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from resources.errors import ExtractionError
from resources.models.base import EntityExtractor, Extraction, RelationExtractor, RelationSpan, Span
from resources.records import Chunk, Mention, RelationMention
from retrico_assets.extraction.cache import CacheKey, ExtractionCache

FLUSH_RESULTS = 64
FLUSH_SECONDS = 2.0

Progress = Callable[[int, int], None]
"""Called with the chunks done and the chunks in all."""


@dataclass(frozen=True)
class EntityReport:
    """mentions: in order of the chunks, in document offsets. failed: reason by chunk id. truncated: words not read by chunk id.

    cached: chunks answered without the model (by the cache, or because another chunk has the same text).
    model_calls: windows sent to the model.
    """

    mentions: tuple[Mention, ...]
    failed: dict[str, str] = field(default_factory=dict)
    truncated: dict[str, int] = field(default_factory=dict)
    cached: int = 0
    model_calls: int = 0


@dataclass(frozen=True)
class RelationReport:
    """As EntityReport. dropped: by chunk id, mentions between which no relation was looked for (too many in one window)."""

    relations: tuple[RelationMention, ...]
    failed: dict[str, str] = field(default_factory=dict)
    truncated: dict[str, int] = field(default_factory=dict)
    cached: int = 0
    model_calls: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


def extract_entities(
    chunks: Sequence[Chunk],
    extractor: EntityExtractor,
    cache: ExtractionCache,
    *,
    joint: RelationExtractor | None = None,
    on_progress: Progress = lambda done, total: None,
) -> EntityReport:
    """Mentions of every chunk.

    With a ``joint`` relation extractor that joins ``extractor``, one pass finds the relations too and leaves them in the
    cache, where ``extract_relations`` finds them by the mentions they came with. Results reach the cache as work
    proceeds; errors never do. Raises ExtractionError when the model can't be loaded, StoreError for a bad cache.
    """
    both = joint if joint is not None and joint.joins(extractor) else None
    identity = _hash("entities", extractor.fingerprint, both.fingerprint if both else "")
    keys: list[CacheKey] = [(_hash(chunk.text), identity) for chunk in chunks]
    model = both or extractor
    calls = model.calls
    with _Work(chunks, keys, cache, on_progress) as work:

        def keep(index: int, found: Extraction) -> None:
            key = work.missing[index]
            extra = {}
            if both is not None and found.error is None:
                extra[key[0], _relation_key(both, found.entities)] = _encode(found)
            work.keep(key, found, extra)

        if work.missing:
            (both.extract_jointly if both else extractor.extract)(work.missing_texts, keep)
    mentions = [_mention(chunk, span) for chunk, found in work.answers() for span in found.entities]
    return EntityReport(tuple(mentions), work.failed(), work.count("words_not_read"), work.cached, model.calls - calls)


def extract_relations(
    chunks: Sequence[Chunk],
    mentions: Sequence[Mention],
    extractor: RelationExtractor,
    cache: ExtractionCache,
    *,
    on_progress: Progress = lambda done, total: None,
) -> RelationReport:
    """Relations of every chunk between these mentions of it; heads and tails are always among the mentions.

    Raises ExtractionError for a mention of no given chunk or with offsets that don't fit, and as extract_entities.
    """
    spans = _local_spans(chunks, mentions)
    keys: list[CacheKey] = [(_hash(chunk.text), _relation_key(extractor, spans[chunk.id])) for chunk in chunks]
    entities = {key: spans[chunk.id] for chunk, key in zip(chunks, keys, strict=True)}
    calls = extractor.calls
    with _Work(chunks, keys, cache, on_progress) as work:
        if work.missing:
            given = [entities[key] for key in work.missing]
            extractor.extract(work.missing_texts, given, lambda index, found: work.keep(work.missing[index], found))
    relations = [_relation(chunk, relation) for chunk, found in work.answers() for relation in found.relations]
    return RelationReport(
        tuple(relations),
        work.failed(),
        work.count("words_not_read"),
        work.cached,
        extractor.calls - calls,
        work.count("entities_dropped"),
    )


class _Work:
    """The chunks of one call: which texts the cache lacks, and what becomes of them. Writes to the cache as results come."""

    def __init__(self, chunks: Sequence[Chunk], keys: Sequence[CacheKey], cache: ExtractionCache, on_progress: Progress) -> None:
        self._chunks, self._keys, self._cache, self._on_progress = chunks, keys, cache, on_progress
        text_of = {key: chunk.text for chunk, key in zip(chunks, keys, strict=True)}
        self._found = {}
        for key, value in cache.get_many(keys).items():
            if (known := _decode(value, text_of[key])) is not None:
                self._found[key] = known
        self.missing = [key for key in text_of if key not in self._found]
        self.missing_texts = [text_of[key] for key in self.missing]
        self.cached = len(chunks) - len(self.missing)
        self._copies: dict[CacheKey, int] = defaultdict(int)
        for key in keys:
            self._copies[key] += 1
        self._done = sum(self._copies[key] for key in self._found)
        self._pending: dict[CacheKey, Any] = {}
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        self._on_progress(self._done, len(self._chunks))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._flush()

    def keep(self, key: CacheKey, found: Extraction, extra: dict[CacheKey, Any] | None = None) -> None:
        self._found[key] = found
        if found.error is None:
            self._pending[key] = _encode(found)
            self._pending.update(extra or {})
        if len(self._pending) >= FLUSH_RESULTS or time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()
        self._done += self._copies[key]
        self._on_progress(self._done, len(self._chunks))

    def _flush(self) -> None:
        self._cache.put_many(self._pending)
        self._pending = {}
        self._flushed = time.monotonic()

    def answers(self) -> list[tuple[Chunk, Extraction]]:
        return [(chunk, self._found[key]) for chunk, key in zip(self._chunks, self._keys, strict=True)]

    def failed(self) -> dict[str, str]:
        return {chunk.id: found.error for chunk, found in self.answers() if found.error is not None}

    def count(self, what: str) -> dict[str, int]:
        return {chunk.id: number for chunk, found in self.answers() if (number := getattr(found, what))}


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _relation_key(extractor: RelationExtractor, spans: Sequence[Span]) -> str:
    places = sorted((span.start, span.end, span.label) for span in spans)
    return _hash("relations", extractor.fingerprint, json.dumps(places))


def _local_spans(chunks: Sequence[Chunk], mentions: Sequence[Mention]) -> dict[str, list[Span]]:
    by_id = {chunk.id: chunk for chunk in chunks}
    spans: dict[str, list[Span]] = {chunk.id: [] for chunk in chunks}
    for mention in mentions:
        chunk = by_id.get(mention.chunk_id)
        if chunk is None:
            raise ExtractionError(
                f"Mention {mention.text!r} belongs to chunk {mention.chunk_id!r}, which is not one of the {len(chunks)} given. "
                "Materialise chunks and entities again."
            )
        start, end = mention.start - chunk.start, mention.end - chunk.start
        if not 0 <= start < end <= len(chunk.text) or chunk.text[start:end] != mention.text:
            raise ExtractionError(
                f"Mention {mention.text!r} at {mention.start}-{mention.end} is not what chunk {chunk.id!r} of document "
                f"{chunk.document_id!r} says there. Materialise chunks and entities again."
            )
        spans[chunk.id].append(Span(start, end, mention.text, mention.label, mention.score))
    return spans


def _mention(chunk: Chunk, span: Span) -> Mention:
    start, end = chunk.start + span.start, chunk.start + span.end
    return Mention(chunk.id, chunk.document_id, start, end, span.text, span.label, span.score)


def _relation(chunk: Chunk, found: RelationSpan) -> RelationMention:
    head, tail = found.head, found.tail
    return RelationMention(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        head_start=chunk.start + head.start,
        head_end=chunk.start + head.end,
        head_text=head.text,
        head_label=head.label,
        tail_start=chunk.start + tail.start,
        tail_end=chunk.start + tail.end,
        tail_text=tail.text,
        tail_label=tail.label,
        relation=found.relation,
        score=found.score,
        start_date=found.start_date,
        end_date=found.end_date,
    )


def _encode(found: Extraction) -> dict[str, Any]:
    def place(span: Span) -> list[Any]:
        return [span.start, span.end, span.label, span.score]

    return {
        "entities": [place(span) for span in found.entities],
        "relations": [[place(r.head), place(r.tail), r.relation, r.score, r.start_date, r.end_date] for r in found.relations],
        "words_not_read": found.words_not_read,
        "entities_dropped": found.entities_dropped,
    }


def _decode(value: Any, text: str) -> Extraction | None:
    """None for a value that this module did not write, or not for this text: the text is read again."""

    def span(place: Any) -> Span:
        start, end, label, score = place
        if not 0 <= start < end <= len(text) or not isinstance(label, str):
            raise ValueError(place)
        return Span(start, end, text[start:end], label, float(score))

    try:
        return Extraction(
            tuple(span(place) for place in value["entities"]),
            tuple(RelationSpan(span(head), span(tail), *rest) for head, tail, *rest in value["relations"]),
            words_not_read=int(value["words_not_read"]),
            entities_dropped=int(value["entities_dropped"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
