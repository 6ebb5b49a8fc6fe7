r"""Names: when two texts name the same thing.

There is one rule. Two names are the same when their identity keys are equal. Entity ids, the linking of questions and aliases all
depend on this key. Search folds one step further (``resources.text.folding``), so it finds every name that has the same key.

The key of a name is made in these steps:

1. ``fold``: case, width, optional marks, digits and apostrophes. Latin accents stay: Müller and Muller are two names.
2. Words are runs of letters, digits and combining marks. Everything between them becomes one space, but for signs that
   change what a name means: ``+`` and ``#`` that end a word (C++, C#), a dot that starts one (.NET), a currency sign before or
   after a number ($20), ``%`` and ``‰`` after one (20%), a minus before a number that starts a word (-40), and a minus that ends
   the name after a short word (Cl-, A-).
3. An English article that is a word of its own is dropped if a word follows: "The Beatles", but not "A'isha" or "A-Team".

The dot that Turkish "İ" has in lower case becomes a space, so that İstanbul ("i stanbul") and Istanbul stay two names.
"""

import re
from functools import lru_cache

import regex

from resources.text.folding import fold, fold_accents
from resources.text.stopwords import ARTICLES

_LETTER = r"[\p{L}\p{Nd}]"
_MINUS = "[-\u2212]"
_KEY_WORD = regex.compile(
    rf"(?:(?<![^\s(\[{{\"'\u2018\u201c]){_MINUS}(?=\p{{Sc}}?\p{{Nd}}))?"
    r"(?:\p{Sc}(?=\p{Nd})|(?<![\p{L}\p{N}\p{M}.])\.(?=\p{L}))?"
    rf"{_LETTER}[{_LETTER}\p{{M}}]*"
    rf"(?:[+#]+(?![\p{{L}}\p{{N}}])|(?<=\p{{Nd}})\s?[%‰\p{{Sc}}](?!\p{{Nd}})|(?<=(?<![\p{{L}}\p{{M}}])\p{{L}}{{1,3}}\p{{Nd}}?){_MINUS}(?=\W*\Z))?",
    regex.V1,
)
# A shortcut for most names, six times as fast: words of plain Latin letters and digits with one space between them.
_PLAIN_NAME = re.compile(r"[a-z0-9\xdf-\xf6\xf8-\u024f]+(?: [a-z0-9\xdf-\xf6\xf8-\u024f]+)*")
_DOT_OF_I = regex.compile(r"(?<=i)\u0307\p{M}*")
_AFTER_AN_ARTICLE = regex.compile(r"[\p{Pf}\p{Pe}\"']*\s+[\p{Pi}\p{Ps}\"']*")


@lru_cache(maxsize=100_000)
def identity_key(text: str) -> str:
    """The form in which names are compared; empty for a text without a letter or digit, which names nothing."""
    folded = fold(text)
    if _PLAIN_NAME.fullmatch(folded):
        first, space, rest = folded.partition(" ")
        return rest if space and first in ARTICLES else folded
    if not folded.isascii():
        folded = _DOT_OF_I.sub(" ", folded)
    found = list(_KEY_WORD.finditer(folded))
    if len(found) > 1 and found[0][0] in ARTICLES and _AFTER_AN_ARTICLE.fullmatch(folded, found[0].end(), found[1].start()):
        del found[0]
    return " ".join(regex.sub(r"\s", "", match[0]).replace("\u2212", "-") for match in found)


@lru_cache(maxsize=4096)
def search_key(key: str) -> str:
    """An identity key without the accents of Latin letters, as full-text search sees it."""
    return fold_accents(key)
