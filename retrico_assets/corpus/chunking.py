"""Documents cut into chunks, each knowing its place.

Three things hold for every method: ``document.text[chunk.start:chunk.end] == chunk.text``, no chunk is longer than ``size``, and
every visible character is in a chunk. White space around a chunk is left out, and blank pieces are dropped. Accents, joined emoji
and the like stay with their base character unless a chunk would be empty otherwise. The time is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from resources.records import Chunk, Document, Properties
from resources.text.characters import character_start, is_blank
from resources.text.sentences import paragraph_spans, sentence_spans, strip_span
from retrico_assets.corpus.ids import chunk_id
from retrico_assets.corpus.options import ChunkingOptions

Span = tuple[int, int]

_VISIBLE = re.compile(r"\S")


def chunk_document(document: Document, options: ChunkingOptions) -> list[Chunk]:
    """The chunks of a document in order of their start, ``index`` counting from 0."""
    chunks: list[Chunk] = []
    for start, end, metadata in _pieces(document.text, options):
        text = document.text[start:end]
        if not is_blank(text):
            id_ = chunk_id(document.id, start, end, text)
            chunks.append(Chunk(id_, document.id, len(chunks), text, start, end, metadata))
    return chunks


def _pieces(text: str, options: ChunkingOptions) -> Iterator[tuple[int, int, Properties]]:
    size = options.size
    if options.method == "fixed":
        for start, end in _windows(text, 0, len(text), size, options.overlap):
            yield start, end, {}
    elif options.method == "sentence":
        for start, end in _pack(text, sentence_spans(text), size):
            yield start, end, {}
    elif options.method == "paragraph":
        for span in paragraph_spans(text):
            for start, end in _fit(text, span, size):
                yield start, end, {}
    else:
        for number, span in _pages(text):
            for start, end in _fit(text, span, size):
                yield start, end, {"page": number}


def _pages(text: str) -> Iterator[tuple[int, Span]]:
    start = 0
    for number, page in enumerate(text.split("\f"), start=1):
        span = strip_span(text, start, start + len(page))
        start += len(page) + 1
        if span[0] < span[1]:
            yield number, span


def _fit(text: str, span: Span, size: int) -> list[Span]:
    """``span`` as it is, or cut at sentences when it is longer than ``size``."""
    start, end = span
    if end - start <= size:
        return [span]
    return _pack(text, [(start + a, start + b) for a, b in sentence_spans(text[start:end])], size)


def _pack(text: str, sentences: list[Span], size: int) -> list[Span]:
    """Neighbouring sentences together, as many as fit into ``size``."""
    if any(end - start > size for start, end in sentences):
        sentences = [piece for sentence in sentences for piece in _cut_at_spaces(text, sentence, size)]
    ends = [end for _, end in sentences]
    packed = []
    first = 0
    while first < len(sentences):
        start = sentences[first][0]
        after = bisect_right(ends, start + size, first)
        packed.append((start, ends[after - 1]))
        first = after
    return packed


def _cut_at_spaces(text: str, span: Span, size: int) -> list[Span]:
    start, end = span
    pieces = []
    while end - start > size:
        cut = _last_space(text, start, start + size) or character_start(text, start + size, start)
        pieces.append(strip_span(text, start, cut))
        start = _skip_space(text, cut, end)
    return [*pieces, (start, end)]


def _last_space(text: str, start: int, end: int) -> int | None:
    """Where the last word that fits into ``start:end`` ends, None when none does. ``text[start]`` is not white space."""
    piece = text[start : end + 1]  # white space right after the piece counts too
    words = piece.rsplit(None, 1)
    if len(piece.rstrip()) < len(piece):
        return start + len(piece.rstrip())
    return end + 1 - len(words[1]) if len(words) == 2 else None


def _windows(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[Span]:
    start = _skip_space(text, start, end)
    while start < end:
        stop = character_start(text, start + size, start) if start + size < end else end
        yield strip_span(text, start, stop)
        if _skip_space(text, stop, end) == end:
            return
        start = _skip_space(text, _restart(text, start, stop, overlap), end)


def _restart(text: str, start: int, stop: int, overlap: int) -> int:
    """Where the window after ``start:stop`` begins: moved back, or else forward, to keep a character whole."""
    wanted = max(stop - overlap, start + 1)
    place = character_start(text, wanted, start)
    while place == wanted and wanted < stop and character_start(text, wanted) < wanted:
        wanted = place = wanted + 1
    return place


def _skip_space(text: str, start: int, end: int) -> int:
    visible = _VISIBLE.search(text, start, end)
    return visible.start() if visible else end
