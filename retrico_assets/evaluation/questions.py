"""Questions whose answering documents are known: what retrieval is measured with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.errors import SettingsError
from resources.texts.base import TextStore
from retrico_assets.corpus.ids import document_id


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question and the sources (paths relative to the corpus) of all documents that its answer rests on."""

    question: str
    sources: frozenset[str]


def read_questions(file: Path) -> list[GoldQuestion]:
    """Read a JSON Lines file: a line {"question": "...", "sources": ["a.md", "b.md"]} each; other keys are passed over.

    SettingsError, naming file and line, for one that is missing, empty or holds something else.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")  # splitlines would also cut at U+2028 in a text
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the questions {file} can't be read: {error}") from error
    questions = [_question(line, f"{file}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise SettingsError(f"the questions {file} are empty; write one JSON object a line, with question and sources")
    return questions


def unknown_sources(questions: Sequence[GoldQuestion], texts: TextStore) -> list[str]:
    """The sources that no stored document has, in order: what can't be found, whatever the strategy."""
    ids = {document_id(source): source for question in questions for source in question.sources}
    known = texts.get_documents(list(ids))
    return sorted(source for id, source in ids.items() if id not in known)


def _question(line: str, where: str) -> GoldQuestion:
    try:
        data: Any = json.loads(line)
    except ValueError as error:
        raise SettingsError(f"{where} is no JSON: {error}") from error
    question = data.get("question") if isinstance(data, Mapping) else None
    sources = data.get("sources") if isinstance(data, Mapping) else None
    if not isinstance(question, str) or not question.strip() or not isinstance(sources, list) or not sources:
        raise SettingsError(f'{where} needs "question" (text) and "sources" (a list of document sources), it is {line:.200}')
    if not all(isinstance(source, str) for source in sources):
        raise SettingsError(f"{where}: sources must be texts, they are {sources!r:.200}")
    return GoldQuestion(question, frozenset(sources))
