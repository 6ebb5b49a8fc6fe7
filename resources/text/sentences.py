"""Where sentences begin and end.

sentencex finds the boundaries: it knows the abbreviations and full stops of many languages. Four of its limits are worked around.
It is quadratic where no space follows a full stop (Chinese, Japanese) and on open quotes, so it gets short windows. It panics on
white space of more than one byte, so it gets a space instead. It takes the brackets of "1) ... 2) ..." for a pair, so it gets
commas instead. And some of its boundaries are moved: see ``_boundaries``.
"""

import re

from resources.errors import DocumentError

# Code points a window: longer than nearly every sentence, and short enough for sentencex to stay fast.
_WINDOW = 1000
# A sentence that fills a window is continued in the next one, which sees this much of its end again.
_CONTEXT = 100

_PARAGRAPH_BREAK = re.compile(r"\n[^\S\n]*\n\s*|\f")
_WIDE_SPACE = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_LIST_BRACKET = re.compile(
    r"\)(?:(?<=\A[\dA-Za-z]\))|(?<=\n[\dA-Za-z]\))|(?<=[.!?;:]\s[\dA-Za-z]\))|(?<=\A\d\d\))|(?<=\n\d\d\))|(?<=[.!?;:]\s\d\d\)))"
)
_LIST_MARKER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.)][^\S\n]+")
_LOWER_NEXT = re.compile(r"\s*[a-z]")
_ELLIPSIS = re.compile(r"(?:\.{3,}|…)[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*([^\W\d_]))")
# Abbreviations that sentencex 1.0.32 takes for the end of a sentence.
_ABBREVIATIONS = frozenset(
    ("Ms.", "Ft.", "approx.", "Eq.", "Eqs.", "eds.", "Figs.", "figs.", "Ch.", "ch.", "Vol.", "vol.", "Ph.D.")
)


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """The sentences of ``text`` as half-open code point spans: in order, not overlapping, without white space around them.

    Together they cover every character that is not white space. Blank lines and form feeds end a sentence. ``language`` is an ISO
    639 code, for the abbreviations. The time is linear in the text.

    Raises:
        DocumentError: the segmenter can't read the text.
    """
    spans: list[tuple[int, int]] = []
    for start, end in paragraph_spans(text):
        spans += _paragraph_sentences(text, start, end, language)
    return spans


def paragraph_spans(text: str) -> list[tuple[int, int]]:
    """The stretches between blank lines and form feeds, without white space around them; empty ones are left out."""
    spans = []
    start = 0
    for gap in _PARAGRAPH_BREAK.finditer(text):
        spans.append((start, gap.start()))
        start = gap.end()
    spans.append((start, len(text)))
    stripped = (strip_span(text, *span) for span in spans)
    return [(first, last) for first, last in stripped if first < last]


def strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    """``start:end`` without the white space at both ends; an empty span when there is only white space."""
    piece = text[start:end]
    kept = piece.rstrip()
    end = start + len(kept)
    return end - len(kept.lstrip()), end


def _paragraph_sentences(text: str, start: int, end: int, language: str) -> list[tuple[int, int]]:
    spans = []
    begin = start
    for stop in _boundaries(text, start, end, language):
        span = strip_span(text, begin, stop)
        begin = stop
        if span[0] < span[1]:
            spans.append(span)
    return spans


def _boundaries(text: str, start: int, end: int, language: str) -> list[int]:
    """Find the ends of the sentences in ``text[start:end]``; the last is ``end``.

    A list marker stays with its item. A full stop between two ASCII letters does not end a sentence; an ellipsis before a
    capital does.
    """
    stops: list[int] = []
    sentence = start  # where the current sentence begins
    position = start  # where the current window begins
    while position < end:
        stop = min(position + _WINDOW, end)
        segments = _segments(text[position:stop], language)
        if stop < end:
            segments = segments[:-1]  # the last one may go on
        at = position
        for segment in segments:
            at += len(segment)
            stops += _ellipses(segment, at - len(segment))
            if at == end or _is_boundary(text, max(sentence, stops[-1] if stops else start), at, segment):
                stops.append(at)
                sentence = at
        position = at if segments else _resume(text, position, stop)
    if not stops or stops[-1] < end:
        stops.append(end)
    return stops


def _resume(text: str, position: int, stop: int) -> int:
    """Where to read on when the window ``position:stop`` holds no boundary: near its end, after a space if there is one."""
    space = text.rfind(" ", position + _CONTEXT, stop - _CONTEXT)
    return space + 1 if space > 0 else stop - _CONTEXT


def _is_boundary(text: str, begin: int, at: int, segment: str) -> bool:
    before, after = text[at - 1], text[at]
    if not before.isspace() and not after.isspace():
        return not (before.isascii() and after.isascii())
    if before == "]" and _LOWER_NEXT.match(text, at):
        return False  # a reference inside a sentence: "et al. [2021] paid"
    if at - begin <= 9 and _LIST_MARKER.fullmatch(text, begin, at):
        return False
    words = segment.rsplit(None, 1)
    return not words or words[-1].lstrip("([\"'“‘«") not in _ABBREVIATIONS


def _ellipses(segment: str, offset: int) -> list[int]:
    if "..." not in segment and "…" not in segment:
        return []
    return [offset + found.end() for found in _ELLIPSIS.finditer(segment) if found[1].isupper()]


def _segments(window: str, language: str) -> list[str]:
    import sentencex

    if not window.isascii():
        window = _WIDE_SPACE.sub(" ", window)
    if ")" in window:
        window = _LIST_BRACKET.sub(",", window)
    try:
        return list(sentencex.segment(language, window))
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise  # sentencex is written in Rust: its panics are no Exceptions
        raise DocumentError(
            f"The sentence segmenter failed on the text {window[:80]!r}...: {error}. Use chunking method 'fixed'."
        ) from error
