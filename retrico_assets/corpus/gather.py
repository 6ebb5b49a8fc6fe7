"""Collects the documents of a build and compares them with those that are stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resources.records import Document
from resources.texts.base import TextStore, content_hash
from retrico_assets.corpus.ids import document_id
from retrico_assets.corpus.reading import InlineText, Problem, inline_documents, read_files
from retrico_assets.corpus.scanning import scan

_INLINE = "inline"


@dataclass(frozen=True)
class Gathered:
    """The documents, ordered by source, and how they differ from the stored ones (document ids)."""

    documents: tuple[Document, ...]
    new: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    problems: tuple[Problem, ...]
    skipped: dict[str, str]

    @property
    def failed(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.failed)


def gather(
    store: TextStore,
    root: Path | None,
    include: Sequence[str],
    exclude: Sequence[str],
    texts: Sequence[InlineText] | None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Gathered:
    """Read the folder and the inline texts, and compare them with the text store.

    A document that can't be read this time keeps its stored version, so a temporary fault removes nothing. Inline texts stay
    until a build gives another list (an empty one removes them); None means that this build gives no list.
    """
    documents: dict[str, Document] = {}
    problems: list[Problem] = []
    skipped: dict[str, str] = {}
    if root is not None:
        files = scan(root, include, exclude)
        skipped = dict(files.skipped)
        reading = read_files(root, files, on_progress)
        documents |= {document.id: document for document in reading.documents}
        problems += reading.problems
    stored = store.document_hashes()
    if texts is None:
        absent = store.get_documents(sorted(stored.keys() - documents.keys()))
        documents |= {id_: document for id_, document in absent.items() if document.metadata.get(_INLINE)}
    else:
        inline = inline_documents(texts)
        problems += inline.problems
        for document in inline.documents:
            if document.id in documents:
                problems.append(
                    Problem(document.source, "unreadable", "A file of the corpus has the same source. Rename one of them.", True)
                )
            else:
                documents[document.id] = replace(document, metadata={**document.metadata, _INLINE: True})
    failed = [document_id(problem.source) for problem in problems if problem.failed]
    documents |= {id_: d for id_, d in store.get_documents(failed).items() if id_ not in documents}
    return _compare(documents, stored, tuple(problems), skipped)


def _compare(
    documents: dict[str, Document], stored: dict[str, str], problems: tuple[Problem, ...], skipped: dict[str, str]
) -> Gathered:
    same = {id_ for id_, document in documents.items() if stored.get(id_) == content_hash(document)}
    return Gathered(
        documents=tuple(sorted(documents.values(), key=lambda document: document.source)),
        new=tuple(sorted(documents.keys() - stored.keys())),
        changed=tuple(sorted((documents.keys() & stored.keys()) - same)),
        removed=tuple(sorted(stored.keys() - documents.keys())),
        unchanged=tuple(sorted(same)),
        problems=problems,
        skipped=skipped,
    )
