"""The stretches of a question that may be names."""

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from resources.text.characters import is_mark
from resources.text.folding import APOSTROPHES, fold
from resources.text.names import identity_key
from resources.text.stopwords import FUNCTION_WORDS, JOINING_WORDS
from resources.text.words import script_without_spaces
from retrico_assets.query.question.question import LONGEST_QUESTION

LONGEST_NAME = 8
"""Words of a name that is looked up without an extractor's help."""
LONGEST_UNSPACED_NAME = 16
"""The same in characters, for scripts that put no spaces between words."""
_PLURAL_POSSESSIVES = ("s'", "s’")
_INSIDE_A_NAME = re.compile(rf"[^\S\n]+|[-‐‑&{APOSTROPHES}]")
_SIGNS_AFTER = regex.compile(r"[+#＋＃]+|[^\S\n]?[%％‰\p{Sc}](?!\d)|[^\w\s](?!\w)")
_SIGNS_BEFORE = regex.compile(r"[.\u2212\p{Sc}-]+\Z")
_LETTER = regex.compile(r"\p{L}")
_AFTER_AN_INITIAL = re.compile(r"\.[^\S\n]*")
_NO_WORD_AT_END = re.compile(r"(?:(?<=\w)|\A)\W*\Z")
_SENTENCE_STARTS = frozenset(".?!…¿¡\n")


