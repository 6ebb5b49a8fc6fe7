"""Ids of documents and chunks: the same on every machine and in every run.

A document's id comes from its source alone. For a file that is its path relative to the corpus root, with "/" between the parts
and otherwise exactly as the file system gives it, without case folding and Unicode normalisation: two files that the disk tells
apart are two documents. A chunk's id comes from its document, place and text: equal texts in two places are two chunks.
"""

from uuid import UUID, uuid5

# Never change this: every id in every store depends on it.
NAMESPACE = UUID("6f0b7c1e-52d4-5a3b-9c87-1d0f5e2a4b60")


def document_id(source: str) -> str:
    """The id of the document with this source."""
    return str(uuid5(NAMESPACE, f"document\n{source}"))


def chunk_id(document_id: str, start: int, end: int, text: str) -> str:
    """The id of the chunk ``text`` at ``start:end`` (code points) of a document."""
    return str(uuid5(NAMESPACE, f"chunk\n{document_id}\n{start}\n{end}\n{text}"))
