"""Cuts a text into windows of words that a model can read whole. Pure functions."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from resources.text.characters import is_mark

MAX_WORD_CHARACTERS = 64
"""A longer run without a break (base64, a script without spaces) is read in pieces: wordpiece gives up at 100 characters."""

_LINE_SIGN = re.compile(r"^[ \t]*(#{1,6}|>+|[*+-])(?=[ \t])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Window:
    """Words ``first`` to ``last`` (half-open) of a text. A cut side lies inside a sentence and is covered by a neighbour."""

    first: int
    last: int
    cut_left: bool = False
    cut_right: bool = False


def whole_words(text: str, words: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of the words of a splitter, with combining marks put back to their word and overlong words in pieces.

    Splitters built on ``\\w`` tear a word apart at each combining mark (decomposed accents, Indic vowel signs). The signs
    that begin a line of Markdown (headings, quotes, bullets) are left out: a model takes them into the name that follows.
    """
    joined: list[tuple[int, int]] = []
    for start, end in words:
        if joined and joined[-1][1] == start:
            mark_here, mark_before = is_mark(text[start]), is_mark(text[start - 1])
            if mark_here or (mark_before and text[start].isalnum()):
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((start, end))
    signs = {place for match in _LINE_SIGN.finditer(text) for place in range(*match.span(1))}
    return [piece for word in joined if word[0] not in signs for piece in _pieces(text, *word)]


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while end - start > MAX_WORD_CHARACTERS:
        cut = start + MAX_WORD_CHARACTERS
        while cut > start + MAX_WORD_CHARACTERS // 2 and is_mark(text[cut]):
            cut -= 1
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]


def word_ranges(words: Sequence[tuple[int, int]], sentences: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sentences as ranges of words (half-open); a word belongs to the sentence it begins in; empty sentences are left out."""
    starts = [start for start, _ in words]
    bounds = [0, *(bisect_left(starts, start) for start, _ in sentences[1:]), len(words)]
    return [(first, last) for first, last in pairwise(bounds) if first < last]


def cut_windows(
    sizes: Sequence[int], sentences: Sequence[tuple[int, int]], *, pack: int, max_words: int, max_size: int, overlap: int
) -> list[Window]:
    """Pack whole sentences up to ``pack`` words; no window has over ``max_words`` words or ``max_size`` subwords.

    sizes: subwords of each word. sentences: word ranges that follow each other. A sentence that fits no window is
    covered by windows that overlap by ``overlap`` words, fewer where that would leave no progress. A single word over
    ``max_size`` gets its own window: callers cut words beforehand, or count what is lost.
    """
    windows: list[Window] = []
    first = last = size = 0
    for start, end in sentences:
        length = sum(sizes[start:end])
        if last > first and (end - first > pack or size + length > max_size):
            windows.append(Window(first, last))
            first, size = start, 0
        if end - start > max_words or length > max_size:
            windows.extend(_overlapping(sizes, start, end, max_words=max_words, max_size=max_size, overlap=overlap))
            first = last = end
            size = 0
        else:
            last, size = end, size + length
    if last > first:
        windows.append(Window(first, last))
    return windows


def _overlapping(sizes: Sequence[int], start: int, end: int, *, max_words: int, max_size: int, overlap: int) -> list[Window]:
    windows = []
    first = last = start
    size = 0
    while True:
        while last < end and last - first < max_words and (size + sizes[last] <= max_size or last == first):
            size += sizes[last]
            last += 1
        windows.append(Window(first, last, cut_left=first > start, cut_right=last < end))
        if last == end:
            return windows
        # At least half of each window is new, however wide the overlap.
        following = max(last - overlap, first + (last - first + 1) // 2)
        size -= sum(sizes[first:following])
        first = following
