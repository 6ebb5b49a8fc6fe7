"""Titles and summaries without a language model: the most central members, relations and sentence."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from resources.errors import DocumentError
from resources.records import Chunk
from resources.text.sentences import sentence_spans
from resources.text.words import words
from retrico_assets.communities.content import Content

METHOD = "extractive 2"  # raise the number when the same content would read differently

_NAMES = 3
_RELATIONS = 6
_PARTS = 5
_SHORTEST, _LONGEST = 20, 400


def extract(content: Content, chunks: Sequence[Chunk]) -> tuple[str, str]:
    """Title and summary of a community.

    The title names the members with the greatest weighted degree. The summary reads its key relations as sentences, then quotes
    the sentence of its chunks that names a member and shares most words with all the others, and names the communities it was
    joined from.
    """
    if not content.is_connected:
        return _alone(content)
    title = _title(content)
    said = list(dict.fromkeys(content.sentences()))[:_RELATIONS]
    names = {*content.names.values(), *(entity.label for entity, _ in content.members)}
    quoted = central_sentence([chunk.text for chunk in chunks], names)
    if quoted and quoted not in said:
        said.append(quoted)
    if len(content.parts) > 1:
        titles = [part.title for part in content.parts if part.title]
        more = f"; and {len(titles) - _PARTS} more" if len(titles) > _PARTS else ""
        said.append(f"Parts: {'; '.join(titles[:_PARTS])}{more}.")
    return title, " ".join(said)


def _alone(content: Content) -> tuple[str, str]:
    """A plain line for entities that no relation joins."""
    said = "; ".join(f"{entity.label} ({entity.type})" for entity, _ in content.members)
    return _title(content), f"{said}." if said else ""


def central_sentence(texts: Sequence[str], names: Iterable[str]) -> str:
    """The sentence whose words are most like those of all sentences together (cosine of counts); the first of equals.

    Only sentences with all words of one of the ``names`` count: a chunk tells of other things too. Very short and very long ones
    are passed over. Empty if there is none.
    """
    found = [one for text in texts for one in _sentences(text)]
    wanted = [set(words(name)) for name in names]
    counts_of = {one: Counter(words(one)) for one in found if _SHORTEST <= len(one) <= _LONGEST}
    candidates = [one for one, counts in counts_of.items() if any(name and name <= counts.keys() for name in wanted)]
    counted = [counts_of[one] for one in candidates]
    together = Counter[str]()
    for counts in counted:
        together.update(counts)
    scores = [
        sum(number * together[word] for word, number in counts.items())
        / (math.sqrt(sum(number**2 for number in counts.values())) or 1.0)
        for counts in counted
    ]
    return candidates[scores.index(max(scores))] if candidates else ""


def _sentences(text: str) -> list[str]:
    try:
        return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]
    except DocumentError:  # the segmenter can't read this text: nothing is quoted from it
        return []


def _title(content: Content) -> str:
    names = list(dict.fromkeys(entity.label for entity, _ in content.members))
    return ", ".join(names[:_NAMES])
