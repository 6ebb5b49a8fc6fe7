"""The words of a text, for full-text search: the same rule cuts what is stored and what is asked.

A word is a run of letters, digits and combining marks, folded (NFKC, case, accents of Latin letters). Scripts that are
written without blanks give one word a character (Thai and its like: a character with its marks), so that a run of
them is found anywhere inside a sentence. Runs of ``+``, ``#`` and ``&`` that touch a word, and a dot that starts one,
are words of their own: C++, C#, AT&T and .NET are sequences of words and stay apart from each other.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby

_HAN = "\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u3096\u309d-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7a3"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer."""

# For a run of each script in a question: from which length it is also looked for in pieces (a sentence without blanks
# is never found whole), and how long the pieces are. A name of three Han characters stays whole; Korean hangs its
# particles on the noun.
_SCRIPTS = {
    "han": (_HAN, 4, 2),
    "hiragana": (_HIRAGANA, 6, 3),
    "katakana": (_KATAKANA, sys.maxsize, 0),
    "hangul": (_HANGUL, 3, 2),
    "south_east_asian": (_SOUTH_EAST_ASIAN, 6, 4),
}

# Words that say nothing of what an English question is about.
_STOP_LIST = """
    a about am an and are as at be been but by can could did do does for from had has have he her him his how i if in
    into is it its just me my no not of on or our she should so than that the their them then there these they this
    those to was we were what when where which who whom whose why will with would you your
"""
_STOP_WORDS = frozenset(_STOP_LIST.split())
_CONTRACTED = frozenset(["d", "didn", "doesn", "don", "isn", "ll", "m", "re", "s", "t", "ve", "wasn"])
"""Parts of what's, don't and the like."""


def words(text: str) -> list[str]:
    """The words of a text in order, repeated ones too. No word holds a blank or a quote."""
    return _cut(_fold(text))


def match_expression(question: str) -> str:
    """An FTS5 query for the chunks that share words with the question; empty if there is nothing to look for.

    Pieces of the question that touch each other (``multi-agent``, ``20.04``, ``C++``, a run of Han characters) are
    phrases, and their longer words count by themselves too; all are joined by OR, each once. Stop words are left out; a
    weak piece, such as ``what's`` or a particle of Hiragana, counts only when there is nothing better. Every word is
    quoted, so that none is syntax.
    """
    strong: dict[tuple[str, ...], None] = {}
    weak: dict[tuple[str, ...], None] = {}
    for piece, is_weak in _pieces(question):
        (weak if is_weak else strong)[piece] = None
    return " OR ".join(f'"{" ".join(piece)}"' for piece in strong or weak)


def _pieces(question: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The phrases of a question, and whether each is weak."""
    for compound in _compounds(question):
        for script, run in groupby(compound, key=_script):
            piece = tuple(run)
            if script is None:
                if len(piece) == 1 and piece[0] in _STOP_WORDS:
                    continue
                yield piece, all(word in _STOP_WORDS or word in _CONTRACTED for word in piece)
                if len(piece) > 1 and not any(word[0] in "+&#." for word in piece):
                    yield from (((word,), False) for word in piece if len(word) > 2 and word not in _STOP_WORDS)
                continue
            _, cut_from, size = _SCRIPTS[script]
            yield piece, script == "hiragana" and len(piece) <= 2
            if len(piece) >= cut_from:
                for start in range(len(piece) - size + 1):
                    yield piece[start : start + size], script == "hiragana"


def _compounds(question: str) -> Iterator[list[str]]:
    """Words between blanks, in runs."""
    for part in _fold(question).split():
        if found := _cut(part):
            yield found


_INVISIBLE = re.compile("[\0\ud800-\udfff\u00ad\u200c\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")
"""NUL and surrogates, which no store keeps; soft hyphens, joiners and variation selectors, which only change how a word looks."""


def _fold(text: str) -> str:
    """NFKC and case folding; accents of Latin letters go (Zürich is found as Zurich, İ is i), all other marks stay."""
    if text.isascii():
        return text.lower().replace("\0", "")
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold())
    text = re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", text)
    return unicodedata.normalize("NFKC", text)


def _cut(folded: str) -> list[str]:
    return (_ASCII if folded.isascii() else _pattern()).findall(folded)


# What _pattern means for ASCII, several times as fast.
_ASCII = re.compile(r"[a-z0-9]+|(?<=[a-z0-9_])[+&#]+|[+&#]+(?=[a-z0-9_])|(?<![a-z0-9_.])\.(?=[a-z])")


@cache
def _pattern() -> re.Pattern[str]:
    single = "".join(characters for characters, *_ in _SCRIPTS.values())
    marks = _marks()
    letter = rf"(?![{single}_])\w"
    return re.compile(
        rf"[{single}][{marks}]*"  # one character of a script without blanks
        rf"|{letter}(?:[{marks}]|{letter})*"
        rf"|(?<=[\w{marks}])[+&#]+|[+&#]+(?=\w)"  # C++, AT&T, #tag
        rf"|(?<![\w{marks}.])\.(?=[^\W\d_])"  # .NET
    )


def _script(word: str) -> str | None:
    return next((name for name, pattern in _script_patterns() if pattern.match(word)), None)


@cache
def _script_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(f"[{characters}]")) for name, (characters, *_) in _SCRIPTS.items())


def _marks() -> str:
    """Every combining mark (Mn, Mc) of the planes that have some, as ranges of a character class; ``\\w`` has none of them."""
    points = [
        point
        for low, high in ((0, 0x20000), (0xE0100, 0xE01F0))
        for point in range(low, high)
        if unicodedata.category(chr(point)) in ("Mn", "Mc")
    ]
    runs = [[point for _, point in run] for _, run in groupby(enumerate(points), key=lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
