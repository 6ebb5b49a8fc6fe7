"""Questions with known answering documents, to measure retrieval with."""

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
    """A question, and the sources (paths relative to the corpus) of all documents that its answer needs."""

    question: str
    sources: frozenset[str]


def read_questions(file: Path) -> list[GoldQuestion]:
    """Read a JSON Lines file with lines such as {"question": "...", "sources": ["a.md", "b.md"]}. Other keys are ignored.

    Raises:
        SettingsError: the file can't be read, is empty, or has another line. The message names the file and the line.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")  # splitlines would also cut at U+2028 in a text
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The questions {file} can't be read: {error}") from error
    questions = [_question(line, f"{file}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise SettingsError(f"{file} is empty. Write one JSON object per line, with question and sources.")
    return questions


def unknown_sources(questions: Sequence[GoldQuestion], texts: TextStore) -> list[str]:
    """The expected sources that no stored document has, sorted. No strategy can find them."""
    ids = {document_id(source): source for question in questions for source in question.sources}
    known = texts.get_documents(list(ids))
    return sorted(source for id, source in ids.items() if id not in known)


def _question(line: str, where: str) -> GoldQuestion:
    try:
        data: Any = json.loads(line)
    except ValueError as error:
        raise SettingsError(f"{where} is not JSON: {error}") from error
    question = data.get("question") if isinstance(data, Mapping) else None
    sources = data.get("sources") if isinstance(data, Mapping) else None
    if not isinstance(question, str) or not question.strip() or not isinstance(sources, list) or not sources:
        raise SettingsError(f'{where} is {line:.200}. It must have "question" (text) and "sources" (a list of documents).')
    if not all(isinstance(source, str) for source in sources):
        raise SettingsError(f"{where}: sources is {sources!r:.200}. It must be a list of texts.")
    return GoldQuestion(question, frozenset(sources))
