"""When two ways to write a word are the same word: one rule in two steps, for names and for search.

``fold`` removes what a writer may choose freely: case, width and compatibility forms (NFKC), invisible characters, the points and
vowel signs of Hebrew, Arabic and Syriac, the accents of Greek, stress marks and the dots of "ё" in Cyrillic, and the script of
digits. Letters that are used as apostrophes become apostrophes. Names are compared in this form (``resources.text.names``).

``fold_accents`` also removes the accents of Latin letters and the hamza of alef, which a keyboard may lack: "Łódź" is found as
"lodz". Search compares in this form (``resources.text.words``). So names with one identity key are always found by each other.

Both are the same on every machine: nothing depends on the locale.
"""

import re
import unicodedata

import regex

APOSTROPHES = "'’ʹʻʼʽʾʿˮ\u07f4\u07f5Ꞌꞌ"
"""The apostrophe and the letters that are written in its place: Nukuʻalofa, Qurʼan."""

# Lookbehinds stand after what they look behind of: tried at every character, they cost ten times as much.
_INVISIBLE = regex.compile(r"[\0\p{Cs}\p{Cf}\p{Default_Ignorable_Code_Point}]+")
_APOSTROPHE = regex.compile(f"[{APOSTROPHES[1:]}]")
_TATWEEL = "\u0640"
_DIGIT = regex.compile(r"[\p{Nd}--[0-9]]", regex.V1)
# After composition: a hamza that makes another letter is a part of it by then.
_OPTIONAL_POINTS = regex.compile(r"\p{Mn}(?<=[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}]\p{Mn})\p{Mn}*")
_GREEK_OR_CYRILLIC = regex.compile(r"[\p{Script=Greek}\p{Script=Cyrillic}]")
# After decomposition. The breve of "й" and the dots of "ї" make other letters, so they stay.
_OPTIONAL_ACCENTS = regex.compile(
    r"\p{Mn}(?<=\p{Script=Greek}\p{Mn})\p{Mn}*|[\u0300\u0301](?<=[аеиоуыэюяіѵ][\u0300\u0301])|\u0308(?<=е\u0308)"
)

_LATIN_ACCENTS = regex.compile(r"\p{Mn}(?<=\p{Script=Latin}\p{Mn})\p{Mn}*|[\u0653-\u0655](?<=\u0627[\u0653-\u0655])")
_STROKES = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
_STROKE = re.compile(f"[{''.join(_STROKES)}]")


# Text without any of these is in Latin letters: the steps for other scripts are skipped.
_BEYOND_LATIN = re.compile(r"[^\x01-\xac\xae-\u0148\u014a-\u02b8\u2010-\u2018\u201a-\u2027\u20ac]")


def fold(text: str) -> str:
    """The text without differences of case, width, optional marks, digits and apostrophes. Folding twice changes nothing more."""
    if text.isascii():
        return text.lower().replace("\0", "")
    if not _BEYOND_LATIN.search(text):
        return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    folded = _APOSTROPHE.sub("'", unicodedata.normalize("NFKC", folded)).replace(_TATWEEL, "")
    folded = _OPTIONAL_POINTS.sub("", folded)
    if _GREEK_OR_CYRILLIC.search(folded):
        decomposed = unicodedata.normalize("NFD", folded)
        folded = unicodedata.normalize("NFC", _OPTIONAL_ACCENTS.sub("", decomposed))
    return str(_DIGIT.sub(_ascii_digit, folded))


def fold_accents(folded: str) -> str:
    """A folded text without the accents and strokes of Latin letters."""
    if folded.isascii():
        return folded
    plain = _LATIN_ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    return unicodedata.normalize("NFC", _STROKE.sub(lambda letter: _STROKES[letter[0]], plain))


def _ascii_digit(match: "regex.Match[str]") -> str:
    digit = unicodedata.digit(match[0], None)  # None: a digit that is newer than Python's Unicode tables
    return match[0] if digit is None else str(digit)
