"""How much of a language model's context a text takes."""

import regex

from resources.text.characters import UNSPACED_SCRIPTS

# Each match counts as one token.
_CHARACTER = "".join(members for name, members in UNSPACED_SCRIPTS.items() if name != "south_east_asian")
_PIECE = regex.compile(
    rf"[{_CHARACTER}]"
    r"|\p{Script=Latin}{1,5}"
    r"|[\p{L}\p{M}]{1,2}"
    r"|\p{N}"
    r"|\n+"
    r"|[^\S\n]{2,16}"
    r"|[^\s\p{L}\p{M}\p{N}]{1,2}"
)


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text from its pieces: parts of words, digits, pairs of signs, single Chinese characters.

    No tokenizer is needed, and special tokens of a model ("<|endoftext|>") are text like any other.

    The error against the tokenizer of SmolLM2 (49,152 tokens, mostly English): English prose +5 %, code +15 %, JSON -5 %, tables
    of numbers -10 %. SmolLM2 needs 40 % more tokens for German than estimated, and up to twice as many and more for other
    scripts; vocabularies of 100,000 tokens and more hold words of those languages and need fewer.
    """
    return len(_PIECE.findall(text))
