"""Names: the key under which an entity is known."""

import unicodedata
from functools import lru_cache

_ARTICLES = ("the ", "a ", "an ")


@lru_cache(maxsize=100_000)
def identity_key(text: str) -> str:
    """The name by which an entity is known, whatever its case, width, spacing or punctuation.

    NFKC and full case folding; what is neither letter nor digit becomes a blank; blanks collapse; one leading English
    article is dropped if something remains. Two refinements: a combining mark after a letter of another script than
    Latin is kept (Devanagari, Thai and Hebrew words are not words without theirs), and so is a "+" or "#" that ends a
    word (C, C++ and C# are three things). Invisible format characters vanish. An empty key means: no entity.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept: list[str] = []
    base = ""
    for index, character in enumerate(folded):
        category = unicodedata.category(character)
        if category[0] == "L" or category == "Nd":
            base = character
            kept.append(character)
        elif (category[0] == "M" and base and not _is_latin(base)) or (character in "+#" and _ends_a_word(folded, index, base)):
            kept.append(character)
        elif category != "Cf":
            base = ""
            kept.append(" ")
    key = " ".join("".join(kept).split())
    for article in _ARTICLES:
        if key.startswith(article):
            return key[len(article) :]
    return key


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")


def _ends_a_word(text: str, index: int, base: str) -> bool:
    rest = text[index:].lstrip("+#")[:1]
    return base != "" and not (rest and unicodedata.category(rest)[0] in "LN")
