"""Citations in a model's answer: short ids become those of chunks, or numbers, also while the answer is still coming in."""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from resources.text.characters import printable
from retrico_assets.query.answering.evidence import SourceChunk

_OPENING = re.compile(r'[\s\ufeff]*(?:```\w*\s*)?\[?\s*\{(?:.*?,)?\s*"answer"\s*:\s*"', re.DOTALL | re.IGNORECASE)
_UNIT = re.compile(r'[^"\\]+|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\[^u]')
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB][\da-fA-F]{2}(?:\\.{0,4})?", re.DOTALL)
_UNFINISHED = re.compile(r"\s*\[(?P<names>[^\[\]]*)\Z|\s+\Z")
_BETWEEN = re.compile(r"[\s,;]+")


class Citations:
    """The names by which a model may cite its sources: "c1" for the first that it was shown, or the chunk's own id."""

    def __init__(self, chosen: Sequence[SourceChunk], evidence: Sequence[SourceChunk]) -> None:
        short = {f"c{number}": source.chunk.id for number, source in enumerate(chosen, 1)}
        self.ids: dict[str, str] = {id: id for id in short.values()} | short
        """What each name stands for: a chunk id."""
        places = {source.chunk.id: str(place) for place, source in enumerate(evidence, 1)}
        self.numbers = {name: places[id] for name, id in self.ids.items()}
        """And its number in the list of sources that a person sees."""
        names = "|".join([r"c\d+", *(re.escape(id) for id in short.values())])
        self._pattern = re.compile(rf"(?P<space>\s*)\[(?P<names>(?:{names})(?:[\s,;]+(?:{names}))*)\]")

    def cited(self, text: str) -> list[str]:
        """The known names that the text cites, in order."""
        parts = (part for match in self._pattern.finditer(text) for part in _BETWEEN.split(match["names"]))
        return [part for part in parts if part in self.ids]

    def resolve(self, text: str, written: Mapping[str, str]) -> str:
        """The text with each known name as ``written`` (``ids`` or ``numbers``), unknown ones gone."""

        def replace(match: re.Match[str]) -> str:
            known = [written[part] for part in _BETWEEN.split(match["names"]) if part in written]
            return match["space"] + "".join(f"[{name}]" for name in known) if known else ""

        return self._pattern.sub(replace, text)

    def unfinished(self, text: str) -> int:
        """Where the end of the text begins that may become a citation, or the blank before one, when more of it comes."""
        ending = _UNFINISHED.search(text)
        if ending is None:
            return len(text)
        *whole, last = _BETWEEN.split(ending["names"] or "")
        possible = all(name in self.ids or re.fullmatch(r"c\d+", name) for name in whole) and (
            re.fullmatch(r"c\d*", last) or any(name.startswith(last) for name in self.ids)
        )
        return ending.start() if possible else len(text)

    def listed(self, text: str, beside: object) -> str:
        """What to append to the text: the known names that were only listed beside it."""
        used = {self.ids[name] for name in self.cited(text)}
        added = ""
        for item in beside if isinstance(beside, list) else [beside]:
            name = f"c{item}" if isinstance(item, int) else str(item).strip(" []")
            if name in self.ids and self.ids[name] not in used:
                used.add(self.ids[name])
                added += f" [{name}]"
        return added


class AnswerStream:
    """Passes on the "answer" of a JSON reply while the reply arrives in pieces, its citations as numbers.

    Decoded here, not by jiter, which stops at what small models write: a line break in a string, an unknown escape, half a
    surrogate pair or an unescaped quotation mark.

    Prose before the JSON and its other keys are not shown. ``finish`` gives what the pieces did not.
    """

    def __init__(self, on_text: Callable[[str], None], citations: Citations) -> None:
        self._on_text = on_text
        self._citations = citations
        self._shown = ""
        self.restart()

    def restart(self) -> None:
        """A new reply begins. If some of an earlier one was shown, this one is only shown whole, by ``finish``."""
        self._raw = ""
        self._text = ""
        self._inside = False
        self._over = bool(self._shown)

    def feed(self, piece: str) -> None:
        """The next piece of the reply, cut anywhere."""
        if self._over:
            return
        self._raw += piece
        if not self._inside:
            opening = _OPENING.match(self._raw)
            if opening is None:
                return
            self._inside, self._raw = True, self._raw[opening.end() :]
        self._text += clean(self._decoded())
        if not self._shown:
            self._text = self._text.lstrip()
        end = self._citations.unfinished(self._text)
        self._show(self._citations.resolve(self._text[:end], self._citations.numbers))
        self._text = self._text[end:]

    def finish(self, text: str) -> None:
        """The whole answer, citations still by name: what of it was not shown is shown now."""
        whole = self._citations.resolve(text, self._citations.numbers)
        if whole.startswith(self._shown):
            self._show(whole[len(self._shown) :])
        else:  # the reply was mended, or asked for again
            self._show("\n" + whole)
        self._over = True

    def _show(self, text: str) -> None:
        if text:
            self._shown += text
            self._on_text(text)

    def _decoded(self) -> str:
        """The characters of the JSON string that have wholly arrived."""
        decoded, place = "", 0
        while unit := _UNIT.match(self._raw, place):
            if _HIGH_SURROGATE.fullmatch(self._raw, place):
                break  # its other half may be on the way
            decoded += _unescaped(unit[0])
            place = unit.end()
        self._over = self._raw[place : place + 1] == '"'
        self._raw = self._raw[place:]
        return decoded


def clean(text: str) -> str:
    """The text without control characters, which could steer a terminal, and half characters, which can't be printed."""
    return printable(text)


def _unescaped(unit: str) -> str:
    if unit[0] != "\\":
        return unit
    try:
        return str(json.loads(f'"{unit}"'))
    except ValueError:  # no escape of JSON's
        return unit[1:]
