"""Which characters can be seen, and which can be stored."""

import re

import regex

# Braille blank (U+2800) and interlinear annotations (U+FFF9 to U+FFFB) show nothing either, but no Unicode property says so.
_NOTHING_TO_SEE = regex.compile(r"[\s\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]*")
_MARK = regex.compile(r"\p{M}")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CHARACTER = regex.compile(r"\X")
# A grapheme cluster of more code points than this may be cut.
_LONGEST_CHARACTER = 64

UNSPACED_SCRIPTS = {
    "han": r"\p{Script=Han}",
    "hiragana": r"\p{Script=Hiragana}",
    "katakana": r"\p{Script=Katakana}\u30fc",
    "hangul": r"\p{Script=Hangul}",
    "south_east_asian": r"\p{Script=Thai}\p{Script=Lao}\p{Script=Myanmar}\p{Script=Khmer}",
}
"""Scripts that put no spaces between words, or, as Korean, hang particles on them: members of a character class of ``regex``."""


def is_blank(text: str) -> bool:
    """True when there is nothing to see: white space, control and format characters, zero-width characters, or no text at all."""
    return _NOTHING_TO_SEE.fullmatch(text) is not None


def is_mark(character: str) -> bool:
    """True for a mark that belongs to the character before it: accents, vowel signs, variation selectors."""
    return _MARK.match(character) is not None


def is_storable(text: str) -> bool:
    """False when the text holds NUL or a lone surrogate, which no store accepts."""
    return _UNSTORABLE.search(text) is None


def storable(text: str, replacement: str = "") -> str:
    """The text with NUL and lone surrogates removed, or replaced."""
    return text if is_storable(text) else _UNSTORABLE.sub(replacement, text)


def printable(text: str, replacement: str = "") -> str:
    """The text without control characters other than tab and line feed, or with a replacement; lone surrogates become U+FFFD."""
    return storable(_CONTROL.sub(replacement, text), "\ufffd")


def character_start(text: str, place: int, floor: int = 0) -> int:
    """The last place up to ``place`` and after ``floor`` that cuts no character of a reader (grapheme cluster, Unicode annex 29).

    A base and its accents, the parts of a joined emoji and the halves of a flag are one character. Without such a place within
    64 code points, ``place`` itself.
    """
    if place >= len(text) or text[place] < "\u0300":
        return place
    begin = max(floor, place - _LONGEST_CHARACTER)
    starts = [found.start() for found in _CHARACTER.finditer(text, begin, place + 1) if found.start() > floor]
    return starts[-1] if starts and starts[-1] > begin else place
