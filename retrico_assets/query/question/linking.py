"""Which entities of the graph a question names."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from resources.graph.base import GraphStore
from resources.records import Entity
from resources.text.names import identity_key, search_key
from resources.text.stopwords import FUNCTION_WORDS
from retrico_assets.query.question.names import (
    Name,
    begins_sentence,
    candidate_names,
    capitalised_names,
    only_function_words,
    outermost,
)
from retrico_assets.query.question.question import LONGEST_QUESTION, Question

MOST_NAMESAKES = 10
"""A part of a name that more entities share, such as "River", names none of them."""

_FULL_TEXT_WEIGHT = 0.8
_HITS_A_NAME = 20
_MOST_HITS = 100


def link(question: Question, graph: GraphStore) -> Question:
    """Find the entities that the question names, in one call of the store, or two when a name has no match.

    First by linked id and by identity key: candidates are the mentions and every run of up to LONGEST_NAME words. A linked id
    that the graph knows has precedence over the key; the longest match wins over those inside it; all entities that share a
    name are kept. Function words alone ("who", "what is") are a name only when they are written exactly as the entity's label
    ("WHO"), and not as any sentence begins ("Who").

    Then by full text, for mentions and runs of capitalised words without a match: every word of the name must be a word of the
    entity's label ("Smith", "John Smith"), or every word of the label, two or more, a word of the name and at least half of
    them. Link score = 0.8 * words in common / words of the longer name / number of entities that fit.
    """
    text = question.text[:LONGEST_QUESTION]
    candidates = _look_up(question, text, graph)
    matched = outermost([name for name in candidates.names if candidates.entities(name)])
    links = [(name.start, entity, 1.0) for name in matched for entity in candidates.entities(name)]
    unmatched = _unmatched(question, text, matched)
    if unmatched:
        links += _by_full_text(unmatched, text, graph)
    entities: dict[str, Entity] = {}
    scores: dict[str, float] = {}
    for _, entity, score in sorted(links, key=lambda link: link[0]):
        entities.setdefault(entity.id, entity)
        scores[entity.id] = max(score, scores.get(entity.id, 0.0))
    return replace(question, entities=tuple(entities.values()), link_scores=scores)


class _Candidates:
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
        """The entities that a mention of this name is linked to, else those with its key."""
        linked = [e for m, e in self._linked if name.start <= m.start and m.end <= name.end and m.key == name.key]
        if linked:
            return linked
        entities = self._by_key.get(name.key) or self._by_key.get(name.singular, [])
        if only_function_words(name.key):
            written = self._text[name.start : name.end]
            if begins_sentence(self._text, name.start) and written == written.capitalize():
                return []
            return [entity for entity in entities if entity.label == written]
        return entities


def _look_up(question: Question, text: str, graph: GraphStore) -> _Candidates:
    names = {(name.start, name.end): name for name in candidate_names(text)}
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
    return _Candidates(text, list(names.values()), linked, found)


def _unmatched(question: Question, text: str, matched: Sequence[Name]) -> list[tuple[Name, ...]]:
    """Names to look for by full text, each once, with its shorter readings, the longest first."""

    def is_new(start: int, end: int) -> bool:
        return not any(name.start <= start and end <= name.end for name in matched)

    groups: list[tuple[Name, ...]] = [(Name(m.start, m.end, identity_key(text[m.start : m.end])),) for m in question.mentions]
    groups = [group for group in groups if is_new(group[0].start, group[0].end)]
    taken = [*matched, *(group[0] for group in groups)]
    groups += capitalised_names(text, taken)
    return list({group[0].key: group for group in reversed(groups) if _distinctive_words(group[0].key)}.values())


def _by_full_text(groups: Sequence[tuple[Name, ...]], text: str, graph: GraphStore) -> list[tuple[int, Entity, float]]:
    query = " ".join(text[group[0].start : group[0].end] for group in groups)
    hits = [hit.record for hit in graph.search_entities(query, min(_HITS_A_NAME * len(groups), _MOST_HITS))]
    links: list[tuple[int, Entity, float]] = []
    for group in groups:
        for name in group:
            shares = [(entity, _share(name.key, entity.key)) for entity in hits]
            best = max((share for _, share in shares), default=0.0)
            fitting = [(entity, share) for entity, share in shares if share > 0 and (best < 1 or share == 1)]
            if fitting:
                if len(fitting) <= MOST_NAMESAKES:
                    links += [(name.start, entity, _FULL_TEXT_WEIGHT * share / len(fitting)) for entity, share in fitting]
                break
    return links


def _share(name: str, label: str) -> float:
    """The share of words in common if one's words are all among the other's, else 0; both given as identity keys.

    Function words don't count. Accents of Latin letters don't either, as full-text search sees it. Names that differ in
    spaces only ("e mail", "email") have all words in common.
    """
    if search_key(name).replace(" ", "") == search_key(label).replace(" ", ""):
        return 1.0
    in_name, in_label = _distinctive_words(name), _distinctive_words(label)
    if in_name and in_name <= in_label:
        return len(in_name) / len(in_label)
    if len(in_label) >= 2 and in_label <= in_name and 2 * len(in_label) >= len(in_name):
        return len(in_label) / len(in_name)
    return 0.0


@lru_cache(maxsize=4096)
def _distinctive_words(key: str) -> frozenset[str]:
    """The words of a name that set it apart from others; none when there are only single letters and numbers."""
    words = frozenset(search_key(key).split()) - FUNCTION_WORDS
    return words if any(len(word) > 1 and not word.isdecimal() for word in words) else frozenset()