@dataclass(frozen=True, slots=True)
class Name:
    """A stretch of the question that may be a name, with its identity key.

    ``singular`` is the key without the s of a plural possessive ("Einsteins’").
    """

    start: int
    end: int
    key: str
    singular: str = ""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word; in a script without spaces a character, which is ``alone`` when no other of its kind is beside it."""

    start: int
    end: int
    unspaced: bool
    alone: bool = True


def known_names(text: str, keys: Container[str]) -> list[Name]:
    """Runs of words whose identity key is among ``keys``, in order of place: none inside another, none of function words only."""
    names = (name for name in candidate_names(text[:LONGEST_QUESTION]) if name.key in keys and not only_function_words(name.key))
    return outermost(list(names))


def outermost(names: Sequence[Name]) -> list[Name]:
    """The names that do not lie inside another, in order of place."""
    kept: list[Name] = []
    reach = -1
    for name in sorted(names, key=lambda n: (n.start, -n.end)):
        if name.end > reach:
            kept.append(name)
            reach = name.end
    return kept


def candidate_names(text: str) -> Iterator[Name]:
    """Every run of up to LONGEST_NAME words, or LONGEST_UNSPACED_NAME characters."""
    units = list(_units(text))
    for first, unit in enumerate(units):
        words = characters = 0
        for last in range(first, len(units)):
            words += not units[last].unspaced
            characters += units[last].unspaced
            if words > LONGEST_NAME or characters > LONGEST_UNSPACED_NAME:
                break
            if first == last and not unit.alone:
                continue  # one character out of a longer run is a part of a word, not a name
            end = units[last].end
            key = identity_key(text[unit.start : end])
            if key:
                plural = text[end - 1 : end + 1] in _PLURAL_POSSESSIVES and not text[end + 1 : end + 2].isalnum()
                yield Name(unit.start, end, key, identity_key(text[unit.start : end - 1]) if plural else "")


def _units(text: str) -> Iterator[_Unit]:
    """Words as identity_key sees them, with their places in the text as it was written."""
    position = 0
    while position < len(text):
        if not _starts_word(text[position]):
            position += 1
            continue
        start, unspaced = position, _is_unspaced(text[position])
        while position < len(text) and _continues_word(text[position], unspaced):
            position += 1
        if unspaced:
            yield from _characters(text, start, position)
        else:
            start, position = _with_signs(text, start, position)
            yield _Unit(start, position, unspaced=False)


def _with_signs(text: str, start: int, end: int) -> tuple[int, int]:
    """The word with the signs around it that belong to a name: those that its identity key keeps."""
    after = _SIGNS_AFTER.match(text, end)
    if after and identity_key(text[start : after.end()]) != identity_key(text[start:end]):
        end = after.end()
    before = _SIGNS_BEFORE.search(text[max(0, start - 2) : start])
    if before is None:
        return start, end
    outer = start - len(before[0])
    # The character before the signs decides whether they count: "-40", but not "30-40".
    with_signs = identity_key(text[max(0, outer - 1) : end]).split()
    without = identity_key(text[start:end]).split()
    return (outer if with_signs[-1:] != without[-1:] else start), end


def _characters(text: str, start: int, end: int) -> Iterator[_Unit]:
    starts = [place for place in range(start, end) if _starts_word(text[place])]
    for place, following in zip(starts, [*starts[1:], end], strict=True):
        yield _Unit(place, following, unspaced=True, alone=len(starts) == 1)


@lru_cache(maxsize=4096)
def _starts_word(character: str) -> bool:
    return not is_mark(character) and identity_key(character) != ""


def _continues_word(character: str, unspaced: bool) -> bool:
    if is_mark(character) or _is_invisible(character):
        return True
    return _starts_word(character) and _is_unspaced(character) == unspaced


@lru_cache(maxsize=4096)
def _is_invisible(character: str) -> bool:
    return fold(character) == ""


@lru_cache(maxsize=4096)
def _is_unspaced(character: str) -> bool:
    return script_without_spaces(fold(character)) is not None


def capitalised_names(text: str, taken: Sequence[Name]) -> Iterator[tuple[Name, ...]]:
    """Runs of capitalised words outside of ``taken``; words that join names may lie between them.

    The first word of a sentence always has a capital. So alone it is a name only when all words of the question have one, and a
    run that it begins is also given without it. Capitals mean nothing in a question that is all in capitals.
    """
    units = [unit for unit in _units(text) if not unit.unspaced]
    if len(units) > 1 and text.upper() == text:
        return
    titled = all(_is_capital(text, unit) for unit in units)
    for run in _runs(text, units, taken):
        starts_sentence = begins_sentence(text, run[0].start)
        if len(run) > LONGEST_NAME or (starts_sentence and len(run) == 1 and not titled):
            continue
        readings = [run, run[1:]] if starts_sentence and len(run) > 1 and _is_capital(text, run[1]) else [run]
        yield tuple(Name(r[0].start, r[-1].end, identity_key(text[r[0].start : r[-1].end])) for r in readings)


def _runs(text: str, units: Sequence[_Unit], taken: Sequence[Name]) -> Iterator[list[_Unit]]:
    run: list[_Unit] = []
    joining: list[_Unit] = []
    for unit in units:
        word = text[unit.start : unit.end].casefold()
        if run and not _same_name(text, (joining or run)[-1], unit):
            yield run
            run, joining = [], []
        if any(name.start < unit.end and unit.start < name.end for name in taken):
            opens = False
        elif run and word in JOINING_WORDS:
            joining.append(unit)
            continue
        else:
            opens = _is_capital(text, unit) and word not in FUNCTION_WORDS
        if opens:
            run += [*joining, unit]
        elif run:
            yield run
            run = []
        joining = []
    if run:
        yield run


def _same_name(text: str, before: _Unit, unit: _Unit) -> bool:
    gap = text[before.end : unit.start]
    return bool(_INSIDE_A_NAME.fullmatch(gap) or (before.end - before.start == 1 and _AFTER_AN_INITIAL.fullmatch(gap)))


def _is_capital(text: str, unit: _Unit) -> bool:
    first = _LETTER.search(text, unit.start, unit.end)
    return first is not None and unicodedata.category(first[0]) in ("Lu", "Lt")


def begins_sentence(text: str, start: int) -> bool:
    """True when nothing but signs lies between ``start`` and the end of the sentence before it."""
    gap = _NO_WORD_AT_END.findall(text[:start])[0]
    return len(gap) == start or not _SENTENCE_STARTS.isdisjoint(gap)


def only_function_words(key: str) -> bool:
    """True when all words of an identity key are function words."""
    return FUNCTION_WORDS.issuperset(key.split())
