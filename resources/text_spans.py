"""Where sentences and blanks are in a text. Offsets are code points of the text as it is given."""

import unicodedata


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Half-open ranges of the sentences, in order, together covering the text. Boundaries are sentencex's (multilingual)."""
    import sentencex

    return [(found["start_index"], found["end_index"]) for found in sentencex.get_sentence_boundaries("en", text)]


def is_blank(text: str) -> bool:
    """True when nothing can be read: only white space, control and format characters (zero-width space, byte order mark)."""
    return all(character.isspace() or unicodedata.category(character) in ("Cc", "Cf") for character in text)


def is_combining(character: str) -> bool:
    """True for a mark that belongs to the character before it: accents, vowel signs, variation selectors."""
    return unicodedata.category(character)[0] == "M"
