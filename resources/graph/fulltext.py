"""Full-text search in graphs: what is stored to be searched, what is asked, and how candidates are ranked.

What is searched is not the text but its words (``resources.text.words``), folded and joined by blanks. So the database's
tokeniser has nothing left to decide, and nothing that a user writes can be an operator of its query language: a phrase is
made of words, and words hold letters, digits and marks only, the rest being spelled out (``_SPELLED``).
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise

from resources.text.words import question_phrases as cut_question
from resources.text.words import script_without_spaces, search_words

_MOST_PHRASES = 200
_LONGEST_WORD = 100  # bytes; RediSearch passes over words of more than 128
_SPELLED = str.maketrans({"+": "_p", "#": "_h", "&": "_a", ".": "_d"})
_TO_SPELL = re.compile(r"[+#&.]")
_K1, _B = 1.2, 0.75  # the usual parameters of BM25


def search_text(text: str) -> str:
    """The words of a text as they are stored for search: in order, joined by spaces; hyphenated words written as one follow."""
    return _stored(search_words(text))


def question_phrases(question: str) -> list[str]:
    """What a question looks for in texts: words and phrases, each once, stop words left out; of a very long one the first 200."""
    return [_stored(phrase) for phrase in cut_question(question)[:_MOST_PHRASES]]


def name_phrases(name: str) -> list[str]:
    """What a mention looks for in labels: its words, each once. In scripts without blanks, pairs of neighbouring characters."""
    return list(dict.fromkeys(_units(search_text(name))))[:_MOST_PHRASES]


def rank_texts(
    phrases: Sequence[str], texts: Mapping[str, str], frequencies: Mapping[str, int], total: int, k: int
) -> list[tuple[str, float]]:
    """The ``k`` best of these texts that hold a phrase, by BM25 (Robertson and Zaragoza 2009), best first, equals by id.

    ``texts`` are search texts by id, ``frequencies`` says in how many of all ``total`` texts each phrase is.
    """
    lengths = {id_: text.count(" ") + 1 for id_, text in texts.items()}
    usual = sum(lengths.values()) / max(1, len(lengths))
    padded = {id_: f" {text} " for id_, text in texts.items()}
    scores: dict[str, float] = defaultdict(float)
    for phrase in phrases:
        weight = rarity(frequencies.get(phrase, 0), total)
        for id_, text in padded.items():
            times = text.count(f" {phrase} ")
            if times:
                scores[id_] += weight * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths[id_] / usual))
    return _best(scores, k)


def rank_names(
    name: str, labels: Mapping[str, str], frequencies: Mapping[str, int], total: int, k: int
) -> list[tuple[str, float]]:
    """The ``k`` labels that share most with a name, best first, equals by id; those that share nothing are left out.

    1 is the same words in the same order; labels with all words of the name score 0.75 and more, the others less: the share of
    the name's words that they have (weighted by rarity), and a little for how few other words they have.
    """
    asked = search_text(name)
    weights = {phrase: rarity(frequencies.get(phrase, 0), total) for phrase in name_phrases(name)}
    everything = sum(weights.values())
    scores = {}
    for id_, label in labels.items():
        units = set(_units(label))
        shared = units & weights.keys()
        if label == asked:
            scores[id_] = 1.0
        elif shared:
            closeness = (3 + len(shared) / len(units)) / 4
            if len(shared) == len(weights):
                scores[id_] = min(closeness, 0.99)
            else:
                scores[id_] = 0.75 * closeness * sum(weights[phrase] for phrase in shared) / everything
    return _best(scores, k)


def rarity(frequency: int, total: int) -> float:
    """Inverse document frequency, always positive."""
    return math.log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5))


class WordIndex:
    """Search texts by id, found by their phrases, in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._ids: dict[str, set[str]] = {}

    def put(self, id_: str, text: str) -> None:
        self.remove(id_)
        self.texts[id_] = search_text(text)
        for word in self.texts[id_].split():
            self._ids.setdefault(word, set()).add(id_)

    def remove(self, id_: str) -> None:
        for word in set(self.texts.pop(id_, "").split()):
            self._ids[word].discard(id_)
            if not self._ids[word]:
                del self._ids[word]

    def find(self, phrase: str) -> set[str]:
        """Ids of the texts that hold the phrase."""
        first, *others = (self._ids.get(word, set()) for word in phrase.split())
        found = first.intersection(*others)
        return {id_ for id_ in found if f" {phrase} " in f" {self.texts[id_]} "} if others else found


def _best(scores: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[: max(k, 0)]


def _stored(found: Sequence[str]) -> str:
    """Words joined in such a way that the database's tokeniser cuts them where we do."""
    if max(map(len, found), default=0) * 4 > _LONGEST_WORD:
        found = [_shortened(word) for word in found]
    text = " ".join(found)
    return text.translate(_SPELLED) if _TO_SPELL.search(text) else text


def _shortened(word: str) -> str:
    stored = word.encode()
    return word if len(stored) <= _LONGEST_WORD else "_" + hashlib.sha256(stored).hexdigest()[:32]


def _units(text: str) -> Iterable[str]:
    for script, run in groupby(text.split(), script_without_spaces):
        units = list(run)
        yield from map(" ".join, pairwise(units)) if script and len(units) > 1 else units
