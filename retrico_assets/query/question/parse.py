"""What a question names: spans that the extractor finds, and entities of the graph that it calls by name."""

import re
import unicodedata
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from resources.errors import RetricoError
from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor, Span
from resources.models.llm.client import mask_secrets
from resources.records import Entity
from resources.text.names import identity_key

LONGEST_QUESTION = 2000
"""Characters of a question that are asked; that there are more is reported."""
LONGEST_NAME = 8
"""Words of a name that is looked up without an extractor's help."""
LONGEST_UNSPACED_NAME = 16
"""The same in characters, for scripts that put no blanks between words."""
MOST_NAMESAKES = 10
"""A part of a name that more entities share ("River") names none of them."""

_FULL_TEXT_WEIGHT = 0.8
_HITS_A_NAME = 20
_MOST_HITS = 100
_UNSPACED_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "IDEOGRAPHIC")
_FUNCTION_WORDS = """
a about all am an and any are as at be been by can could did do does for from had has have he her him his how i if in
is it its many may me more most much my no not of on or our she should so some than that the their them then there
these they this those to us was we were what when where which who whom whose why will with would you your s t d m ll re ve
"""
_JOINING_WORDS = "al bin da de del della den der di do dos du el ibn la le los of the van von y"
_PLURAL_POSSESSIVES = ("s'", "s’")
_INSIDE_A_NAME = re.compile(r"[^\S\n]+|[-‐‑'’&]")
_AFTER_AN_INITIAL = re.compile(r"\.[^\S\n]*")
_NO_WORD_AT_END = re.compile(r"(?:(?<=\w)|\A)\W*\Z")
_SENTENCE_STARTS = frozenset(".?!…¿¡\n")


