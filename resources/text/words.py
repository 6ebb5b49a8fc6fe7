"""The words of a text, for full-text search: the same rule cuts what is stored and what is asked.

A word is a run of letters, digits and combining marks, folded (``resources.text.folding``, accents too). Scripts that are
written without spaces give one word a character (Thai and its like: a character with its marks), so that a run of them is
found anywhere inside a sentence. Runs of ``+``, ``#`` and ``&`` that touch a word, and a dot that starts one, are words of
their own: C++, C#, AT&T and .NET are sequences of words and stay apart from each other.

Words joined by hyphens are also found written as one: "e-mail" as "email", "COVID-19" as "covid19".
"""

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby

import regex

from resources.text.characters import UNSPACED_SCRIPTS
from resources.text.folding import fold, fold_accents
from resources.text.stopwords import CONTRACTIONS, SEARCH_STOP_WORDS

_UNSPACED = rf"[[{''.join(UNSPACED_SCRIPTS.values())}]&&[\p{{L}}\p{{N}}]]"
_LETTER = rf"[[\p{{L}}\p{{N}}]--{_UNSPACED}]"
_WORD = regex.compile(
    rf"{_LETTER}[\p{{M}}{_LETTER}]*"
    rf"|{_UNSPACED}\p{{M}}*"
    r"|[+&#]+(?:(?<=[\p{L}\p{N}\p{M}_][+&#]+)|(?=[\p{L}\p{N}_]))"  # C++, AT&T, #tag
    r"|\.(?<![\p{L}\p{N}\p{M}_.]\.)(?=\p{L})",  # .NET
    regex.V1,
)
_HYPHENATED = regex.compile(rf"[\p{{M}}{_LETTER}]+(?:[-\u2010](?!(?<=\d.)\d)[\p{{M}}{_LETTER}]+)+", regex.V1)
# What these patterns mean for ASCII, several times as fast.
_ASCII_WORD = re.compile(r"[a-z0-9]+|(?<=[a-z0-9_])[+&#]+|[+&#]+(?=[a-z0-9_])|(?<![a-z0-9_.])\.(?=[a-z])")
_ASCII_HYPHENATED = re.compile(r"[a-z0-9]+(?:-(?!(?<=\d-)\d)[a-z0-9]+)+")

# For a run of each script in a question: from which length it is also looked for in pieces (a sentence without spaces
# is never found whole), and how long the pieces are. A name of three Han characters stays whole; Korean hangs its
# particles on the noun.
_PIECES = {"han": (4, 2), "hiragana": (6, 3), "katakana": (sys.maxsize, 0), "hangul": (3, 2), "south_east_asian": (6, 4)}
_SCRIPTS = {name: regex.compile(f"[{members}]") for name, members in UNSPACED_SCRIPTS.items()}

Phrase = tuple[str, ...]


def words(text: str) -> list[str]:
    """The words of a text in order, repeated ones too. No word holds white space or a quote."""
    return _cut(fold_accents(fold(text)))


def search_words(text: str) -> list[str]:
    """The words under which a text is found: ``words``, then its hyphenated words written as one."""
    folded = fold_accents(fold(text))
    return [*_cut(folded), *_joined(folded)]


def question_phrases(question: str) -> list[Phrase]:
    """What a question looks for in texts: words and phrases, each once; empty if there is nothing to look for.

    Pieces of the question that touch each other (``multi-agent``, ``20.04``, ``C++``, a run of Han characters) are
    phrases, and their longer words count by themselves too. Stop words are left out; a weak piece, such as ``what's`` or a
    particle of Hiragana, counts only when there is nothing better.
    """
    strong: dict[Phrase, None] = {}
    weak: dict[Phrase, None] = {}
    for part in fold_accents(fold(question)).split():
        for phrase, is_weak in _phrases(part):
            (weak if is_weak else strong)[phrase] = None
    return list(strong or weak)


@lru_cache(maxsize=4096)
def script_without_spaces(word: str) -> str | None:
    """The key in UNSPACED_SCRIPTS of a word's first character, None for a script with spaces."""
    return next((name for name, pattern in _SCRIPTS.items() if pattern.match(word)), None)


def _phrases(part: str) -> Iterator[tuple[Phrase, bool]]:
    """The phrases of a stretch without white space, and whether each is weak."""
    for script, run in groupby(_cut(part), key=script_without_spaces):
        phrase = tuple(run)
        yield from _spaced(phrase) if script is None else _unspaced(phrase, script)
    for word in _joined(part):
        yield (word,), False


def _spaced(phrase: Phrase) -> Iterator[tuple[Phrase, bool]]:
    if len(phrase) == 1 and phrase[0] in SEARCH_STOP_WORDS:
        return
    yield phrase, all(word in SEARCH_STOP_WORDS or word in CONTRACTIONS for word in phrase)
    if len(phrase) > 1 and not any(word[0] in "+&#." for word in phrase):
        for word in phrase:
            if len(word) > 2 and word not in SEARCH_STOP_WORDS:
                yield (word,), False


def _unspaced(phrase: Phrase, script: str) -> Iterator[tuple[Phrase, bool]]:
    yield phrase, script == "hiragana" and len(phrase) <= 2
    from_length, size = _PIECES[script]
    if len(phrase) >= from_length:
        for start in range(len(phrase) - size + 1):
            yield phrase[start : start + size], script == "hiragana"


def _cut(folded: str) -> list[str]:
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


def _joined(folded: str) -> list[str]:
    pattern = _ASCII_HYPHENATED if folded.isascii() else _HYPHENATED
    joined: dict[str, None] = {}
    for part in folded.split():
        if "-" in part or "\u2010" in part:
            joined.update((re.sub("[-\u2010]", "", found), None) for found in pattern.findall(part))
    return list(joined)
