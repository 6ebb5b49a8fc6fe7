"""Characters that are not letters of their own: blanks and marks."""

import unicodedata


def is_blank(text: str) -> bool:
    """True when nothing can be read: only white space, control and format characters (zero-width space, byte order mark)."""
    return all(character.isspace() or unicodedata.category(character) in ("Cc", "Cf") for character in text)


def is_combining(character: str) -> bool:
    """True for a mark that belongs to the character before it: accents, vowel signs, variation selectors."""
    return unicodedata.category(character)[0] == "M"