@dataclass(frozen=True, slots=True)
class Failure:
    """A step or a strategy that could not do its part; the others answer."""

    strategy: str
    error: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the spans the extractor found in it, and the entities it names in order of their place.

    ``fault`` says why entities could not be looked up; None when they were (or need not be). ``link_scores`` says by entity
    id how surely an entity is meant, above 0 to 1: one that isn't there counts 1.
    """

    text: str
    mentions: tuple[Span, ...] = ()
    entities: tuple[Entity, ...] = ()
    fault: str | None = None
    link_scores: Mapping[str, float] = field(default_factory=dict)

    def link_score(self, entity_id: str) -> float:
        """How surely the question means this entity: 1 by a linked id or an identity key, less by a part of its name."""
        return self.link_scores.get(entity_id, 1.0)


@dataclass(frozen=True, slots=True)
class Name:
    """A stretch of the question that may be a name, by its identity key; ``singular``: the key without the s of "Einsteins’"."""

    start: int
    end: int
    key: str
    singular: str = ""


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
    """Find the entities that the question names, in one call of the store, two when a name is left over.

    First by linked id and by identity key: candidates are the mentions and every run of up to LONGEST_NAME words, so nothing
    is guessed from a part of a name. An id that the graph knows goes before the key; the longest match wins over those
    inside it; entities that share a name are all kept. Function words alone ("who", "what is") are a name only when they
    are written exactly as the entity's label ("WHO"), and not as any sentence begins ("Who").

    Then by full text, for mentions and runs of capitalised words that nothing matched: every word of the name must be a
    word of the entity's label ("Smith", "John Smith"), or the other way round where the label has two words or more and
    at least half of the name's. The link score is then 0.8 x the share of words in common / the number of entities that fit.
    """
    text = question.text[:LONGEST_QUESTION]
    known = _look_up(question, text, graph)
    matched = _outermost([name for name in known.names if known.entities(name)])
    found = [(name.start, entity, 1.0) for name in matched for entity in known.entities(name)]
    left_over = _left_over(question, text, matched)
    if left_over:
        found += _by_full_text(left_over, text, graph)
    entities: dict[str, Entity] = {}
    scores: dict[str, float] = {}
    for _, entity, score in sorted(found, key=lambda link: link[0]):
        entities.setdefault(entity.id, entity)
        scores[entity.id] = max(score, scores.get(entity.id, 0.0))
    return replace(question, entities=tuple(entities.values()), link_scores=scores)


def known_names(text: str, keys: Container[str]) -> list[Name]:
    """Runs of words whose identity key is one of these, in order of place; none inside another, and no function words alone."""
    names = (name for name in _names(text[:LONGEST_QUESTION]) if name.key in keys and not _says_nothing(name.key))
    return _outermost(list(names))


class _Known:
    """The candidates of a question, and what the graph knows by their ids and keys."""

    def __init__(self, text: str, names: Sequence[Name], linked: Sequence[tuple[Name, str]], found: Sequence[Entity]) -> None:
        self.names = names
        self._text = text
        by_id = {entity.id: entity for entity in found}
        self._linked = [(mention, by_id[id]) for mention, id in linked if id in by_id]
        self._by_key: dict[str, list[Entity]] = {}
        for entity in found:
            self._by_key.setdefault(entity.key, []).append(entity)

    def entities(self, name: Name) -> list[Entity]:
        """Those that a mention of this name is linked to, else those with its key."""
        linked = [e for m, e in self._linked if name.start <= m.start and m.end <= name.end and m.key == name.key]
        if linked:
            return linked
        entities = self._by_key.get(name.key) or self._by_key.get(name.singular, [])
        if _says_nothing(name.key):
            written = self._text[name.start : name.end]
            if _begins_sentence(self._text, name.start) and written == written.capitalize():
                return []
            return [entity for entity in entities if entity.label == written]
        return entities


def _look_up(question: Question, text: str, graph: GraphStore) -> _Known:
    names = {(name.start, name.end): name for name in _names(text)}
    linked: list[tuple[Name, str]] = []
    for mention in question.mentions:
        name = Name(mention.start, mention.end, identity_key(text[mention.start : mention.end]))
        id = (mention.linked_id or "").strip()
        if name.key or id:
            names.setdefault((name.start, name.end), name)
        if id:
            linked.append((name, id))
    keys = sorted({key for name in names.values() for key in (name.key, name.singular) if key})
    ids = sorted({id for _, id in linked})
    found = graph.find_entities(ids=ids, keys=keys) if ids or keys else []
    return _Known(text, list(names.values()), linked, found)


def _left_over(question: Question, text: str, matched: Sequence[Name]) -> list[tuple[Name, ...]]:
    """Names to look for by full text, each once, with its shorter readings, the longest first."""

    def is_new(start: int, end: int) -> bool:
        return not any(name.start <= start and end <= name.end for name in matched)

    groups: list[tuple[Name, ...]] = [(Name(m.start, m.end, identity_key(text[m.start : m.end])),) for m in question.mentions]
    groups = [group for group in groups if is_new(group[0].start, group[0].end)]
    taken = [*matched, *(group[0] for group in groups)]
    groups += _capitalised(text, taken)
    return list({group[0].key: group for group in reversed(groups) if _telling(group[0].key)}.values())


def _by_full_text(groups: Sequence[tuple[Name, ...]], text: str, graph: GraphStore) -> list[tuple[int, Entity, float]]:
    asked = " ".join(text[group[0].start : group[0].end] for group in groups)
    hits = [hit.record for hit in graph.search_entities(asked, min(_HITS_A_NAME * len(groups), _MOST_HITS))]
    found: list[tuple[int, Entity, float]] = []
    for group in groups:
        for name in group:
            shares = [(entity, _share(name.key, entity.key)) for entity in hits]
            best = max((share for _, share in shares), default=0.0)
            fitting = [(entity, share) for entity, share in shares if share > 0 and (best < 1 or share == 1)]
            if fitting:
                if len(fitting) <= MOST_NAMESAKES:
                    found += [(name.start, entity, _FULL_TEXT_WEIGHT * share / len(fitting)) for entity, share in fitting]
                break
    return found


def _share(name: str, label: str) -> float:
    """The share of words in common if one's words are all among the other's, else 0; both given as identity keys.

    Function words don't count. Accents of Latin letters don't either, as the full-text search sees it.
    """
    asked, known = _telling(name), _telling(label)
    if asked and asked <= known:
        return len(asked) / len(known)
    if len(known) >= 2 and known <= asked and 2 * len(known) >= len(asked):
        return len(known) / len(asked)
    return 0.0


@lru_cache(maxsize=4096)
def _telling(key: str) -> frozenset[str]:
    """The words of a name that tell it from others; none when a letter or a number is all there is."""
    told = frozenset(map(_plain, key.split())) - _function_words()
    return told if any(len(word) > 1 and not word.isdecimal() for word in told) else frozenset()


def _plain(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word)
    return unicodedata.normalize("NFC", re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", decomposed))


def _capitalised(text: str, taken: Sequence[Name]) -> Iterator[tuple[Name, ...]]:
    """Runs of capitalised words outside the names that are taken, the little words that join names allowed in between.

    The first word of a sentence has its capital anyway: alone it is a name only when all words of the question are written
    so, and a run that it begins is also read without it. A question all in capitals says nothing by them.
    """
    units = [unit for unit in _units(text) if not unit.unspaced]
    if len(units) > 1 and text.upper() == text:
        return
    titled = all(_is_capital(text, unit) for unit in units)
    for run in _runs(text, units, taken):
        starts_sentence = _begins_sentence(text, run[0].start)
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
        elif run and word in _joining_words():
            joining.append(unit)
            continue
        else:
            opens = _is_capital(text, unit) and word not in _function_words()
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
    return unicodedata.category(text[unit.start]) in ("Lu", "Lt")


def _begins_sentence(text: str, start: int) -> bool:
    gap = _NO_WORD_AT_END.findall(text[:start])[0]
    return len(gap) == start or not _SENTENCE_STARTS.isdisjoint(gap)


def _says_nothing(key: str) -> bool:
    """Whether all its words are function words."""
    return _function_words().issuperset(key.split())


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    return frozenset(_FUNCTION_WORDS.split())


@lru_cache(maxsize=1)
def _joining_words() -> frozenset[str]:
    return frozenset(_JOINING_WORDS.split())


def _outermost(names: Sequence[Name]) -> list[Name]:
    """Those that do not lie inside another, in order of their place."""
    kept: list[Name] = []
    reach = -1
    for name in sorted(names, key=lambda n: (n.start, -n.end)):
        if name.end > reach:
            kept.append(name)
            reach = name.end
    return kept


def _names(text: str) -> Iterator[Name]:
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
