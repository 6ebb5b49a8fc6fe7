"""What a question names: spans that the extractor finds, and entities of the graph that it calls by name."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from resources.errors import RetricoError
from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor, Span
from resources.models.llm import mask_secrets
from resources.records import Entity
from retrico_assets.graph.identity import identity_key

LONGEST_QUESTION = 2000
"""Characters of a question that are asked; that there are more is reported."""
LONGEST_NAME = 8
"""Words of a name that is looked up without an extractor's help."""
LONGEST_UNSPACED_NAME = 16
"""The same in characters, for scripts that put no blanks between words."""

_UNSPACED_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "IDEOGRAPHIC")
_FUNCTION_WORDS = """
a about all am an and any are as at be been by can could did do does for from had has have he her him his how i if in
is it its many may me more most much my no not of on or our she should so some than that the their them then there
these they this those to us was we were what when where which who whom whose why will with would you your s t d m ll re ve
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A step or a strategy that could not do its part; the others answer."""

    strategy: str
    error: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the spans the extractor found in it, and the entities it names in order of their place.

    ``fault`` says why entities could not be looked up; None when they were (or need not be).
    """

    text: str
    mentions: tuple[Span, ...] = ()
    entities: tuple[Entity, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class _Name:
    """A stretch of the question that may be a name, by its identity key."""

    start: int
    end: int
    key: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word; in a script without blanks a character, and ``alone`` when it has no neighbour of its kind."""

    start: int
    end: int
    unspaced: bool
    alone: bool = True


def explain(error: Exception) -> str:
    """One line about an error, without secrets; the type is named when the message was not written for users."""
    message = str(error) or type(error).__name__
    return mask_secrets(message if isinstance(error, RetricoError) else f"{type(error).__name__}: {message}")


def parse(text: str, extractor: EntityExtractor | None) -> tuple[Question, tuple[Failure, ...]]:
    """Find the mentions of a question. Without an extractor, or when it fails (which is reported), there are none.

    Lone surrogates and NUL, which no store takes, become U+FFFD; what is longer than LONGEST_QUESTION is cut, and reported.
    """
    clean = "".join("\ufffd" if character == "\0" or "\ud800" <= character <= "\udfff" else character for character in text)
    failures = []
    if len(clean) > LONGEST_QUESTION:
        failures.append(Failure("parse", f"the question has {len(clean)} characters: the first {LONGEST_QUESTION} are asked"))
        clean = clean[:LONGEST_QUESTION]
    mentions: tuple[Span, ...] = ()
    if extractor is not None and clean.strip():
        try:
            found = extractor.extract([clean])[0]
            mentions = found.entities
            if found.error is not None:
                failures.append(Failure("parse", f"the entity extractor failed: {mask_secrets(found.error)}"))
        except Exception as error:  # whatever a model raises: the graph's own names still work
            failures.append(Failure("parse", f"the entity extractor failed: {explain(error)}"))
    return Question(clean, mentions), tuple(failures)


def link(question: Question, graph: GraphStore) -> Question:
    """Find the entities that the question names, in one round trip.

    Candidates are the mentions and every run of up to LONGEST_NAME words, each by its identity key, so nothing is guessed
    from a part of a name. The longest match wins over those inside it; entities that share a name are all kept. A lone
    function word ("who", "us") is a name only when it is written exactly as the entity's label ("WHO").
    """
    text = question.text[:LONGEST_QUESTION]
    candidates = {(name.start, name.end): name for name in _names(text)}
    for mention in question.mentions:
        key = identity_key(text[mention.start : mention.end])
        if key:
            candidates.setdefault((mention.start, mention.end), _Name(mention.start, mention.end, key))
    keys = sorted({name.key for name in candidates.values()})
    if not keys:
        return question
    by_key: dict[str, list[Entity]] = {}
    for entity in graph.find_entities(keys=keys):
        by_key.setdefault(entity.key, []).append(entity)
    found: dict[str, Entity] = {}
    for name in _outermost([name for name in candidates.values() if _matches(name, by_key, text)]):
        for entity in _matches(name, by_key, text):
            found.setdefault(entity.id, entity)
    return replace(question, entities=tuple(found.values()))


def _matches(name: _Name, by_key: dict[str, list[Entity]], text: str) -> list[Entity]:
    entities = by_key.get(name.key, [])
    if name.key in _function_words():
        return [entity for entity in entities if entity.label == text[name.start : name.end]]
    return entities


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    return frozenset(_FUNCTION_WORDS.split())


def _outermost(names: Sequence[_Name]) -> list[_Name]:
    """Those that do not lie inside another, in order of their place."""
    kept: list[_Name] = []
    reach = -1
    for name in sorted(names, key=lambda n: (n.start, -n.end)):
        if name.end > reach:
            kept.append(name)
            reach = name.end
    return kept


def _names(text: str) -> Iterator[_Name]:
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
            key = identity_key(text[unit.start : units[last].end])
            if key:
                yield _Name(unit.start, units[last].end, key)


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
            while position < len(text) and text[position] in "+#＋＃":  # C++ and C# are names
                position += 1
            yield _Unit(start, position, unspaced=False)


def _characters(text: str, start: int, end: int) -> Iterator[_Unit]:
    starts = [place for place in range(start, end) if _starts_word(text[place])]
    for place, following in zip(starts, [*starts[1:], end], strict=True):
        yield _Unit(place, following, unspaced=True, alone=len(starts) == 1)


@lru_cache(maxsize=4096)
def _starts_word(character: str) -> bool:
    return unicodedata.category(character)[0] != "M" and identity_key(character) != ""


def _continues_word(character: str, unspaced: bool) -> bool:
    if unicodedata.category(character) == "Cf" or unicodedata.category(character)[0] == "M":
        return True
    return _starts_word(character) and _is_unspaced(character) == unspaced


@lru_cache(maxsize=4096)
def _is_unspaced(character: str) -> bool:
    return unicodedata.name(unicodedata.normalize("NFKC", character)[0], "").startswith(_UNSPACED_SCRIPTS)
