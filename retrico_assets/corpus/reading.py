"""Turns files, and texts given inline, into documents."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.records import Document
from resources.text.characters import is_blank
from resources.text.decoding import BinaryFileError, UndecodableError, clean, decode_with_encoding
from retrico_assets.corpus.ids import document_id
from retrico_assets.corpus.scanning import Scan
from retrico_assets.corpus.titles import document_title


@dataclass(frozen=True, slots=True)
class InlineText:
    """A text that is given instead of a file."""

    text: str
    source: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A source that gave no document. ``state``: empty (no failure), binary, undecodable or unreadable."""

    source: str
    state: str
    reason: str
    failed: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """The documents that were read, and the sources that gave none."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def read_files(root: Path, files: Scan, on_progress: Callable[[int, int], None] | None = None) -> Reading:
    """Read every file of ``files``, one after another. ``on_progress`` is called with (files read, files in all)."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for done, file in enumerate(files.files, start=1):
        result = read_file(root, file.source)
        if isinstance(result, Document):
            documents.append(result)
        else:
            problems.append(result)
        if on_progress is not None:
            on_progress(done, len(files.files))
    return Reading(tuple(documents), tuple(problems))


def read_file(root: Path, source: str) -> Document | Problem:
    """The document in the file ``source`` under ``root``, or the problem with it."""
    try:
        data = (root / source).read_bytes()
        text, encoding = decode_with_encoding(data)
    except OSError as error:
        return Problem(source, "unreadable", f"{error.strerror or error}. Check that the file is still there and may be read.")
    except BinaryFileError as error:
        return Problem(source, "binary", str(error))
    except UndecodableError as error:
        return Problem(source, "undecodable", str(error))
    return _document(source, text, None, {"path": source, "encoding": encoding})


def inline_documents(texts: Sequence[InlineText]) -> Reading:
    """Documents of texts that are given inline.

    A text without a source gets ``inline/`` and the beginning of its hash, so that the order of the list doesn't matter. The
    first text of a source counts; another one is a problem, unless it is the same text without a name.
    """
    documents: dict[str, Document] = {}
    problems: list[Problem] = []
    for number, inline in enumerate(texts, start=1):
        source = inline.source or f"inline/{_sha256(clean(inline.text).text)[:16]}"
        try:
            source.encode()
        except UnicodeEncodeError:
            problems.append(Problem(ascii(source), "unreadable", f"the source of inline text {number} isn't Unicode. Rename it."))
            continue
        result = _document(source, inline.text, inline.title, {})
        if isinstance(result, Problem):
            problems.append(result)
        elif source not in documents:
            documents[source] = result
        elif inline.source:
            problems.append(Problem(source, "unreadable", f"inline text {number} has the source of an earlier one. Rename it."))
    return Reading(tuple(documents.values()), tuple(problems))


def _document(source: str, raw: str, title: str | None, metadata: dict[str, object]) -> Document | Problem:
    text, _, replaced = clean(raw)
    if is_blank(text):
        return Problem(source, "empty", "it holds no visible character", failed=False)
    if replaced:
        metadata |= {"replaced_characters": replaced}
    return Document(
        id=document_id(source),
        source=source,
        title=clean(title).text if title else document_title(source, text),
        text=text,
        text_hash=_sha256(text),
        metadata=metadata,
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
